"""A card as status shows it."""

from berth.actors.card.books import Books, close
from berth.actors.card.state import Card, Measured, Waiter
from berth.lease import Ask, Draining, Keeping, Lease, Releasing, Stuck, WholeCard, state_word
from berth.readings import Figure, GpuProcess, Unknown, Unmeasured
from berth.standing import Blocker, sentence
from berth.units import Instant, Seconds, after, left, show_duration, since
from berth.views import BlockerView, CardStatus, CardView, LeaseView, StowawayView, WaiterView


def describe(card: Card, now: Instant) -> CardStatus:
    """Return all that is on the card."""
    return CardStatus(
        card=_card(card, now),
        leases=tuple(_lease(card, lease, now) for lease in card.leases),
        waiting=tuple(_waiter(card, w, place, now) for place, w in enumerate(card.queue, 1)),
        stowaways=_stowaways(card),
    )


def _card(card: Card, now: Instant) -> CardView:
    who = card.identity
    measured = card.measured
    books = None if measured is None else close(card, measured)
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
        free_mib=_free(known, books),
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
    )


def _free(known: Measured | None, books: Books | None) -> int | None:
    """Return what the driver shows free."""
    return None if known is None or books is None else known.reading.free


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
        return None
    return card.unread.detail or card.unread.why.value.replace("_", " ")


def _mib(ask: Ask) -> int | None:
    return None if isinstance(ask, WholeCard) else ask


def _lease(card: Card, lease: Lease, now: Instant) -> LeaseView:
    held = lease.held
    measured = card.measured
    used = None
    if measured is not None and lease.id not in measured.unsized:
        used = int(measured.used.get(lease.id, 0))
    return LeaseView(
        lease=lease.id,
        card=card.name,
        cards=held.cards or (card.name,),
        name=lease.name,
        group=lease.terms.group,
        priority=lease.terms.priority.word,
        state=state_word(lease),
        ask_mib=_mib(held.ask),
        used_mib=used,
        lent_mib=0,
        since_s=round(since(held.granted, now), 2),
        turn_left_s=round(left(after(held.granted, lease.terms.min_turn), now), 2),
        pinned=lease.terms.pinned,
        pids=() if measured is None else measured.pids.get(lease.id, ()),
        containers=lease.terms.containers,
        model=None,
        note=_note(card, lease, now),
    )


def _note(card: Card, lease: Lease, now: Instant) -> str | None:
    """Return what a person should know of a lease that is not simply at work."""
    match lease:
        case Draining(wanted_by=wanted_by):
            waiter = None if wanted_by is None else card.waiter(wanted_by)
            whom = "by a person" if waiter is None else f"for {waiter.terms.name}"
            return f"asked to finish {whom} {_ago(lease.asked, now)} ago"
        case Keeping():
            return "told to run on: nobody waits any more"
        case Releasing():
            return f"said it released {_ago(lease.released, now)} ago"
        case Stuck():
            said = f"said it released {_ago(lease.released, now)} ago"
            return f"{said}, but {card.name} still shows it; way out: berth reclaim {lease.name}"
        case _:
            return None


def _ago(when: Instant, now: Instant) -> str:
    return show_duration(since(when, now))


def _waiter(card: Card, waiter: Waiter, place: int, now: Instant) -> WaiterView:
    blockers = waiter.blockers or ()
    return WaiterView(
        request=waiter.request,
        card=card.name,
        cards=waiter.cards or (card.name,),
        name=waiter.terms.name,
        priority=waiter.terms.priority.word,
        ask_mib=_mib(waiter.ask),
        position=place,
        waited_s=round(since(waiter.arrived, now), 2),
        wait_left_s=round(left(waiter.refuse_at, now), 2),
        code=blockers[0].how.value if blockers else "ready",
        why=sentence(blockers),
        blockers=tuple(_blocker(blocker) for blocker in blockers),
        eta_s=None,
        eta_of=None,
    )


def _blocker(blocker: Blocker) -> BlockerView:
    left_s: Seconds | None = blocker.left
    return BlockerView(
        who=blocker.who,
        how=blocker.how.value,
        left_s=None if left_s is None else round(left_s, 2),
        ref=blocker.ref,
    )


def _stowaways(card: Card) -> tuple[StowawayView, ...]:
    if card.measured is None:
        return ()
    return tuple(_stowaway(card, row) for row in card.measured.stowaways)


def _stowaway(card: Card, row: GpuProcess) -> StowawayView:
    return StowawayView(
        card=card.name,
        pid=row.process.pid,
        name=row.name,
        container=None,
        used_mib=None if isinstance(row.used, Unmeasured) else row.used,
        squatter=row.name not in card.settings.allow,
    )
