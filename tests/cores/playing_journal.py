"""A journal that is played with: records come, the disk works or does not, time passes.

The disk's word comes at once, as the shell gives it. What is on it is known by key.
"""

from dataclasses import dataclass, field

from berth.actors.card.messages import GrantLost, JournalState
from berth.actors.journal.core import (
    Batch,
    Dated,
    Journal,
    JournalEffect,
    PassOn,
    Prune,
    PublishEvent,
    TellCards,
    TellKept,
    Write,
    decide,
)
from berth.actors.journal.inbox import JournalInbox, JournalTick, WriteFailed, Written
from berth.actors.journal.messages import (
    DropLease,
    Entry,
    Happened,
    LastingEntry,
    Record,
    SaveLease,
)
from berth.actors.node.inbox import CallDone, CallId, RequestGranted, ToNode
from berth.ids import Attempt, CardName, Key, LeaseId, ProcessId, RequestId
from berth.lease import WHOLE_CARD, Held, Lease, Running, Terms
from berth.readings import CardIdentity
from berth.units import Instant, Seconds, after
from berth.wire import EventMessage

WALL = 1796040000.0
"""2026-11-30T12:00:00Z."""


@dataclass
class PlayedJournal:
    """A journal under play. `said` is all that it said but for writes, `disk` what is written."""

    now: Instant = Instant(1000.0)
    full: bool = False
    journal: Journal = field(default_factory=lambda: Journal(prune_at=Instant(1e9)))
    said: list[JournalEffect] = field(default_factory=list)
    tries: list[Batch] = field(default_factory=list)
    disk: dict[tuple[str, str], LastingEntry] = field(default_factory=dict)
    events: list[EventMessage] = field(default_factory=list)

    def hear(self, event: JournalInbox) -> None:
        """Let the journal hear an event; do what it decides, as its shell does."""
        dated = Dated(event=event, wall=WALL + self.now - 1000.0)
        self.journal, effects = decide(self.journal, dated, self.now)
        for effect in effects:
            if isinstance(effect, Write):
                self._write(effect)
            else:
                self.said.append(effect)

    def _write(self, write: Write) -> None:
        self.tries.append(write.batch)
        if self.full:
            self.hear(WriteFailed(batch=write.number, why="disk is full"))
            return
        self.disk.update(write.batch.latest)
        self.events.extend(write.batch.events)
        self.hear(Written(batch=write.number))

    def record(self, *entries: Entry, then: tuple[ToNode, ...] = ()) -> None:
        self.hear(Record(entries=entries, then=then))

    def later(self, seconds: float, step: float = 0.5) -> None:
        ends = after(self.now, Seconds(seconds))
        while self.now < ends:
            self.now = after(self.now, Seconds(min(step, ends - self.now)))
            self.hear(JournalTick())

    # --- what is seen -----------------------------------------------------------------------

    def passed_on(self) -> list[ToNode]:
        return [effect.message for effect in self.said if isinstance(effect, PassOn)]

    def published(self) -> list[EventMessage]:
        return [effect.event for effect in self.said if isinstance(effect, PublishEvent)]

    def to_cards(self) -> list[GrantLost | JournalState]:
        return [effect.message for effect in self.said if isinstance(effect, TellCards)]

    def told_kept(self) -> list[TellKept]:
        return [effect for effect in self.said if isinstance(effect, TellKept)]

    def prunes(self) -> int:
        return sum(isinstance(effect, Prune) for effect in self.said)

    def written(self, lease: str) -> Lease | None:
        """Return a lease as it stands on the disk, None when it was dropped or never there."""
        entry = self.disk.get(("GPU-0", lease))
        return entry.lease if isinstance(entry, SaveLease) else None


def a_lease(number: int = 1, attempt: int = 0) -> Running:
    held = Held(
        id=LeaseId(f"L{number}"),
        terms=Terms(name="chat", key=Key(f"k{number}")),
        ask=WHOLE_CARD,
        holder=ProcessId(100 + number, 1),
        granted=Instant(1000.0),
        attempt=Attempt(attempt),
    )
    return Running(held=held, ready=Instant(1000.0))


def saved(number: int = 1, attempt: int = 0) -> SaveLease:
    return SaveLease(card_key="GPU-0", lease=a_lease(number, attempt))


def dropped(number: int = 1) -> DropLease:
    return DropLease(card_key="GPU-0", lease=LeaseId(f"L{number}"))


def happened(kind: str = "lease.queued", number: int = 1) -> Happened:
    return Happened(
        kind=kind,
        card=CardName("gpu0"),
        name="chat",
        request=RequestId(f"r{number}"),
        facts={"mib": 14000},
    )


def granted(number: int = 1) -> RequestGranted:
    return RequestGranted(
        request=RequestId(f"r{number}"),
        lease=LeaseId(f"L{number}"),
        cards=(CardIdentity(name=CardName("gpu0"), index=0),),
    )


def done(number: int = 1) -> CallDone:
    return CallDone(call=CallId(number=number))
