"""What the journal hears and says.

Whoever tells it a `Record` gets nothing back: what rides on the record (`then`) goes on to the
node once the record is on disk. That is how a grant that a client has seen survives a `kill -9`.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from berth.actors.node.inbox import CallId, RequestGranted, ToNode
from berth.ids import CardName, LeaseId, RequestId
from berth.lease import Ask, Lease, Terms
from berth.units import Instant, MiB, Seconds

Fact: TypeAlias = str | int | float | bool | None


class SaveLease(msgspec.Struct, frozen=True, kw_only=True):
    """Keep this lease, in this state, for the card that is known by `card_key`."""

    card_key: str
    lease: Lease


class DropLease(msgspec.Struct, frozen=True, kw_only=True):
    """Forget a lease that is over."""

    card_key: str
    lease: LeaseId


class SaveBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """Keep a card's baseline for the rest of this boot."""

    card_key: str
    baseline: MiB


class SaveHandOffs(msgspec.Struct, frozen=True, kw_only=True):
    """Keep how long hand-offs have taken on a card: how many, and the latest of them."""

    card_key: str
    count: int
    recent: tuple[Seconds, ...]


class SaveUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Keep what engines needed on a card: by name, how many runs, and the peaks of the last (MiB).

    It is kept in a file of its own that people may read, under the card's present name.
    """

    card_key: str
    card: CardName
    engines: Mapping[str, tuple[int, tuple[MiB, ...]]]


class SaveHold(msgspec.Struct, frozen=True, kw_only=True):
    """Keep a hold that waits for a card though no client does, so that it is asked for again.

    `holding` tells which command of a person it belongs to: one number for all cards of one.
    """

    request: RequestId
    card_key: str
    terms: Terms
    ask: Ask
    arrived: Instant
    holding: int


class DropHold(msgspec.Struct, frozen=True, kw_only=True):
    """Forget a hold that waits no more: it was refused or taken back.

    One that was granted is forgotten with the writing of its lease.
    """

    request: RequestId


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the node's one sequence; the journal numbers and dates it.

    `why` is the sentence for people; `facts` are its own fields beside the common ones.
    """

    kind: str
    card: CardName | None
    name: str | None = None
    lease: LeaseId | None = None
    request: RequestId | None = None
    why: str = ""
    facts: Mapping[str, Fact] = msgspec.field(default_factory=dict)


LastingEntry: TypeAlias = (
    SaveLease | DropLease | SaveBaseline | SaveHandOffs | SaveUsage | SaveHold | DropHold
)
Entry: TypeAlias = LastingEntry | Happened


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """From a card or the node: write these together, then pass on what rides on them.

    Where the write fails, grants among `then` are not passed on: their card is told `GrantLost`.
    """

    entries: tuple[Entry, ...]
    then: tuple[ToNode, ...] = ()

    @property
    def grants(self) -> tuple[RequestGranted, ...]:
        """Return the grants that ride on this record."""
        return tuple(message for message in self.then if isinstance(message, RequestGranted))


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal knows, by card: leases, baselines, hand-offs, usage; and its last numbers.

    `holds` wait without a client, in the order in which they were asked for. `suspect` says why
    there may be holders that it does not know of, empty when there are none.
    """

    leases: Mapping[str, tuple[Lease, ...]] = msgspec.field(default_factory=dict)
    baselines: Mapping[str, MiB] = msgspec.field(default_factory=dict)
    hand_offs: Mapping[str, SaveHandOffs] = msgspec.field(default_factory=dict)
    usage: Mapping[str, SaveUsage] = msgspec.field(default_factory=dict)
    holds: tuple[SaveHold, ...] = ()
    last_seq: int = 0
    last_number: int = 0
    suspect: str = ""


class ReadKept(msgspec.Struct, frozen=True, kw_only=True):
    """From the supervisor: an actor of that role starts again, and needs what was kept.

    It comes after all that the dead one had told the journal, so nothing is missing.
    """

    role: str
    incarnation: int


class KeptRead(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal, to the supervisor: what was kept."""

    role: str
    incarnation: int
    kept: Kept


class ReadEvents(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: events after a sequence number, or of the last seconds; oldest first."""

    call: CallId
    after_seq: int | None
    within: Seconds | None
    limit: int
