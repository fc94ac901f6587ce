"""What the journal hears and says.

Whoever tells it a `Record` gets nothing back: what rides on the record (`then`) goes on to the
node once the record is on disk. That is how a grant that a client has seen survives a `kill -9`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from berth.actors.node.inbox import CallId, RequestGranted, ToNode
from berth.ids import CardName, LeaseId, RequestId
from berth.lease import Lease
from berth.units import MiB, Seconds

Fact: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveLease:
    """Keep this lease, in this state, for the card that is known by `card_key`."""

    card_key: str
    lease: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class DropLease:
    """Forget a lease that is over."""

    card_key: str
    lease: LeaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveBaseline:
    """Keep a card's baseline for the rest of this boot."""

    card_key: str
    baseline: MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """An event of the node's one sequence; the journal numbers and dates it.

    `why` is the sentence for people; `facts` are its own fields beside the common ones.
    """

    kind: str
    card: CardName | None
    name: str | None = None
    lease: LeaseId | None = None
    request: RequestId | None = None
    why: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


Entry: TypeAlias = SaveLease | DropLease | SaveBaseline | Happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """From a card or the node: write these together, then pass on what rides on them.

    Where the write fails, grants among `then` are not passed on: their card is told `GrantLost`.
    """

    entries: tuple[Entry, ...]
    then: tuple[ToNode, ...] = ()

    @property
    def grants(self) -> tuple[RequestGranted, ...]:
        """Return the grants that ride on this record."""
        return tuple(message for message in self.then if isinstance(message, RequestGranted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the journal knows: leases and baselines by card, and the last numbers it gave."""

    leases: Mapping[str, tuple[Lease, ...]] = field(default_factory=dict)
    baselines: Mapping[str, MiB] = field(default_factory=dict)
    last_seq: int = 0
    last_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadKept:
    """From the supervisor: an actor of that role starts again, and needs what was kept.

    It comes after all that the dead one had told the journal, so nothing is missing.
    """

    role: str
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRead:
    """From the journal, to the supervisor: what was kept."""

    role: str
    incarnation: int
    kept: Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvents:
    """From the node: events after a sequence number, or of the last seconds; oldest first."""

    call: CallId
    after_seq: int | None
    within: Seconds | None
    limit: int
