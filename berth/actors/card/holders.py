"""What holders say and what is asked of them: starting, drains, releases, attaching again."""

from dataclasses import replace
from typing import Final, assert_never

from berth.actors.card.messages import (
    AttachHolder,
    GrantLost,
    HolderAnswered,
    HolderGone,
    HolderStarted,
    HolderWord,
    ReleaseLease,
    StopLease,
    TreeSeen,
)
from berth.actors.card.state import Waiter
from berth.actors.card.turn import Turn, next_order
from berth.actors.node.inbox import CallId, RequestRefused
from berth.actors.trees.messages import EndTree, ForgetTree, WakeHolder, WatchTree
from berth.errors import Code
from berth.ids import LeaseId, ProcessId, lease_of, request_of
from berth.lease import (
    Alive,
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

UNREADABLE_FOR: Final = Seconds(10.0)
"""How long a boundary may be unreadable before a drain stops waiting for it (H2)."""

MARGIN: Final = Seconds(5.0)
"""How much longer than a holder's own limits berthd waits before it acts itself."""

UNLOAD_WITHIN: Final = Seconds(30.0)
"""How long an unload call may take (llama-swap answers once the process is gone)."""


# --- a holder's life ------------------------------------------------------------------------------


def watch(turn: Turn, lease: Lease) -> None:
    """Have the trees actor watch a holder's processes."""
    if lease.held.holder is not None:
        turn.effects.append(
            WatchTree(
                lease=lease.id,
                card=turn.card.name,
                root=lease.held.holder,
                key=lease.terms.key,
                members=lease.held.members,
                ends_with_root=lease.terms.wrapped,
            )
        )


def start_hold(turn: Turn, lease: Granted) -> None:
    """A person's hold has nothing to start."""
    _run(turn, lease)
    turn.lease_event("started", lease)


def on_started(turn: Turn, event: HolderStarted) -> None:
    """A granted command runs."""
    lease = _mine(turn, event.call, event.lease, event.peer)
    if lease is None:
        return
    match lease:
        case Granted():
            held = replace(lease.held, members=event.members)
            if lease.terms.boundary and lease.terms.wrapped:
                ready_by = after(turn.now, lease.terms.start_limit)
                turn.change(lease, Starting(held=held, ready_by=ready_by))
            else:
                turn.change(lease, Running(held=held, ready=turn.now))
            turn.lease_event("started", lease)
        case Draining():
            held = replace(lease.held, members=event.members)
            turn.change(lease, replace(lease, held=held))
        case Starting() | Running() | Keeping() | Detached():
            pass
        case Releasing() | Stuck():
            turn.failed(event.call, Code.NOT_FOUND, f"{event.lease} was taken back")
            return
        case _:
            assert_never(lease)
    turn.done(event.call, lease, state_word(lease))


def _run(turn: Turn, lease: Granted | Starting) -> None:
    turn.change(lease, Running(held=lease.held, ready=turn.now))


def count_as_ready(turn: Turn, lease: Starting) -> None:
    """Let a start that has taken too long be asked like any other engine (Q11)."""
    _run(turn, lease)


def on_tree(turn: Turn, event: TreeSeen) -> None:
    """A holder's tree has other members than before."""
    lease = turn.card.lease(event.lease)
    if lease is not None and lease.held.members != event.members:
        seen = with_held(lease, replace(lease.held, members=event.members))
        turn.card = turn.card.with_lease(seen)
        turn.keep(seen)


def on_gone(turn: Turn, event: HolderGone) -> None:
    """A holder's process is gone, and what it left was ended."""
    lease = turn.card.lease(event.lease)
    if lease is not None and not isinstance(lease, Releasing | Stuck):
        release(turn, lease, "its process is gone")


def on_grant_lost(turn: Turn, event: GrantLost) -> None:
    """A grant could not be journaled, so nobody has seen it: it never was."""
    for lease_id in event.leases:
        lease = turn.card.lease(lease_id)
        if lease is None:
            continue
        turn.drop(lease)
        message = "berthd cannot write its journal, so nothing is granted"
        turn.then.append(
            RequestRefused(request=request_of(lease_id), code=Code.NO_JOURNAL, message=message)
        )
    turn.card = replace(turn.card, journal_writable=False)


def take_back(turn: Turn, lease: Granted) -> None:
    """Take back a grant that nobody started."""
    stopped = replace(lease, held=next_order(lease))
    turn.card = turn.card.with_lease(stopped)
    turn.order(stopped, Order.STOP, "it was not started in time", at_once=True)
    release(turn, stopped, "it was not started in time")


# --- drains ---------------------------------------------------------------------------------------


def ask(turn: Turn, lease: Lease, waiter: Waiter) -> None:
    """Ask a holder to finish for a waiter."""
    why = f"for {waiter.terms.name}"
    _order_away(turn, lease, Order.DRAIN, why, wanted_by=waiter)


def on_stop(turn: Turn, event: StopLease) -> None:
    """A person wants a lease stopped."""
    lease = turn.card.lease(event.lease)
    if lease is None or isinstance(lease, Releasing | Stuck):
        turn.failed(event.call, Code.NOT_FOUND, f"{event.lease} does not run here any more")
        return
    if lease.held.holder is None:
        release(turn, lease, "stopped by a person")
    else:
        _order_away(turn, lease, Order.STOP, "stopped by a person", at_once=event.at_once)
    turn.done(event.call, lease, "draining")


def _order_away(
    turn: Turn,
    lease: Lease,
    order: Order,
    why: str,
    *,
    wanted_by: Waiter | None = None,
    at_once: bool = False,
) -> None:
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
    deadline = after(turn.now, Seconds(lease.terms.grace + MARGIN))
    turn.change(lease, replace(lease, phase=DrainPhase.ENDING, deadline=deadline))


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
    )
    turn.change(lease, keeping)
    turn.lease_event("kept", keeping, "nobody waits any more")
    turn.order(keeping, Order.CONTINUE, "nobody waits any more")


