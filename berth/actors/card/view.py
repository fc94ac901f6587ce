"""A card as status shows it."""

import re
from typing import Final

import msgspec

from berth.actors.card.books import Books, close
from berth.actors.card.outlook import eta, in_flight
from berth.actors.card.state import Card, Waiter
from berth.actors.card.usage import needs
from berth.lease import (
    Detached,
    Draining,
    DrainPhase,
    Keeping,
    Lease,
    Order,
    Priority,
    Releasing,
    Stuck,
    mib_of,
    state_word,
)
from berth.readings import Figure, GpuProcess, Unknown, Unmeasured
from berth.standing import Blocker, How, Outlook, count, sentence
from berth.units import Instant, after, left, show_duration, show_gib, since
from berth.views import (
    BlockerView,
    CardStatus,
    CardView,
    InFlight,
    LeaseView,
    StowawayView,
    WaiterView,
    blocker_view,
)

_A_YEAR: Final = 365 * 86400.0
"""From a wait of so many seconds on there is no end to be told: scripts ask for ten of them."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def describe(card: Card, now: Instant) -> CardStatus:
    """Return all that is on the card."""
    books = None if card.measured is None else close(card, card.measured)
    return CardStatus(
        card=_card(card, books, now),
        leases=tuple(_lease(card, lease, books, now) for lease in card.leases),
        waiting=_waiting(card, books, now),
        stowaways=_stowaways(card),
    )


def _card(card: Card, books: Books | None, now: Instant) -> CardView:
    who = card.identity
    measured = card.measured
    median = card.hand_offs.median
    known = measured if card.unread is None else None
    health = None if known is None else known.reading.health
    return CardView(
        card=card.name,
        index=who.index,
        uuid=who.uuid,
        pci=who.pci,
        product=who.product,
        vendor=who.vendor,
        total_mib=None if measured is None else measured.reading.total,
        used_mib=None if known is None else known.reading.used,
        free_mib=None if known is None else known.reading.free,
        baseline_mib=None if measured is None else measured.baseline,
        unexplained_mib=None if known is None else known.unexplained,
        capacity_mib=None if measured is None else measured.capacity,
        state=_state(card),
        why=_why(card),
        reading_age_s=None if measured is None else round(since(measured.reading.taken, now), 2),
        utilisation_pct=None if health is None else _figure(health.utilisation_pct),
        temperature_c=None if health is None else _figure(health.temperature_c),
        power_w=None if health is None else _figure(health.power_w),
        power_limit_w=None if health is None else _figure(health.power_limit_w),
        fan_pct=None if health is None else _figure(health.fan_pct),
        clamped_mib=0 if known is None else known.clamped,
        books_free_mib=None if books is None or known is None else books.free,
        driver_free_mib=None if books is None or known is None else books.driver_free,
        room_mib=None if books is None or known is None else max(0, books.room),
        handoffs=card.hand_offs.count,
        handoff_median_s=None if median is None else round(median, 2),
    )


def _figure(figure: Figure) -> float | None:
    return None if isinstance(figure, Unmeasured) else figure


def _state(card: Card) -> str:
    if card.unread is None:
        return "ok"
    if card.unread.why is Unknown.LOST:
        return "lost"
    return "asleep" if card.unread.why is Unknown.ASLEEP else "unmeasured"


def _why(card: Card) -> str | None:
    if card.unread is None:
        return card.measured.reading.blind or None if card.measured is not None else None
    return card.unread.detail or card.unread.why.value.replace("_", " ")


def _lease(card: Card, lease: Lease, books: Books | None, now: Instant) -> LeaseView:
    held = lease.held
    measured = card.measured
    used = None
    if measured is not None and lease.id not in measured.unsized:
        used = int(measured.used.get(lease.id, 0))
    flying = in_flight(lease)
    return LeaseView(
        lease=lease.id,
        card=card.name,
        cards=held.cards or (card.name,),
        name=lease.name,
        group=lease.terms.group,
        priority=lease.terms.priority.word,
        state=state_word(lease),
        ask_mib=mib_of(held.ask),
        used_mib=used,
        lent_mib=0,
        since_s=round(since(held.granted, now), 2),
        turn_left_s=round(left(after(held.granted, lease.terms.min_turn), now), 2),
        pinned=lease.terms.pinned,
        pids=() if measured is None else measured.pids.get(lease.id, ()),
        containers=lease.terms.containers,
        model=None,
        est_mib=needs(card, lease.name),
        note=note(card, lease, now),
        way_out=_way_out(lease),
        counts_mib=None if books is None else books.counts[lease.id],
        in_flight=None if flying is None else InFlight(n=flying, what="reply"),
        for_=lease.wanted_by if isinstance(lease, Draining) else None,
        left_s=None if held.until is None else round(left(held.until, now), 2),
        boundary=lease.terms.boundary,
    )


def note(card: Card, lease: Lease, now: Instant) -> str | None:
    """Return what a person should know of a lease that is not simply at work."""
    own = _note(card, lease, now)
    if card.unread is None or isinstance(lease, Releasing | Stuck):
        return own
    used = None if card.measured is None else card.measured.used.get(lease.id)
    last = "" if used is None else f": last seen with {show_gib(used)} GiB"
    blind = f"{card.name} cannot be read{last}; it grants nothing"
    return blind if own is None else f"{own}; {blind}"


def _note(card: Card, lease: Lease, now: Instant) -> str | None:
    match lease:
        case Draining():
            return _asked(card, lease, now)
        case Keeping():
            return "told to run on: nobody waits any more"
        case Releasing():
            return f"said it released {_ago(lease.released, now)} ago; the card must show it free"
        case Stuck():
            used = 0 if card.measured is None else card.measured.used.get(lease.id, lease.had)
            said = f"said it released {_ago(lease.released, now)} ago"
            return f"{said}, but {card.name} still shows {show_gib(used)} GiB"
        case Detached():
            return "runs, but its berth run has not answered since berthd started"
        case _ if lease.held.holder is None:
            return _held(lease, now)
        case _:
            return None


def _asked(card: Card, lease: Draining, now: Instant) -> str:
    """Return whom a holder was asked to finish for, and how far it is."""
    waiter = None if lease.wanted_by is None else card.waiter(lease.wanted_by)
    whom = "by a person" if waiter is None else f"for {waiter.terms.name}"
    verb = "stop" if lease.order is Order.STOP else "finish"
    flying = in_flight(lease)
    far = ""
    if lease.phase is DrainPhase.SILENT:
        far = "; it does not answer"
    elif lease.phase is DrainPhase.ENDING:
        far = "; too late, so berthd stops it"
    elif flying is not None:
        far = f"; {count(flying, 'reply')} in flight" if flying else "; it is stopping"
    return f"asked to {verb} {whom} {_ago(lease.asked, now)} ago{far}"


def _held(lease: Lease, now: Instant) -> str:
    """Return what a person's hold is for, and until when."""
    until = lease.held.until
    ends = "until berth release" if until is None else f"for {show_duration(left(until, now))} more"
    why = f"{lease.terms.reason}; " if lease.terms.reason else ""
    return f"{why}held by a person {ends}"


