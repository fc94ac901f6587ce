"""What cards say to the node: answers, progress, orders, descriptions.

They stand apart from `messages.py` because the journal carries them (an answer rides on its
record), and the journal must not know what clients can ask.
"""

from typing import TypeAlias

import msgspec

from berth.errors import Code
from berth.ids import Attempt, CardName, LeaseId, RequestId
from berth.lease import Order
from berth.readings import CardIdentity
from berth.standing import Blocker, Eta, Outlook
from berth.units import Instant, Seconds
from berth.views import CardStatus


class CallId(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of one client, from the socket to its answer."""

    number: int


class RequestStands(msgspec.Struct, frozen=True, kw_only=True):
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
    """From a card: the one good end of a request. It holds for a start until `start_by`."""

    request: RequestId
    lease: LeaseId
    card: CardIdentity
    start_by: Instant | None = None


class RequestRefused(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the other end of a request."""

    request: RequestId
    code: Code
    message: str
    hint: str = ""
    waited_out: bool = False


class OrderGiven(msgspec.Struct, frozen=True, kw_only=True):
    """From a card, for a holder: do this. Answered with `lease.answer` and the same attempt."""

    lease: LeaseId
    order: Order
    attempt: Attempt
    grace: Seconds
    why: str
    now: bool = False


class CallDone(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: an operation is done; for an attach, `lease` and `state` say what it found."""

    call: CallId
    lease: LeaseId | None = None
    state: str | None = None
    card: CardIdentity | None = None


class CallFailed(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: an operation cannot be done."""

    call: CallId
    code: Code
    message: str
    hint: str = ""


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
)
