"""Orders to holders: asked to finish for somebody, told to run on, stopped by a person."""

from typing import Final, assert_never

from msgspec.structs import replace

from berth.actors.card.messages import StopLease
from berth.actors.card.state import Waiter
from berth.actors.card.turn import Turn, next_order
from berth.actors.trees.messages import EndTree, WakeHolder
from berth.errors import Code
from berth.lease import (
    HEAR_WITHIN,
    Detached,
    Draining,
    DrainPhase,
    Granted,
    Keeping,
    Lease,
    Order,
    Releasing,
    Running,
    Starting,
    Stuck,
    with_held,
)
from berth.units import Seconds, after

UNREADABLE_FOR: Final = Seconds(10.0)
"""How long a boundary may be unreadable before a drain stops waiting for it (H2)."""

MARGIN: Final = Seconds(5.0)
"""How much longer than a holder's own limits berthd waits before it acts itself."""

UNLOAD_WITHIN: Final = Seconds(30.0)
"""How long an unload call may take (llama-swap answers once the process is gone)."""


def ask_to_finish(turn: Turn, lease: Lease, waiter: Waiter) -> None:
    """Ask a holder to finish for a waiter."""
    why = f"for {waiter.terms.name}"
    if waiter.ordered is None and turn.card.waiter(waiter.request) is not None:
        turn.swap(replace(waiter, ordered=turn.now))
    order_away(turn, lease, Order.DRAIN, why, wanted_by=waiter)


def on_stop(turn: Turn, event: StopLease) -> None:
    """A person wants a lease stopped."""
    lease = turn.card.lease(event.lease)
    if lease is None or isinstance(lease, Releasing | Stuck):
        turn.failed(event.call, Code.NOT_FOUND, f"{event.lease} does not run here any more")
        return
    if lease.held.holder is None:
        turn.release(lease, "stopped by a person")
    else:
        order_away(turn, lease, Order.STOP, "stopped by a person", at_once=event.at_once)
    turn.done(event.call, lease, "draining")


def order_away(
    turn: Turn,
    lease: Lease,
    order: Order,
    why: str,
    *,
    wanted_by: Waiter | None = None,
    at_once: bool = False,
) -> None:
    """Order a holder to give its lease back."""
    draining = Draining(
        held=next_order(lease),
        order=order,
        wanted_by=None if wanted_by is None else wanted_by.request,
        asked=turn.now,
        phase=DrainPhase.ASKED,
        deadline=turn.hear_by(),
        before=_before(turn, lease),
    )
    turn.change(lease, draining)
    turn.lease_event("draining", draining, why, order=order.value)
    turn.order(draining, order, why, at_once=at_once)
    if order is Order.STOP and not lease.terms.wrapped:
        turn.effects.append(EndTree(lease=lease.id, grace=lease.terms.grace))


def _before(turn: Turn, lease: Lease) -> Starting | Running:
    """Return what an ordered lease goes back to when it is told to run on."""
    match lease:
        case Starting() | Running():
            return lease
        case Draining() | Keeping():
            return lease.before
        case Granted() | Detached() | Releasing() | Stuck():
            return Running(held=lease.held, ready=turn.now)
        case _:
            assert_never(lease)


def wake(turn: Turn, lease: Draining) -> None:
    """An order was not heard: wake the holder, in case it is stopped (H6)."""
    turn.effects.append(WakeHolder(lease=lease.id))
    deadline = after(lease.asked, _silence_allowed(lease))
    turn.change(lease, replace(lease, phase=DrainPhase.SILENT, deadline=deadline))


def whole_time(lease: Draining) -> Seconds:
    """Return how long the phase that a drain is in may take."""
    terms = lease.terms
    match lease.phase:
        case DrainPhase.ASKED:
            return HEAR_WITHIN
        case DrainPhase.SILENT:
            return _silence_allowed(lease)
        case DrainPhase.HEARD:
            within = terms.drain_wait + UNREADABLE_FOR + UNLOAD_WITHIN if terms.boundary else 0.0
        case DrainPhase.BOUNDARY:
            within = UNLOAD_WITHIN
        case DrainPhase.ENDING:
            within = 0.0
        case _:
            assert_never(lease.phase)
    return Seconds(within + terms.grace + MARGIN)


