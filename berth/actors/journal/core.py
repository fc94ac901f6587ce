"""Theory of operation of the journal.

The journal gives every event its number in the node's one sequence, and keeps what must outlive
berthd. Its core decides what is written, when, and what is passed on afterwards; the shell writes.

 1. A record is written as one batch, in one transaction: all of it or nothing.
 2. Written: its events are published, and what rides on it goes to the node. Nobody hears of a
    grant before it is on disk.
 3. Not written (a full disk, another program's lock): the grants that ride on it are lost: their
    cards are told, and they never were. Everything else is passed on, for releases and drains must
    go on. The cards are told that the journal cannot be written, and grant nothing. What could not
    be written is kept here, a lease by its latest state, and tried again with the next record and
    every 2 s.
 4. Once a batch is written again, the cards are told that too.
 5. Every 10 minutes events that are older than 30 days are dropped, and the oldest while the file
    is above 256 MiB.
 6. What is kept cannot be read for an actor that starts again (another program's lock): it is read
    again every 2 s, until it is there or the supervisor starts that actor anew.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias, TypeGuard, assert_never

import msgspec
from msgspec.structs import replace

from berth.actors.card.messages import GrantLost, JournalState
from berth.actors.journal.inbox import (
    JournalInbox,
    JournalTick,
    KeptUnread,
    WriteFailed,
    Written,
)
from berth.actors.journal.messages import (
    DropHold,
    DropLease,
    Happened,
    Kept,
    LastingEntry,
    ReadEvents,
    ReadKept,
    Record,
    SaveBaseline,
    SaveHandOffs,
    SaveHold,
    SaveLease,
    SaveUsage,
)
from berth.actors.node.inbox import RequestGranted, ToNode, not_written
from berth.ids import LeaseId
from berth.units import Instant, Seconds, after
from berth.wire import EventMessage

TRY_AGAIN_EVERY: Final = Seconds(2.0)
PRUNE_EVERY: Final = Seconds(600.0)
EVENTS_KEPT_UNWRITTEN: Final = 1000
"""How many events are kept while the journal cannot be written: the latest ones."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What is written together. `latest` holds the last word on each lease, hold and baseline."""

    latest: Mapping[tuple[str, str], LastingEntry] = msgspec.field(default_factory=dict)
    events: tuple[EventMessage, ...] = ()

    @property
    def empty(self) -> bool:
        """Tell whether there is nothing to write."""
        return not self.latest and not self.events


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's sequence, and what is not on disk yet."""

    last_seq: int = 0
    batches: int = 0
    unwritten: Batch = msgspec.field(default_factory=Batch)
    riding: tuple[ToNode, ...] = ()
    publishing: tuple[EventMessage, ...] = ()
    writable: bool = True
    try_at: Instant = Instant(0.0)
    unread: tuple[ReadKept, ...] = ()
    read_at: Instant = Instant(0.0)
    prune_at: Instant = Instant(0.0)


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: write this in one transaction, then tell `Written` or `WriteFailed`."""

    number: int
    batch: Batch


class PassOn(msgspec.Struct, frozen=True, kw_only=True):
    """To the node."""

    message: ToNode


class TellCards(msgspec.Struct, frozen=True, kw_only=True):
    """To every card."""

    message: GrantLost | JournalState


class PublishEvent(msgspec.Struct, frozen=True, kw_only=True):
    """To the node, for its PUB socket: whoever listens hears of it."""

    event: EventMessage


class Prune(msgspec.Struct, frozen=True):
    """Shell: drop events that are too old or too many."""


class TellKept(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: tell the supervisor what is kept: what is on the disk, and over it the `unwritten`.

    Where the disk cannot be read, tell `KeptUnread`.
    """

    asked: ReadKept
    unwritten: Batch


JournalEffect: TypeAlias = Write | PassOn | TellCards | PublishEvent | Prune | ReadEvents | TellKept
_Decision: TypeAlias = tuple[Journal, tuple[JournalEffect, ...]]


