"""What the node hears and says.

Clients' operations arrive as `Called`, parsed and checked by the socket's codec. The node answers
each with one or more `Reply`, the last of which ends it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Who is at the other end of a connection, as the kernel says."""

    connection: Connection
    process: ProcessId


@dataclass(frozen=True, slots=True, kw_only=True)
class SayHello:
    """Who answers?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStatus:
    """What is on the node?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowEvents:
    """What happened after `after_seq`, or in the last `within` seconds?"""

    after_seq: int | None
    within: Seconds | None
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCards:
    """Which cards are there?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a lease is wanted for: the terms, how much on each card, and which cards.

    `mib` is empty for whole cards, one figure for all cards, or one for each. `cards` is empty for
    the first card. `numbered`: the name may be made free by a number (`llama-server-2`).
    """

    terms: Terms
    mib: tuple[MiB, ...] = ()
    cards: tuple[str, ...] = ()
    waited: Seconds = Seconds(0.0)
    numbered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskLease:
    """I want a lease."""

    wanted: Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachLease:
    """I hold a lease, or an engine that should have one, and come back with it."""

    wanted: Wanted
    lease: LeaseId | None
    state: str
    attempt: Attempt
    members: frozenset[ProcessId]
    ran_for: Seconds
    scope: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TellStarted:
    """My granted command runs."""

    lease: LeaseId
    members: frozenset[ProcessId]
    scope: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TellWord:
    """My answer to an order, or word of my engine."""

    lease: LeaseId
    attempt: Attempt
    word: HolderWord
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBack:
    """I give my lease back."""

    lease: LeaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """I do not want my request any more."""

    request: RequestId


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop the engine of that name, or that lease."""

    target: str
    at_once: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
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
    | Pong
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """From the socket thread: a client's operation; `message_id` is the client's own."""

    peer: Peer
    message_id: str
    op: ClientOp


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerGone:
    """From the socket thread: a message could not be delivered, so the client is gone."""

    connection: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsRead:
    """From the journal: the events that a client asked for."""

    call: CallId
    events: tuple[EventMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTold:
    """From the journal: an event happened, and is numbered. It is published."""

    event: EventMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRestarted:
    """From the composition root: a card was started again. It knows its leases, not its queue."""

    card: CardName


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketDied:
    """From the socket thread, dying: the node cannot go on without it."""

    cause: str


@dataclass(frozen=True, slots=True)
class CloseNode:
    """From the composition root: berthd is stopping; no new leases."""


@dataclass(frozen=True, slots=True)
class NodeTick:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGrant:
    """One card of a grant, as the client hears of it."""

    card: str
    uuid: str
    index: int
    vendor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an operation failed."""

    code: Code
    message: str
    hint: str = ""
    waited_out: bool = False


ReplyData: TypeAlias = Mapping[str, object] | Status | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """To the socket thread: an answer for a client. `last` ends the operation."""

    connection: Connection
    message_id: str
    data: ReplyData = None
    failure: Failure | None = None
    last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """To the socket thread: an order for a holder."""

    connection: Connection
    message: OrderMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ForCard:
    """To a card: a message of its own inbox."""

    card: CardName
    message: CardInbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """To the socket thread: an event for whoever listens."""

    event: EventMessage


NodeEffect: TypeAlias = Reply | Push | Publish | ForCard | Record | ReadEvents
