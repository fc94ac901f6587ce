"""What a waiter is told beside the plain reason: sizes, what is in flight, when, and then what."""

from msgspec.structs import replace

from berth.actors.card.books import Books
from berth.actors.card.state import Card, Waiter
from berth.lease import Draining, DrainPhase, Keeping, Lease, WholeCard
from berth.readings import Unmeasured
from berth.standing import LEAVING, Blocker, Eta, How, Outlook, expected
from berth.units import Instant, MiB, Seconds, left, since

_PAST_BOUNDARY = frozenset({DrainPhase.BOUNDARY, DrainPhase.ENDING})


def with_figures(card: Card, books: Books, blocker: Blocker, now: Instant) -> Blocker:
    """Return the blocker with what is known of its size, its replies in flight and its end."""
    lease = next((one for one in card.leases if one.id == blocker.ref), None)
    if lease is not None:
        return _holder(replace(blocker, mib=MiB(books.counts[lease.id])), lease, now)
    match blocker.how:
        case How.FIRST_IN_LINE:
            return _ahead(card, blocker)
        case How.STOWAWAY:
            return replace(blocker, mib=_used_by(card, blocker.who))
        case How.UNEXPLAINED:
            return replace(blocker, mib=_nobodys(card, books))
        case _:
            return blocker


def _holder(blocker: Blocker, lease: Lease, now: Instant) -> Blocker:
    if blocker.how is How.HELD and lease.held.until is not None:
        return replace(blocker, left=left(lease.held.until, now))
    if blocker.how is How.DRAINING and isinstance(lease, Draining):
        if lease.phase is DrainPhase.SILENT:
            return replace(blocker, how=How.SILENT)
        return replace(blocker, in_flight=in_flight(lease))
    return blocker


def in_flight(lease: Lease) -> int | None:
    """Return how many replies a holder that was asked has still to give, None when not known."""
    match lease:
        case Draining() if lease.phase in _PAST_BOUNDARY:
            return 0
        case Draining() | Keeping():
            return lease.in_flight
        case _:
            return None


def _ahead(card: Card, blocker: Blocker) -> Blocker:
    first = next((waiter for waiter in card.queue if waiter.request == blocker.ref), None)
    if first is None or isinstance(first.ask, WholeCard):
        return blocker
    return replace(blocker, mib=first.ask)


def _used_by(card: Card, name: str) -> MiB | None:
    rows = () if card.measured is None else card.measured.stowaways
    sizes = [row.used for row in rows if row.name == name]
    known = [size for size in sizes if not isinstance(size, Unmeasured)]
    return MiB(sum(known)) if known and len(known) == len(sizes) else None


def _nobodys(card: Card, books: Books) -> MiB | None:
    """Return what is in use and nobody's. Without a lease on the card, all of it is baseline."""
    baseline = MiB(0) if card.measured is None else card.measured.baseline
    return MiB(books.unexplained) or baseline or None


def outlook(books: Books, waiter: Waiter, blockers: tuple[Blocker, ...], *, first: bool) -> Outlook:
    """Return what a waiter can reckon with. Only the `first` in line can count on all that comes.

    Once everybody in its way is leaving, it will fit: those are the holders that make it so.
    """
    room = MiB(max(0, books.room))
    fits = all(blocker.how in LEAVING for blocker in blockers) and bool(blockers)
    if isinstance(waiter.ask, WholeCard):
        return Outlook(ask=None, room=room, fits=fits)
    then = None
    if fits and first:
        coming = sum(blocker.mib or 0 for blocker in blockers)
        then = MiB(max(0, books.free + coming))
        fits = then >= waiter.ask
    return Outlook(ask=waiter.ask, room=room, then=then, fits=fits)


def eta(card: Card, waiter: Waiter, now: Instant) -> Eta | None:
    """Return when a waiter is likely granted, None when that is not known."""
    asked_for = Seconds(0.0) if waiter.ordered is None else since(waiter.ordered, now)
    return expected(waiter.blockers or (), asked_for, card.hand_offs.median)
