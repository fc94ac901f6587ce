"""What happens when a wait runs out. Every deadline of a card is looked at here, on each tick."""

from typing import assert_never

from msgspec.structs import replace

from berth.actors.card import drains, holders, juggle, shares, sight
from berth.actors.card.recovery import COME_BACK_WITHIN
from berth.actors.card.state import FRESH_FOR, Waiter
from berth.actors.card.turn import Turn
from berth.actors.trees.messages import WakeHolder
from berth.errors import Code
from berth.lease import (
    Detached,
    Draining,
    DrainPhase,
    Granted,
    Keeping,
    Lease,
    Releasing,
    Running,
    Starting,
    Stuck,
    with_held,
)
from berth.readings import Unknown, Unmeasured
from berth.standing import How, sentence
from berth.units import Instant, Seconds, after, show_duration, since


def on_tick(turn: Turn) -> None:
    """Look at every deadline of the card."""
    card = turn.card
    if card.recovering_until is not None and turn.now >= card.recovering_until:
        turn.card = replace(
            card, recovering_until=None, strangers_may_return=False, awaits_node=False
        )
    measured = card.measured
    if card.unread is None and measured is not None:
        age = since(measured.reading.taken, turn.now)
        if age > FRESH_FOR:
            sight.on_unread(turn, Unmeasured(Unknown.STALE, f"last read {show_duration(age)} ago"))
    for lease in turn.card.leases:
        _on_lease(turn, lease)
    turn.card = juggle.forget_old(turn.card, turn.now)
    shares.look_at_offers(turn)


def _on_lease(turn: Turn, lease: Lease) -> None:
    match lease:
        case Granted():
            if turn.now >= lease.start_by:
                drains.take_back(turn, lease)
            elif lease.wake_at is not None and turn.now >= lease.wake_at:
                turn.effects.append(WakeHolder(lease=lease.id))
                turn.change(lease, replace(lease, wake_at=None))
        case Starting():
            if turn.now >= lease.ready_by:
                holders.count_as_ready(turn, lease)
        case Draining():
            if turn.now >= lease.deadline:
                _on_late_drain(turn, lease)
        case Keeping():
            if turn.now >= lease.hear_by:
                drains.run_on(turn, lease)
        case Releasing():
            if turn.now >= lease.free_by:
                sight.mark_stuck(turn, lease)
        case Running():
            if lease.held.until is not None and turn.now >= lease.held.until:
                turn.release(lease, "its time is over")
        case Stuck() | Detached():
            pass
        case _:
            assert_never(lease)


def _on_late_drain(turn: Turn, lease: Draining) -> None:
    match lease.phase:
        case DrainPhase.ASKED:
            drains.wake(turn, lease)
        case DrainPhase.SILENT | DrainPhase.HEARD | DrainPhase.BOUNDARY:
            drains.end_tree(turn, lease)
        case DrainPhase.ENDING:
            turn.release(lease, "its tree was ended")
        case _:
            assert_never(lease.phase)


def on_resumed(turn: Turn, slept: Seconds) -> None:
    """The machine slept. Readings are stale, and who had so long to do something has it again (S8).

    The monotonic clock stood still meanwhile, so waits simply go on. A hold does not: it was taken
    for so long, whether the machine slept or not.
    """
    sight.on_unread(turn, Unmeasured(Unknown.STALE, "the machine was suspended"))
    turn.card = replace(turn.card, awake_since=turn.now)
    if turn.card.recovering_until is not None:
        turn.card = replace(turn.card, recovering_until=after(turn.now, COME_BACK_WITHIN))
    for lease in turn.card.leases:
        match lease:
            case Granted():  # until when its grant holds, its holder was told: that stays
                turn.change(lease, replace(lease, wake_at=turn.hear_by()))
            case Draining():
                deadline = after(turn.now, drains.whole_time(lease))
                turn.change(lease, replace(lease, deadline=deadline))
            case Keeping():
                turn.change(lease, replace(lease, hear_by=turn.hear_by()))
            case Releasing():
                free_by = after(turn.now, turn.card.settings.release_grace)
                turn.change(lease, replace(lease, free_by=free_by))
            case Starting():
                ready_by = after(turn.now, lease.terms.start_limit)
                turn.change(lease, replace(lease, ready_by=ready_by))
            case Running() if lease.held.until is not None:
                until = Instant(lease.held.until - slept)
                turn.change(lease, with_held(lease, replace(lease.held, until=until)))
            case Running() | Stuck() | Detached():
                pass
            case _:
                assert_never(lease)


def refuse_expired(turn: Turn) -> bool:
    """Refuse every waiter whose wait has run out. Tell whether there was one."""
    expired = [
        waiter
        for waiter in turn.card.queue
        if turn.now >= waiter.refuse_at and turn.card.offer(waiter.request) is None
    ]
    # Of several that expire at once, each is told what it waited for before any of them was gone.
    refusals = [(waiter, *_why_refused(turn, waiter)) for waiter in expired]
    for waiter, code, message in refusals:
        hint = f"wait longer, or look:  berth status {turn.card.name}"
        turn.refuse(waiter, code, message, hint, waited_out=True)
    return bool(expired)


def _why_refused(turn: Turn, waiter: Waiter) -> tuple[Code, str]:
    blockers = waiter.blockers or ()
    ways = {blocker.how for blocker in blockers}
    code = next((code for how, code in _CODES if how in ways), Code.WAIT_EXPIRED)
    waited = show_duration(since(waiter.arrived, turn.now))
    why = f"{sentence(blockers)}{_ahead(turn, waiter)}"
    return code, f"no room on {turn.card.name} in {waited}: {why}"


def _ahead(turn: Turn, waiter: Waiter) -> str:
    """Return what the one in front waits for, where one stands behind another only."""
    in_front = {one.ref for one in waiter.blockers or () if one.how is How.FIRST_IN_LINE}
    for other in turn.card.queue:
        if other.request in in_front and other.blockers:
            return f", and waits itself: {sentence(other.blockers)}"
    return ""


_CODES = (
    (How.UNMEASURED, Code.UNMEASURED),
    (How.WAKING, Code.UNMEASURED),
    (How.NO_JOURNAL, Code.NO_JOURNAL),
    (How.PINNED, Code.PINNED),
    (How.JUGGLE, Code.OUTRANKED),
)