class Dated(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the journal's inbox and the wall time at which it was heard (seconds, UTC)."""

    event: JournalInbox
    wall: float


def decide(journal: Journal, dated: Dated, now: Instant) -> _Decision:
    """Return the journal after the event, and what to do."""
    event = dated.event
    match event:
        case Record():
            return _record(journal, event, dated.wall)
        case Written():
            return _written(journal, dated.wall)
        case WriteFailed():
            return _failed(journal, event, now, dated.wall)
        case ReadEvents():
            return journal, (event,)
        case ReadKept():
            journal = replace(journal, unread=_of_others(journal, event))
            return journal, (TellKept(asked=event, unwritten=journal.unwritten),)
        case KeptUnread():
            unread = (*_of_others(journal, event.asked), event.asked)
            return replace(journal, unread=unread, read_at=after(now, TRY_AGAIN_EVERY)), ()
        case JournalTick():
            return _tick(journal, now)
        case _:
            assert_never(event)


def _record(journal: Journal, record: Record, wall: float) -> _Decision:
    events: list[EventMessage] = []
    latest = dict(journal.unwritten.latest)
    seq = journal.last_seq
    for entry in record.entries:
        if isinstance(entry, Happened):
            seq += 1
            events.append(_numbered(entry, seq, wall))
        else:
            latest[_about(entry)] = entry
    journal = replace(
        journal,
        last_seq=seq,
        unwritten=Batch(latest=latest, events=(*journal.unwritten.events, *events)),
        riding=record.then,
        publishing=tuple(events),
    )
    return _write(journal)


def _about(entry: LastingEntry) -> tuple[str, str]:
    match entry:
        case SaveLease():
            return entry.card_key, entry.lease.id
        case DropLease():
            return entry.card_key, entry.lease
        case SaveBaseline():
            return entry.card_key, ""
        case SaveUsage():
            return entry.card_key, "usage"
        case SaveHandOffs():
            return entry.card_key, "hand-offs"
        case SaveHold() | DropHold():
            return "hold", entry.request


def _numbered(entry: Happened, seq: int, wall: float) -> EventMessage:
    return EventMessage(
        seq=seq,
        at=timestamp(wall),
        kind=entry.kind,
        card=entry.card,
        lease=entry.lease,
        request=entry.request,
        name=entry.name,
        why=entry.why,
        facts=dict(entry.facts),
    )


def timestamp(wall: float) -> str:
    """Return a wall time as events carry it: `2026-11-30T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(wall, tz=UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _write(journal: Journal) -> _Decision:
    journal = replace(journal, batches=journal.batches + 1)
    return journal, (Write(number=journal.batches, batch=journal.unwritten),)


def _written(journal: Journal, wall: float) -> _Decision:
    effects: list[JournalEffect] = [PublishEvent(event=event) for event in journal.publishing]
    effects += [PassOn(message=message) for message in journal.riding]
    journal = replace(journal, unwritten=Batch(), riding=(), publishing=())
    if journal.writable:
        return journal, tuple(effects)
    effects.append(TellCards(message=JournalState(writable=True)))
    journal, told = _alert(replace(journal, writable=True), "alert.cleared", "writable again", wall)
    return journal, (*effects, *told)


def _alert(journal: Journal, kind: str, why: str, wall: float) -> _Decision:
    """Tell an event of the journal's own. It is written with the next batch."""
    alert = _numbered(Happened(kind=kind, card=None, name="journal", why=why), _next(journal), wall)
    unwritten = replace(journal.unwritten, events=(*journal.unwritten.events, alert))
    journal = replace(journal, last_seq=alert.seq, unwritten=unwritten)
    return journal, (PublishEvent(event=alert),)


def _next(journal: Journal) -> int:
    return journal.last_seq + 1


def _failed(journal: Journal, event: WriteFailed, now: Instant, wall: float) -> _Decision:
    lost = tuple(m.lease for m in journal.riding if isinstance(m, RequestGranted))
    # A grant that is lost never was: nobody hears of it, now or later.
    effects: list[JournalEffect] = [
        PublishEvent(event=told) for told in journal.publishing if told.lease not in lost
    ]
    effects += [
        PassOn(message=message)
        for message in journal.riding
        if not isinstance(message, RequestGranted)
    ]
    if lost:
        effects.append(TellCards(message=GrantLost(leases=lost)))
    # Of a grant on several cards the node is told as well: each of them may have forgotten it.
    effects += [
        PassOn(message=not_written(m.request)) for m in journal.riding if _is_shared_grant(m)
    ]
    if journal.writable:
        effects.append(TellCards(message=JournalState(writable=False)))
        why = f"the journal cannot be written, so nothing is granted: {event.why}"
        journal, told = _alert(journal, "alert.raised", why, wall)
        effects += told
    events = tuple(told for told in journal.unwritten.events if told.lease not in lost)
    events = events[-EVENTS_KEPT_UNWRITTEN:]
    journal = replace(
        journal,
        unwritten=Batch(latest=_without(journal.unwritten.latest, lost), events=events),
        riding=(),
        publishing=(),
        writable=False,
        try_at=after(now, TRY_AGAIN_EVERY),
    )
    return journal, tuple(effects)


def _is_shared_grant(message: ToNode) -> TypeGuard[RequestGranted]:
    return isinstance(message, RequestGranted) and len(message.cards) > 1


def _without(
    latest: Mapping[tuple[str, str], LastingEntry], lost: tuple[LeaseId, ...]
) -> Mapping[tuple[str, str], LastingEntry]:
    """Return what is to be written without grants that were lost: they never were."""
    return {
        about: DropLease(card_key=entry.card_key, lease=entry.lease.id)
        if isinstance(entry, SaveLease) and entry.lease.id in lost
        else entry
        for about, entry in latest.items()
    }


def overlaid(kept: Kept, unwritten: Batch) -> Kept:
    """Return what is kept, with what could not be written yet.

    An actor that starts again while the disk is full must not take up what was over long ago.
    """
    leases = {key: {lease.id: lease for lease in there} for key, there in kept.leases.items()}
    baselines = dict(kept.baselines)
    hand_offs, usage = dict(kept.hand_offs), dict(kept.usage)
    holds = {hold.request: hold for hold in kept.holds}
    for entry in unwritten.latest.values():
        match entry:
            case SaveLease():
                leases.setdefault(entry.card_key, {})[entry.lease.id] = entry.lease
            case DropLease():
                leases.get(entry.card_key, {}).pop(entry.lease, None)
            case SaveBaseline():
                baselines[entry.card_key] = entry.baseline
            case SaveHandOffs():
                hand_offs[entry.card_key] = entry
            case SaveUsage():
                usage[entry.card_key] = entry
            case SaveHold():
                holds[entry.request] = entry
            case DropHold():
                holds.pop(entry.request, None)
            case _:
                assert_never(entry)
    return replace(
        kept,
        leases={key: tuple(there.values()) for key, there in leases.items()},
        baselines=baselines,
        hand_offs=hand_offs,
        usage=usage,
        holds=tuple(holds.values()),
    )


def _of_others(journal: Journal, asked: ReadKept) -> tuple[ReadKept, ...]:
    """Return who else waits for what is kept. Of one role the last incarnation does, no other."""
    return tuple(one for one in journal.unread if one.role != asked.role)


def _tick(journal: Journal, now: Instant) -> _Decision:
    if journal.unread and now >= journal.read_at:
        asked = journal.unread
        again = (TellKept(asked=one, unwritten=journal.unwritten) for one in asked)
        return replace(journal, unread=()), tuple(again)
    if not journal.unwritten.empty and now >= journal.try_at:
        return _write(replace(journal, try_at=after(now, TRY_AGAIN_EVERY)))
    if now >= journal.prune_at:
        return replace(journal, prune_at=after(now, PRUNE_EVERY)), (Prune(),)
    return journal, ()