def run_on(turn: Turn, lease: Keeping) -> None:
    """Put a holder back to what it was before it was asked."""
    turn.change(lease, with_held(lease.before, lease.held))


# --- a holder's words -----------------------------------------------------------------------------


def on_answer(turn: Turn, event: HolderAnswered) -> None:
    """Take a holder's word. A late one, to an order that was overtaken, changes nothing."""
    lease = _mine(turn, event.call, event.lease, event.peer)
    if lease is None:
        return
    turn.done(event.call, lease, state_word(lease))
    match event.word:
        case HolderWord.READY:
            _on_ready(turn, lease)
        case HolderWord.SERVED:
            if isinstance(lease, Running) and not lease.served:
                turn.change(lease, replace(lease, served=True))
        case HolderWord.RELEASED:
            if not isinstance(lease, Releasing | Stuck):
                release(turn, lease, event.why)
        case HolderWord.HEARD:
            if event.attempt == lease.held.attempt:
                _on_heard(turn, lease)
        case HolderWord.BOUNDARY:
            _on_boundary(turn, lease)
        case HolderWord.FAILED:
            turn.lease_event("failed", lease, event.why)
        case _:
            assert_never(event.word)


def _on_ready(turn: Turn, lease: Lease) -> None:
    if isinstance(lease, Starting):
        _run(turn, lease)
        turn.happened("engine.ready", name=lease.terms.name, lease=lease.id)
    elif isinstance(lease, Draining | Keeping) and isinstance(lease.before, Starting):
        ready = Running(held=lease.held, ready=turn.now)
        turn.card = turn.card.with_lease(replace(lease, before=ready))


def _on_heard(turn: Turn, lease: Lease) -> None:
    if isinstance(lease, Keeping):
        run_on(turn, lease)
    elif isinstance(lease, Draining) and lease.phase in {DrainPhase.ASKED, DrainPhase.SILENT}:
        own = (
            Seconds(lease.terms.drain_wait + UNREADABLE_FOR + UNLOAD_WITHIN)
            if lease.terms.boundary
            else Seconds(0.0)
        )
        deadline = after(turn.now, Seconds(own + lease.terms.grace + MARGIN))
        turn.change(lease, replace(lease, phase=DrainPhase.HEARD, deadline=deadline))


