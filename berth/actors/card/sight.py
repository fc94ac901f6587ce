"""What readings do: they free memory, they find what is stuck, contested or not known."""

from collections.abc import Mapping
from typing import Final, assert_never

from msgspec.structs import replace

from berth.actors.card import usage
from berth.actors.card.books import Books, close, measure, shown_free
from berth.actors.card.messages import CardRead, CardUnread, XidThrown
from berth.actors.card.state import Card, Measured
from berth.actors.card.turn import Turn
from berth.actors.trees.messages import Elsewhere
from berth.ids import ProcessId
from berth.lease import Lease, Releasing, Stuck
from berth.probes.xids import meaning
from berth.readings import GpuProcess, Unknown, Unmeasured
from berth.units import MiB, show_duration, show_gib, since

CONTESTED_SLACK: Final = MiB(64)
"""How far the driver may exceed the books before it is told (rounding, contexts of a few MiB)."""


def take(turn: Turn, event: CardRead | CardUnread | XidThrown | Elsewhere) -> None:
    """Take what was seen of the card, and of the processes that may be on it."""
    match event:
        case CardRead():
            on_read(turn, event)
        case CardUnread():
            on_unread(turn, event.why)
        case XidThrown():
            _on_xid(turn, event)
        case Elsewhere():
            _on_elsewhere(turn, event)
        case _:
            assert_never(event)


def on_read(turn: Turn, event: CardRead) -> None:
    """Take a reading: who uses what, and whose memory is back.

    One that was overtaken, or that was taken before the machine slept, says nothing.
    """
    card, taken = turn.card, event.reading.taken
    if card.measured is not None and taken < card.measured.reading.taken:
        return
    if card.awake_since is not None and taken <= card.awake_since:
        return
    measured = measure(card, event.reading)
    if card.unread is not None:
        turn.happened("card.ok", why=_recovered(card))
    turn.card = replace(card, measured=measured, unread=None, baseline=measured.baseline)
    turn.card = usage.note_peaks(turn.card, measured)
    if card.baseline != measured.baseline:
        turn.keep_baseline()
    for lease in turn.card.leases:
        if isinstance(lease, Releasing | Stuck) and shown_free(lease, measured):
            _free(turn, lease)
    _watch_strangers(turn, measured)
    _look_for_contest(turn, measured)


def _recovered(card: Card) -> str:
    first = card.unread is not None and card.unread.why is Unknown.NOT_READ_YET
    return "first reading" if first else "readings are back"


def on_unread(turn: Turn, why: Unmeasured) -> None:
    """The card cannot be read: nothing is granted on it until it can."""
    if turn.card.unread != why:
        kind = "card.lost" if why.why is Unknown.LOST else "card.unmeasured"
        turn.happened(kind, why=why.detail or why.why.value, reason=why.why.value)
    turn.card = replace(turn.card, unread=why)


def _on_elsewhere(turn: Turn, event: Elsewhere) -> None:
    """A holder of another card has other processes than before: what they use here is its (B6)."""
    others = {one: tree for one, tree in turn.card.elsewhere.items() if one != event.lease}
    if event.processes:
        others[event.lease] = event
    turn.card = replace(turn.card, elsewhere=others)


def _on_xid(turn: Turn, event: XidThrown) -> None:
    """The card reported a fault: told, and nothing more. Whether it can be read, readings say."""
    times = f", {event.times} times" if event.times > 1 else ""
    why = f"{meaning(event.xid)}{times}"
    turn.happened("card.xid", why=why, xid=event.xid, times=event.times)


def _free(turn: Turn, lease: Releasing | Stuck) -> None:
    took = since(lease.released, turn.now)
    back = f"{show_gib(lease.had)} GiB back, " if lease.had else ""
    turn.drop(lease)
    turn.lease_event(
        "freed",
        lease,
        f"{back}{show_duration(took)} after its word",
        after_s=round(took, 3),
        mib=lease.had,
    )
    turn.ended(lease)


def mark_stuck(turn: Turn, lease: Releasing) -> None:
    """The card has not shown a released lease's memory free in time (H4)."""
    stuck = Stuck(held=lease.held, released=lease.released, had=lease.had)
    turn.change(lease, stuck)
    used = 0 if turn.card.measured is None else turn.card.measured.used.get(lease.id, MiB(0))
    grace = show_duration(turn.card.settings.release_grace)
    why = f"card still shows {show_gib(used)} GiB after {grace}"
    turn.lease_event("stuck", stuck, why, mib=used)


def _watch_strangers(turn: Turn, measured: Measured) -> None:
    """Tell which processes without a lease came and went."""
    now = {row.process: row for row in measured.stowaways}
    known: Mapping[ProcessId, str] = turn.card.strangers
    for process, row in now.items():
        if process not in known:
            facts = {"pid": process.pid, "mib": _mib(row)}
            turn.happened("stowaway.seen", name=row.name, why=_shown(row), **facts)
    for process, name in known.items():
        if process not in now:
            turn.happened("stowaway.gone", name=name, pid=process.pid)
    if now.keys() != known.keys():
        strangers = {process: row.name for process, row in now.items()}
        turn.card = replace(turn.card, strangers=strangers)


def _mib(row: GpuProcess) -> int | None:
    return None if isinstance(row.used, Unmeasured) else row.used


def _shown(row: GpuProcess) -> str:
    size = "size unmeasured" if isinstance(row.used, Unmeasured) else f"{show_gib(row.used)} GiB"
    return f"{size}, pid {row.process.pid}"


def _look_for_contest(turn: Turn, measured: Measured) -> None:
    """Tell, once, when something loaded beside a grant and the card is overdrawn (H5).

    Two readings in a row must show it. Rows and memory are two calls into the driver: what is taken
    between them, or left by a process that has just died, looks like nobody's for one reading.
    """
    books = close(turn.card, measured)
    living = [lease for lease in turn.card.leases if not isinstance(lease, Releasing | Stuck)]
    if books.free >= -CONTESTED_SLACK or not living:
        if turn.card.contested or turn.card.overdrawn is not None:
            turn.card = replace(turn.card, contested=frozenset(), overdrawn=None)
        return
    if turn.card.overdrawn is None:
        turn.card = replace(turn.card, overdrawn=measured.reading.taken)
    if turn.card.overdrawn == measured.reading.taken:
        return
    lease = living[-1]
    if lease.id in turn.card.contested:
        return
    turn.card = replace(turn.card, contested=turn.card.contested | {lease.id})
    turn.lease_event("contested", lease, _culprit(turn, lease, measured, books), mib=-books.free)


def _culprit(turn: Turn, lease: Lease, measured: Measured, books: Books) -> str:
    """Name who took more than the books know of."""
    heaviest = max(measured.stowaways, key=lambda row: _mib(row) or 0, default=None)
    if heaviest is not None:
        return f"{heaviest.name} took {_shown(heaviest)}, beside its grant"
    for other in turn.card.leases:
        ask = other.held.ask
        used = measured.used.get(other.id, MiB(0))
        if isinstance(ask, int) and used > ask:
            whose = "it" if other.id == lease.id else other.name
            return f"{whose} uses {show_gib(used)} GiB and asked {show_gib(ask)}"
    return f"the leases add up to {show_gib(-books.free)} GiB more than the card has"
