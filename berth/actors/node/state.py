"""The state of the node: who asked what over which connection, and what is still owed an answer."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from berth.actors.card.messages import SeekLease
from berth.actors.journal.messages import ReadEvents
from berth.actors.node.inbox import (
    CallDone,
    CallFailed,
    CallId,
    CardDescribed,
    RequestStands,
    ShareAccepted,
    Stand,
    Surveyed,
)
from berth.actors.node.messages import Wanted
from berth.ids import Attempt, CardName, Connection, Key, LeaseId, ProcessId, RequestId
from berth.lease import Granted
from berth.readings import CardIdentity
from berth.units import Instant


class Phase(StrEnum):
    """How far the agreement on a request for several cards is; see `agreement.py`."""

    GATHERING = "gathering"
    OFFERING = "offering"
    COMMITTING = "committing"


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement on a request for several cards.

    `stands` is what each card said last, `asking` whether they may ask holders, `accepted` who has
    taken the offer of this `round`; all must have by `answer_by`. None is made before
    `pause_until`.
    """

    phase: Phase = Phase.GATHERING
    round: int = 0
    stands: Mapping[CardName, Stand] = msgspec.field(default_factory=dict)
    asking: bool = False
    accepted: Mapping[CardName, ShareAccepted] = msgspec.field(default_factory=dict)
    answer_by: Instant | None = None
    pause_until: Instant | None = None


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A grant on several cards that is on its way to the journal; `catching_up` wait for it."""

    leases: Mapping[CardName, Granted]
    catching_up: tuple[CardName, ...] = ()


class Searching(msgspec.Struct, frozen=True, kw_only=True):
    """A request that takes any card, while the cards say what it would cost.

    Decided at `answer_by`; `paused`: asked again then, for no card could be read.
    """

    seek: SeekLease
    answer_by: Instant
    paused: bool = False
    answers: Mapping[CardName, Surveyed] = msgspec.field(default_factory=dict)


class Party(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request or the lease it became: its client, its name, its cards in the order named.

    `connection` is None while the client is away. `behind` names the party of the same name that
    must end first (R10), empty when it need not wait. `sought` is what each card was asked: one
    that is started again is asked again. `start_by`: until when a grant holds. `stands` is what
    each card last said of it, `stood` when, and `shown` what its client was told of that, None
    where it names a time, which is another one by now. `holding`: which command of a person it
    belongs to, 0 when to none; `kept`: it waits without a client, and the journal keeps it. Of a
    lease on several cards, `attempt` numbers the orders to its holder, `draining` are those cards
    that want it gone, and `ended` those whose books it has left.
    """

    number: int
    name: str
    key: Key
    cards: tuple[CardName, ...]
    exclusive: bool
    connection: Connection | None = None
    message_id: str = ""
    behind: str = ""
    is_hold: bool = False
    sought: Mapping[CardName, SeekLease] = msgspec.field(default_factory=dict)
    searching: Searching | None = None
    agreement: Agreement | None = None
    start_by: Instant | None = None
    stands: Mapping[CardName, RequestStands] = msgspec.field(default_factory=dict)
    stood: Instant = Instant(0.0)
    shown: Mapping[str, object] | None = None
    holding: int = 0
    kept: bool = False
    attempt: Attempt = Attempt(0)
    draining: frozenset[CardName] = frozenset()
    ended: frozenset[CardName] = frozenset()
    disowned: bool = False

    @property
    def shared(self) -> bool:
        """Tell whether it is for several cards at once."""
        return len(self.cards) > 1


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A command that takes a hold on one or several cards: those it has so far.

    It waits as long as its requests do.
    """

    connection: Connection | None
    message_id: str
    leases: tuple[LeaseId, ...] = ()


class Confirming(msgspec.Struct, frozen=True, kw_only=True):
    """A client that asks again for what it was granted, while its cards say whether that holds.

    `again`: they are asked for the second time.
    """

    lease: LeaseId
    wanted: Wanted
    process: ProcessId
    again: bool = False


class Calling(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that cards or the journal work on; answered as failed after `answer_by`.

    `cards` must all answer; `done` and `failed` are what they have said. `attaching` is who will
    hold the lease that comes of it, also when its client is gone by then. `confirming` is what a
    client asked again that has been granted it.
    """

    connection: Connection | None
    message_id: str
    answer_by: Instant
    cards: tuple[CardName, ...] = ()
    done: Mapping[CardName, CallDone] = msgspec.field(default_factory=dict)
    failed: Mapping[CardName, CallFailed] = msgspec.field(default_factory=dict)
    attaching: Party | None = None
    confirming: Confirming | None = None


class Gathering(msgspec.Struct, frozen=True, kw_only=True):
    """A status in the making: what the cards have said so far, and who `asked` (by which message).

    Answered as it is at `answer_by`.
    """

    call: CallId
    asked: tuple[tuple[Connection, str], ...]
    answer_by: Instant
    parts: Mapping[CardName, CardDescribed] = msgspec.field(default_factory=dict)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One machine under one berthd. `beats` counts its ticks.

    `last_number` and `last_call` are the last that were given, by this node or those before it:
    answers to a node that failed come to the next one, which must not take them for its own.
    `status_asked` is who wants the next status, `reads` what is read of the journal, one by one.
    """

    name: str
    version: str
    pid: int
    started: Instant
    cards: tuple[CardIdentity, ...]
    last_number: int = 0
    last_call: int = 0
    requests: Mapping[RequestId, Party] = msgspec.field(default_factory=dict)
    leases: Mapping[LeaseId, Party] = msgspec.field(default_factory=dict)
    commits: Mapping[RequestId, Commit] = msgspec.field(default_factory=dict)
    calls: Mapping[CallId, Calling] = msgspec.field(default_factory=dict)
    gathering: Gathering | None = None
    status_asked: tuple[tuple[Connection, str], ...] = ()
    reads: tuple[ReadEvents, ...] = ()
    told: Mapping[Connection, Instant] = msgspec.field(default_factory=dict)
    holdings: Mapping[int, Holding] = msgspec.field(default_factory=dict)
    beats: int = 0
    closing: bool = False
    closed: bool = False

    def governs(self, card: CardName) -> bool:
        """Tell whether a card is one of this node's."""
        return any(identity.name == card for identity in self.cards)

    def identities(self, names: tuple[CardName, ...]) -> tuple[CardIdentity, ...]:
        """Return the cards of those names, in that order; one that is not governed is left out."""
        known = {card.name: card for card in self.cards}
        return tuple(known[name] for name in names if name in known)

    def by_key(self, key: Key) -> tuple[RequestId | None, LeaseId | None]:
        """Return the request or the lease that a client's key belongs to."""
        if not key:
            return None, None
        for request, party in self.requests.items():
            if party.key == key:
                return request, None
        for lease, party in self.leases.items():
            if party.key == key:
                return None, lease
        return None, None

    def named(self, name: str) -> tuple[list[RequestId], list[LeaseId]]:
        """Return the requests and leases of that name, or the one with that id."""
        requests = [r for r, party in self.requests.items() if name in (r, party.name)]
        leases = [lease for lease, party in self.leases.items() if name in (lease, party.name)]
        return requests, leases