def _in_phase(turn: Turn, lease: Draining, phase: DrainPhase) -> Draining:
    """Return the drain in a phase that begins now."""
    lease = replace(lease, phase=phase)
    return replace(lease, deadline=after(turn.now, whole_time(lease)))


def _silence_allowed(lease: Draining) -> Seconds:
    """Return how long a holder that does not answer is left alone, from the order on (H6)."""
    own = lease.terms.drain_wait if lease.terms.boundary else lease.terms.grace
    return Seconds(own + MARGIN)


def end_tree(turn: Turn, lease: Draining) -> None:
    """Stop the tree of a late holder. One that is never cut is waited for, and so is a script."""
    spared = lease.terms.fail_closed or not lease.terms.wrapped
    if spared and lease.order is Order.DRAIN:
        deadline = after(turn.now, _silence_allowed(lease))
        turn.change(lease, replace(lease, deadline=deadline))
        return
    turn.effects.append(EndTree(lease=lease.id, grace=lease.terms.grace))
    turn.change(lease, _in_phase(turn, lease, DrainPhase.ENDING))


def take_back(turn: Turn, lease: Granted) -> None:
    """Take back a grant that nobody started.

    A wrapper that is silent may yet wake and start: its tree is ended before the memory is given
    to somebody else. (Late itself, it does not start: it knows until when the grant held.)
    """
    why = "it was not started in time"
    stopping = Draining(
        held=next_order(lease),
        order=Order.STOP,
        wanted_by=None,
        asked=turn.now,
        phase=DrainPhase.ENDING,
        deadline=after(turn.now, MARGIN),
        before=Running(held=lease.held, ready=turn.now),
    )
    if lease.terms.wrapped:
        turn.change(lease, stopping)
        turn.lease_event("draining", stopping, why, order=Order.STOP.value)
        turn.effects.append(EndTree(lease=lease.id, grace=Seconds(0.0)))
    else:
        turn.release(lease, why)
    turn.order(stopping, Order.STOP, why, at_once=True)


def recall(turn: Turn, lease: Draining, wanted_by: Waiter | None) -> None:
    """Note whom an asked holder makes room for; tell it to run on when that is nobody (Q3)."""
    if wanted_by is not None:
        if lease.wanted_by != wanted_by.request:
            turn.change(lease, replace(lease, wanted_by=wanted_by.request))
        return
    keeping = Keeping(
        held=next_order(lease),
        hear_by=turn.hear_by(),
        asked=lease.asked,
        before=lease.before,
        in_flight=lease.in_flight,
    )
    turn.change(lease, keeping)
    turn.lease_event("kept", keeping, "nobody waits any more")
    turn.order(keeping, Order.CONTINUE, "nobody waits any more")


def run_on(turn: Turn, lease: Keeping) -> None:
    """Put a holder back to what it was before it was asked."""
    turn.change(lease, with_held(lease.before, lease.held))


def on_heard(turn: Turn, lease: Lease, in_flight: int | None) -> None:
    """A holder has heard its latest order, or says again how much is still in flight."""
    if isinstance(lease, Draining) and in_flight is not None:
        lease = replace(lease, in_flight=in_flight)
        turn.card = turn.card.with_lease(lease)
    if isinstance(lease, Keeping):
        run_on(turn, lease)
    elif isinstance(lease, Draining) and lease.phase in {DrainPhase.ASKED, DrainPhase.SILENT}:
        turn.change(lease, _in_phase(turn, lease, DrainPhase.HEARD))


def on_boundary(turn: Turn, lease: Lease) -> None:
    """Nothing is in flight and the holder is stopping: it cannot be told to run on any more."""
    if isinstance(lease, Keeping):
        draining = Draining(
            held=lease.held,
            order=Order.DRAIN,
            wanted_by=None,
            asked=lease.asked,
            phase=DrainPhase.BOUNDARY,
            deadline=lease.hear_by,
            before=lease.before,
        )
        turn.change(lease, _in_phase(turn, draining, DrainPhase.BOUNDARY))
    elif isinstance(lease, Draining) and lease.phase is not DrainPhase.ENDING:
        turn.change(lease, _in_phase(turn, lease, DrainPhase.BOUNDARY))
