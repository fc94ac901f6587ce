"""What cards say to the node: answers, progress, orders, descriptions.

They stand apart from `messages.py` because the journal carries them (an answer rides on its
record), and the journal must not know what clients can ask.
"""

from enum import IntEnum, StrEnum
from typing import TypeAlias

import msgspec

from berth.errors import Code
from berth.ids import Attempt, CardName, LeaseId, RequestId
from berth.lease import Order
from berth.readings import CardIdentity
from berth.standing import NOTHING_GRANTED, Blocker, Eta, Outlook
from berth.units import Instant, MiB, Seconds
from berth.views import CardStatus


class CallId(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of one client, from the socket to its answer."""

    number: int


class RequestStands(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """From a card, when a waiter's reason changes: where it stands now. Not an end.

    It is number `position` of `waiting`.
    """

    request: RequestId
    card: CardName
    position: int
    blockers: tuple[Blocker, ...]
    why: str
    waiting: int = 1
    outlook: Outlook | None = None
    eta: Eta | None = None


class RequestGranted(msgspec.Struct, frozen=True, kw_only=True):
    """The one good end of a request, on the cards in the order named.

    From the card; on several cards, the node's own, back from the journal. It holds for a start
    until `start_by`.
    """

    request: RequestId
    lease: LeaseId
    cards: tuple[CardIdentity, ...]
    start_by: Instant | None = None


class Stand(StrEnum):
    """How a card stands to its share of a request for several cards (M2)."""

    FITS = "fits"
    """The share could be granted now."""
    COULD_ASK = "could_ask"
    """First in line here, and there are holders to ask, or holders already leaving."""
    BLOCKED = "blocked"
    """Neither."""


class ShareStands(msgspec.Struct, frozen=True, kw_only=True):
    """From a card, when it changes: how it stands to its share of a request."""

    request: RequestId
    card: CardName
    stand: Stand


class ShareAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the share is kept free for the request, until the node says what becomes of it.

    `unexplained` is what nobody explained on the card just then (MiB), `avoided` whether the
    request had to wait because there was no room here.
    """

    request: RequestId
    card: CardName
    round: int
    unexplained: MiB
    avoided: bool


class ShareDeclined(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the share does not fit (any more)."""

    request: RequestId
    card: CardName
    round: int


class ShareInDoubt(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: it keeps a share free and has heard no more of it. Is it still wanted?"""

    request: RequestId
    card: CardName
    round: int


class Fit(IntEnum):
    """How a card could serve a request that takes any (Q9): the least is best."""

    NOW = 0
    BY_ASKING = 1
    BY_WAITING = 2
    UNREADABLE = 3
    NEVER = 4


class Surveyed(msgspec.Struct, frozen=True, kw_only=True):
    """From a card, for a request that takes any card (Q9): what it would cost here.

    `cost` compares two of the same rank, the least is best; `why` says it for people.
    """

    request: RequestId
    card: CardName
    rank: Fit
    cost: tuple[float, ...]
    why: str


class RequestRefused(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the other end of a request."""

    request: RequestId
    code: Code
    message: str
    hint: str = ""
    waited_out: bool = False


def not_written(request: RequestId) -> RequestRefused:
    """Return the end of a request whose grant could not be journaled: it never was."""
    return RequestRefused(request=request, code=Code.NO_JOURNAL, message=NOTHING_GRANTED)


class OrderGiven(msgspec.Struct, frozen=True, kw_only=True):
    """From a card, for a holder: do this. Answered with `lease.answer` and the same attempt."""

    lease: LeaseId
    card: CardName
    order: Order
    attempt: Attempt
    grace: Seconds
    why: str
    now: bool = False


class CallDone(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: an operation is done; for an attach, `lease` and `state` say what it found.

    `on` is the card that answers.
    """

    call: CallId
    lease: LeaseId | None = None
    state: str | None = None
    card: CardIdentity | None = None
    on: CardName | None = None


class CallFailed(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: an operation cannot be done."""

    call: CallId
    code: Code
    message: str
    hint: str = ""
    on: CardName | None = None


class LeaseEnded(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the lease has left the books; its name is free again."""

    lease: LeaseId
    card: CardName


class CardDescribed(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: what is on it, for the status that asked as `call`."""

    call: CallId
    card: CardName
    status: CardStatus


ToNode: TypeAlias = (
    RequestStands
    | RequestGranted
    | RequestRefused
    | OrderGiven
    | CallDone
    | CallFailed
    | LeaseEnded
    | CardDescribed
    | ShareStands
    | ShareAccepted
    | ShareDeclined
    | ShareInDoubt
    | Surveyed
)
