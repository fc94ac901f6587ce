"""Holders that come back: berthd or the connection was gone, or they ran without a lease."""

from msgspec.structs import replace

from berth.actors.card.drains import MARGIN, order_away
from berth.actors.card.messages import AttachHolder
from berth.actors.card.turn import Turn
from berth.errors import Code
from berth.ids import lease_of
from berth.lease import (
    Detached,
    Draining,
    DrainPhase,
    Granted,
    Held,
    Keeping,
    Lease,
    Order,
    Releasing,
    Running,
    Starting,
    Stuck,
    state_word,
    with_held,
)
from berth.units import Instant, MiB, Seconds, after

# --- coming back ----------------------------------------------------------------------------------


def on_attach(turn: Turn, event: AttachHolder) -> None:
    """A holder that outlived berthd comes back: it is right about its engine (S6)."""
    known = None if event.lease is None else turn.card.lease(event.lease)
    if known is not None and not _is_its_holder(known, event):
        turn.failed(event.call, Code.NOT_YOURS, f"{event.lease} belongs to somebody else")
        return
    match known:
        case None:
            lease: Lease = _adopted(turn, event)
        case Detached() | Releasing() | Stuck():
            lease = _returned(turn, event, known)
        case _:
            lease = _reconnected(turn, event, known)
    turn.watch(lease)
    turn.lease_event("attached", lease, f"as {state_word(lease)}")
    turn.done(event.call, lease, state_word(lease))


def _is_its_holder(known: Lease, event: AttachHolder) -> bool:
    """Tell whether who comes back has the lease's key; without one, whether it is its process."""
    if known.terms.key != event.terms.key:
        return False
    return bool(known.terms.key) or known.held.holder == event.holder


def _adopted(turn: Turn, event: AttachHolder) -> Running:
    """Take in a holder that has no lease here, even beyond the books (R4)."""
    measured = turn.card.measured
    held = Held(
        id=lease_of(event.request),
        terms=event.terms,
        ask=event.ask,
        holder=event.holder,
        cards=event.cards,
        keys=event.keys,
        granted=turn.now,
        unexplained=MiB(0) if measured is None else measured.unexplained,
        attempt=event.attempt,
        members=event.members,
        scope=event.scope,
    )
    running = Running(held=held, ready=turn.now, served=True)
    turn.add(running)
    return running


def _returned(turn: Turn, event: AttachHolder, known: Detached | Releasing | Stuck) -> Lease:
    """Take a holder's word for the state of its engine, with whole deadlines and a fresh turn."""
    held = replace(
        known.held,
        holder=event.holder,
        members=event.members,
        scope=event.scope,
        attempt=max(known.held.attempt, event.attempt),
        granted=turn.now,
    )
    running = Running(held=held, ready=Instant(turn.now - event.ran_for), served=True)
    order = known.order if isinstance(known, Detached) else None
    if event.state == "draining":
        turn.change(known, _draining_again(turn, running, order or Order.DRAIN))
    elif event.state == "starting":
        ready_by = after(turn.now, known.terms.start_limit)
        turn.change(known, Starting(held=held, ready_by=ready_by))
    else:
        turn.change(known, running)
    returned = turn.card.lease(known.id) or running
    if order is Order.STOP and not isinstance(returned, Draining):
        order_away(turn, returned, Order.STOP, "stopped by a person before berthd restarted")
    return turn.card.lease(known.id) or running


def _reconnected(
    turn: Turn, event: AttachHolder, known: Granted | Starting | Running | Draining | Keeping
) -> Lease:
    """A holder whose connection broke: what it missed is said again, nothing else changes."""
    held = replace(known.held, holder=event.holder, members=event.members, scope=event.scope)
    same = with_held(known, held)
    turn.card = turn.card.with_lease(same)
    running = Running(held=held, ready=turn.now, served=True)
    missed = event.attempt < held.attempt
    match same:
        case Draining(order=order) if missed:
            turn.order(same, order, "said again: the connection was lost")
        case Keeping() if missed:
            turn.order(same, Order.CONTINUE, "said again: the connection was lost")
        case Starting() | Running() if event.state == "draining":
            turn.change(same, _draining_again(turn, running, Order.DRAIN))
        case Granted() | Starting() if event.state == "running":
            turn.change(same, running)
        case _:
            turn.keep(same)
    return turn.card.lease(known.id) or same


def _draining_again(turn: Turn, running: Running, order: Order) -> Draining:
    """A drain that was under way goes on; one that nobody waits for any more is called off."""
    terms = running.terms
    own = terms.drain_wait if terms.boundary else terms.grace
    return Draining(
        held=running.held,
        order=order,
        wanted_by=None,
        asked=turn.now,
        phase=DrainPhase.HEARD,
        deadline=after(turn.now, Seconds(own + terms.grace + MARGIN)),
        before=running,
    )
