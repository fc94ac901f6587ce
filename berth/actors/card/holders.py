"""What holders say and what is asked of them: starting, drains, releases, attaching again."""

from typing import assert_never

from msgspec.structs import replace

from berth.actors.card import juggle, shares
from berth.actors.card.drains import on_boundary, on_heard
from berth.actors.card.messages import (
    ConfirmGrant,
    GrantLost,
    HolderAnswered,
    HolderGone,
    HolderStarted,
    HolderWord,
    ReleaseLease,
    TreeSeen,
)
from berth.actors.card.turn import Turn
from berth.actors.node.inbox import CallId, not_written
from berth.actors.trees.messages import ForgetTree
from berth.errors import Code
from berth.ids import LeaseId, ProcessId, request_of
from berth.lease import (
    Detached,
    Draining,
    Granted,
    Keeping,
    Lease,
    Releasing,
    Running,
    Starting,
    Stuck,
    state_word,
    with_held,
)
from berth.units import after

# --- a holder's life ------------------------------------------------------------------------------


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
            held = replace(lease.held, members=event.members, scope=event.scope)
            if lease.terms.boundary and lease.terms.wrapped:
                ready_by = after(turn.now, lease.terms.start_limit)
                turn.change(lease, Starting(held=held, ready_by=ready_by))
            else:
                turn.change(lease, Running(held=held, ready=turn.now))
            turn.lease_event("started", lease)
        case Draining():
            held = replace(lease.held, members=event.members, scope=event.scope)
            turn.change(lease, replace(lease, held=held))
        case Detached():
            held = replace(lease.held, members=event.members, scope=event.scope)
            turn.change(lease, Running(held=held, ready=turn.now))
        case Starting() | Running() | Keeping():
            pass
        case Releasing() | Stuck():
            turn.failed(event.call, Code.NOT_FOUND, f"{event.lease} was taken back")
            return
        case _:
            assert_never(lease)
    turn.done(event.call, lease, state_word(lease))


def on_confirm(turn: Turn, event: ConfirmGrant) -> None:
    """Tell whether a lease is still its holder's: it may be on its way out (S6)."""
    lease = turn.card.lease(event.lease)
    if lease is None or isinstance(lease, Releasing | Stuck):
        turn.failed(event.call, Code.NOT_FOUND, f"{event.lease} was taken back")
    else:
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
        turn.release(lease, "its process is gone")


def on_grant_lost(turn: Turn, event: GrantLost) -> None:
    """A grant could not be journaled, so nobody has seen it: it never was."""
    for lease_id in event.leases:
        lease = turn.card.lease(lease_id)
        if lease is None:
            shares.on_lost(turn, lease_id)
            continue
        turn.drop(lease)
        turn.effects.append(ForgetTree(lease=lease_id, card=turn.card.name))
        turn.then.append(not_written(request_of(lease_id)))
    turn.card = replace(turn.card, journal_writable=False)


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
                turn.release(lease, event.why)
        case HolderWord.HEARD:
            # The node numbers the orders of several cards: then it may be above the card's own.
            if event.attempt >= lease.held.attempt:
                on_heard(turn, lease, event.in_flight)
        case HolderWord.BOUNDARY:
            on_boundary(turn, lease)
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
        turn.card = juggle.ready(
            turn.card.with_lease(replace(lease, before=ready)), lease.id, turn.now
        )


def on_release(turn: Turn, event: ReleaseLease) -> None:
    """The holder gives its lease back, or a person a hold."""
    if event.peer is None:
        lease = turn.card.lease(event.lease)
        if lease is None or (lease.held.holder is not None and not event.unseen):
            turn.failed(event.call, Code.NOT_FOUND, f"{event.lease} is no hold")
            return
    else:
        lease = _mine(turn, event.call, event.lease, event.peer)
        if lease is None:
            return
    if not isinstance(lease, Releasing | Stuck):
        turn.release(lease, "given back")
    turn.done(event.call, lease, "releasing")


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