def _on_boundary(turn: Turn, lease: Lease) -> None:
    """Nothing is in flight and the holder is stopping: it cannot be told to run on any more."""
    within = Seconds(UNLOAD_WITHIN + lease.terms.grace + MARGIN)
    deadline = after(turn.now, within)
    if isinstance(lease, Keeping):
        draining = Draining(
            held=lease.held,
            order=Order.DRAIN,
            wanted_by=None,
            asked=lease.asked,
            phase=DrainPhase.BOUNDARY,
            deadline=deadline,
            before=lease.before,
        )
        turn.change(lease, draining)
    elif isinstance(lease, Draining) and lease.phase is not DrainPhase.ENDING:
        turn.change(lease, replace(lease, phase=DrainPhase.BOUNDARY, deadline=deadline))


def on_release(turn: Turn, event: ReleaseLease) -> None:
    """The holder gives its lease back, or a person a hold."""
    if event.peer is None:
        lease = turn.card.lease(event.lease)
        if lease is None or lease.held.holder is not None:
            turn.failed(event.call, Code.NOT_FOUND, f"{event.lease} is no hold")
            return
    else:
        lease = _mine(turn, event.call, event.lease, event.peer)
        if lease is None:
            return
    if not isinstance(lease, Releasing | Stuck):
        release(turn, lease, "its holder gave it back")
    turn.done(event.call, lease, "releasing")


def release(turn: Turn, lease: Alive, why: str) -> None:
    """Take a lease for given back. Its memory counts until a reading shows it free (B3)."""
    free_by = after(turn.now, turn.card.settings.release_grace)
    turn.change(lease, Releasing(held=lease.held, released=turn.now, free_by=free_by))
    turn.lease_event("released", lease, why)
    turn.effects.append(ForgetTree(lease=lease.id, card=turn.card.name))


# --- coming back ----------------------------------------------------------------------------------


def on_attach(turn: Turn, event: AttachHolder) -> None:
    """A holder that outlived berthd comes back: it is right about its engine (S6)."""
    known = None if event.lease is None else turn.card.lease(event.lease)
    if known is not None and known.terms.key != event.terms.key:
        turn.failed(event.call, Code.NOT_YOURS, f"{event.lease} belongs to somebody else")
        return
    match known:
        case None:
            lease: Lease = _adopted(turn, event)
        case Detached() | Releasing() | Stuck():
            lease = _returned(turn, event, known)
        case _:
            lease = _reconnected(turn, event, known)
    watch(turn, lease)
    turn.lease_event("attached", lease, f"as {state_word(lease)}")
    turn.done(event.call, lease, state_word(lease))


def _adopted(turn: Turn, event: AttachHolder) -> Running:
    """Take in a holder that has no lease here, even beyond the books (R4)."""
    measured = turn.card.measured
    held = Held(
        id=lease_of(event.request),
        terms=event.terms,
        ask=event.ask,
        holder=event.holder,
        cards=event.cards,
        granted=turn.now,
        unexplained=MiB(0) if measured is None else measured.unexplained,
        attempt=event.attempt,
        members=event.members,
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
        _order_away(turn, returned, Order.STOP, "stopped by a person before berthd restarted")
    return turn.card.lease(known.id) or running


def _reconnected(
    turn: Turn, event: AttachHolder, known: Granted | Starting | Running | Draining | Keeping
) -> Lease:
    """A holder whose connection broke: what it missed is said again, nothing else changes."""
    held = replace(known.held, holder=event.holder, members=event.members)
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


# --- shared ---------------------------------------------------------------------------------------


def _mine(turn: Turn, call: CallId, lease_id: LeaseId, peer: ProcessId) -> Lease | None:
    """Return the lease if `peer` holds it; else answer the call and return None."""
    lease = turn.card.lease(lease_id)
    if lease is None:
        turn.failed(call, Code.NOT_FOUND, f"there is no lease {lease_id}")
        return None
    if lease.held.holder != peer:
        turn.failed(call, Code.NOT_YOURS, f"{lease_id} belongs to another process")
        return None
    return lease