def _way_out(lease: Lease) -> str | None:
    """Return the command that helps. A name that a shell would take apart is not put into one."""
    if not isinstance(lease, Stuck):
        return None
    return f"berth reclaim {lease.name if _PLAIN.fullmatch(lease.name) else lease.id}"


def _ago(when: Instant, now: Instant) -> str:
    return show_duration(since(when, now))


def _waiting(card: Card, books: Books | None, now: Instant) -> tuple[WaiterView, ...]:
    """Return the queue. Most who wait do so for the same reason, which is put into words once."""
    room = None if books is None else max(0, books.room)
    said: dict[tuple[int, Outlook | None, Instant | None], _Reason] = {}
    rows = []
    for place, waiter in enumerate(card.queue, 1):
        what = (id(waiter.blockers), waiter.outlook, waiter.ordered)
        reason = said.get(what)
        if reason is None:
            reason = said[what] = _reason(card, waiter, now)
        rows.append(_waiter(card, waiter, reason, place, room, now))
    return tuple(rows)


class _Reason(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a waiter waits, as it is shown."""

    code: str
    why: str
    blockers: tuple[BlockerView, ...]
    eta_s: float | None
    eta_of: str | None


def _reason(card: Card, waiter: Waiter, now: Instant) -> _Reason:
    blockers = waiter.blockers or ()
    likely = eta(card, waiter, now)
    return _Reason(
        code=_code(blockers),
        why=sentence(blockers, waiter.outlook),
        blockers=tuple(blocker_view(blocker) for blocker in blockers),
        eta_s=None if likely is None else round(likely.left, 2),
        eta_of=None if likely is None else likely.of,
    )


def _waiter(
    card: Card, waiter: Waiter, reason: _Reason, place: int, room: int | None, now: Instant
) -> WaiterView:
    size = mib_of(waiter.ask)
    return WaiterView(
        request=waiter.request,
        card=card.name,
        cards=waiter.cards or (card.name,),
        name=waiter.terms.name,
        priority=waiter.terms.priority.word,
        ask_mib=size,
        position=place,
        waited_s=round(since(waiter.arrived, now), 2),
        wait_left_s=_wait_left(waiter, now),
        code=reason.code,
        why=reason.why,
        blockers=reason.blockers,
        eta_s=reason.eta_s,
        eta_of=reason.eta_of,
        short_mib=None if room is None or size is None else max(0, size - room),
        then_mib=None if waiter.outlook is None else waiter.outlook.then,
    )


def _wait_left(waiter: Waiter, now: Instant) -> float | None:
    """Return how long it still waits, None for who waits as long as it takes."""
    remaining = left(waiter.refuse_at, now)
    if waiter.terms.priority is Priority.HOLD or remaining > _A_YEAR:
        return None
    return round(remaining, 2)


def _code(blockers: tuple[Blocker, ...]) -> str:
    """Return the code of the first reason; a turn kept by the juggle guard is `outranked` (Q5)."""
    if not blockers:
        return "ready"
    how = blockers[0].how
    return "outranked" if how in {How.JUGGLE, How.OUTRANKS} else how.value


def _stowaways(card: Card) -> tuple[StowawayView, ...]:
    if card.measured is None:
        return ()
    foreign = card.measured.foreign
    return tuple(
        _stowaway(card, row, has_lease=row.process in foreign) for row in card.measured.stowaways
    )


def _stowaway(card: Card, row: GpuProcess, *, has_lease: bool) -> StowawayView:
    """Return a row; a holder of another card is named after its lease, and no squatter (B6)."""
    return StowawayView(
        card=card.name,
        pid=row.process.pid,
        name=row.name,
        container=None,
        used_mib=None if isinstance(row.used, Unmeasured) else row.used,
        squatter=not has_lease and row.name not in card.settings.allow,
    )
