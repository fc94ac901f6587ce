"""What the node hears and says.

Clients' operations arrive as `Called`, parsed and checked by the socket's codec. The node answers
each with one or more `Reply`, the last of which ends it.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from berth.actors.card.messages import CardInbox, HolderWord
from berth.actors.journal.messages import ReadEvents, Record
from berth.actors.node.inbox import CallId, ToNode
from berth.errors import Code
from berth.ids import Attempt, CardName, Connection, LeaseId, ProcessId, RequestId
from berth.lease import Terms
from berth.units import MiB, Seconds
from berth.views import Status
from berth.wire import EventMessage, OrderMessage

# --- heard: what a client may ask -------------------------------------------------------------


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at the other end of a connection, as the kernel says."""

    connection: Connection
    process: ProcessId


class SayHello(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers?"""


class ShowStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is on the node?"""


class ShowEvents(msgspec.Struct, frozen=True, kw_only=True):
    """What happened after `after_seq`, or in the last `within` seconds?"""

    after_seq: int | None
    within: Seconds | None
    limit: int


class ListCards(msgspec.Struct, frozen=True, kw_only=True):
    """Which cards are there?"""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a lease is wanted for: the terms, how much on each card, and which cards.

    `mib` is empty for whole cards, one figure for all cards, or one for each. `cards` is empty for
    the first card. `numbered`: the name may be made free by a number (`llama-server-2`).
    """

    terms: Terms
    mib: tuple[MiB, ...] = ()
    cards: tuple[str, ...] = ()
    waited: Seconds = Seconds(0.0)
    numbered: bool = False


class AskLease(msgspec.Struct, frozen=True, kw_only=True):
    """I want a lease."""

    wanted: Wanted


class AttachLease(msgspec.Struct, frozen=True, kw_only=True):
    """I hold a lease, or an engine that should have one, and come back with it."""

    wanted: Wanted
    lease: LeaseId | None
    state: str
    attempt: Attempt
    members: frozenset[ProcessId]
    ran_for: Seconds
    scope: str | None


class TellStarted(msgspec.Struct, frozen=True, kw_only=True):
    """My granted command runs."""

    lease: LeaseId
    members: frozenset[ProcessId]
    scope: str | None


class TellWord(msgspec.Struct, frozen=True, kw_only=True):
    """My answer to an order, or word of my engine."""

    lease: LeaseId
    attempt: Attempt
    word: HolderWord
    why: str
    in_flight: int | None = None


class GiveBack(msgspec.Struct, frozen=True, kw_only=True):
    """I give my lease back."""

    lease: LeaseId


class Withdraw(msgspec.Struct, frozen=True, kw_only=True):
    """I do not want my request any more."""

    request: RequestId


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Stop the engine of that name, or that lease."""

    target: str
    at_once: bool


class TakeHold(msgspec.Struct, frozen=True, kw_only=True):
    """A person takes cards: those named, all (`everything`), or the first.

    `patient`: the client waits for the grant. `hold_for`: for how long, None until it is released.
    """

    cards: tuple[str, ...] = ()
    everything: bool = False
    mib: tuple[MiB, ...] = ()
    hold_for: Seconds | None = None
    reason: str = ""
    patient: bool = True


class ReleaseHolds(msgspec.Struct, frozen=True, kw_only=True):
    """A person gives back the hold named (`target`), those on `cards`, or every one."""

    target: str = ""
    cards: tuple[str, ...] = ()


class Reclaim(msgspec.Struct, frozen=True, kw_only=True):
    """Kill what is left of that lease, or of the leases of that name, and close them."""

    target: str


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """I am still here."""


ClientOp: TypeAlias = (
    SayHello
    | ShowStatus
    | ShowEvents
    | ListCards
    | AskLease
    | AttachLease
    | TellStarted
    | TellWord
    | GiveBack
    | Withdraw
    | Stop
    | TakeHold
    | ReleaseHolds
    | Reclaim
    | Pong
)


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """From the socket thread: a client's operation; `message_id` is the client's own."""

    peer: Peer
    message_id: str
    op: ClientOp


class PeerGone(msgspec.Struct, frozen=True, kw_only=True):
    """From the socket thread: the client cannot be reached, or its process has ended."""

    connection: Connection


class EventsRead(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal: the events that a client asked for."""

    call: CallId
    events: tuple[EventMessage, ...]


class EventTold(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal: an event happened, and is numbered. It is published."""

    event: EventMessage


class CardRestarted(msgspec.Struct, frozen=True, kw_only=True):
    """From the composition root: a card was started again. It knows its leases, not its queue."""

    card: CardName


class SocketDied(msgspec.Struct, frozen=True, kw_only=True):
    """From the socket thread, dying: the node cannot go on without it."""

    cause: str


class CloseNode(msgspec.Struct, frozen=True):
    """From the composition root: berthd is stopping; no new leases."""


class NodeTick(msgspec.Struct, frozen=True):
    """From the ticker: time has passed."""


NodeInbox: TypeAlias = (
    ToNode
    | Called
    | PeerGone
    | EventsRead
    | EventTold
    | CardRestarted
    | SocketDied
    | CloseNode
    | NodeTick
)


# --- said ---------------------------------------------------------------------------------------


class CardGrant(msgspec.Struct, frozen=True, kw_only=True):
    """One card of a grant, as the client hears of it."""

    card: str
    uuid: str
    index: int
    vendor: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an operation failed."""

    code: Code
    message: str
    hint: str = ""
    waited_out: bool = False


ReplyData: TypeAlias = Mapping[str, object] | Status | None


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """To the socket thread: an answer for a client. `last` ends the operation."""

    connection: Connection
    message_id: str
    data: ReplyData = None
    failure: Failure | None = None
    last: bool = True


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """To the socket thread: an order for a holder."""

    connection: Connection
    message: OrderMessage


class ForCard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """To a card: a message of its own inbox."""

    card: CardName
    message: CardInbox


class Publish(msgspec.Struct, frozen=True, kw_only=True):
    """To the socket thread: an event for whoever listens."""

    event: EventMessage


class NodeClosed(msgspec.Struct, frozen=True):
    """Shell: berthd is stopping, and everybody who waited has been answered."""


NodeEffect: TypeAlias = Reply | Push | Publish | ForCard | Record | ReadEvents | NodeClosed
