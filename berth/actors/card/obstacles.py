"""Who may be drained for whom (Q2, Q4, Q5, Q11), and what a lease is to who waits for its end."""

from typing import Final, TypeGuard

from berth.actors.card import juggle
from berth.actors.card.state import Card, Waiter
from berth.lease import (
    Detached,
    Draining,
    DrainPhase,
    Granted,
    Keeping,
    Lease,
    Order,
    Priority,
    Releasing,
    Running,
    Starting,
    Stuck,
)
from berth.standing import Blocker, How
from berth.units import Instant, Seconds, after, left

ANSWER_FIRST_FOR: Final = Seconds(3.0)
"""How long a ready engine is left alone to answer its first request (Q11)."""

_RECALLABLE: Final = frozenset({DrainPhase.ASKED, DrainPhase.SILENT, DrainPhase.HEARD})


def is_leaving(lease: Lease) -> bool:
    """Tell whether a lease will be gone without anybody asking, and cannot be told to stay."""
    match lease:
        case Releasing():
            return True
        case Draining():
            return not is_recallable(lease)
        case _:
            return False


def is_recallable(lease: Lease) -> TypeGuard[Draining]:
    """Tell whether a holder was asked, and could still be told to run on (Q3)."""
    return isinstance(lease, Draining) and lease.order is Order.DRAIN and lease.phase in _RECALLABLE


def obstacle(card: Card, waiter: Waiter, lease: Lease, now: Instant) -> Blocker | None:
    """Return why `waiter` may not have `lease` drained now, None when it may (Q2, Q4, Q5, Q11)."""
    terms = lease.terms
    in_the_way = as_blocker(lease)
    by_a_person = waiter.terms.priority is Priority.HOLD
    if isinstance(lease, Granted | Stuck) or lease.held.holder is None:
        return in_the_way
    if not terms.boundary and terms.fail_closed:
        return _blocker(lease, How.BUSY)
    if by_a_person:
        return None
    if terms.pinned:
        return _blocker(lease, How.PINNED)
    if waiter.terms.priority < terms.priority:
        return _blocker(lease, How.OUTRANKS)
    if waiter.terms.priority > terms.priority:
        return _turn(lease, now)
    if not terms.boundary:
        return _blocker(lease, How.BUSY)
    return _kept_from_its_like(card, waiter, lease, now)


def _turn(lease: Lease, now: Instant) -> Blocker | None:
    """Return the turn that a holder is in, where its end is what lets the order go out (Q4)."""
    ends = after(lease.held.granted, lease.terms.min_turn)
    return _blocker(lease, How.IN_TURN, left(ends, now)) if now < ends else None


def _kept_from_its_like(card: Card, waiter: Waiter, lease: Lease, now: Instant) -> Blocker | None:
    """Return what keeps a holder with a boundary from its own priority: what lasts the longest."""
    found = [_turn(lease, now), _still_to_answer(lease, now)]
    remaining = juggle.turn_left(card, waiter, lease, now)
    if remaining is not None and not is_recallable(lease):
        found.insert(0, _blocker(lease, How.JUGGLE, remaining))
    return max(filter(None, found), key=lambda one: one.left or 0.0, default=None)


def _still_to_answer(lease: Lease, now: Instant) -> Blocker | None:
    """Return the blocker that an engine is until it has answered a request, or could have (Q11)."""
    match lease:
        case Starting():
            return _blocker(lease, How.STARTING)
        case Running(served=False) if now < after(lease.ready, ANSWER_FIRST_FOR):
            return _blocker(lease, How.STARTING, left(after(lease.ready, ANSWER_FIRST_FOR), now))
        case Draining(before=before) | Keeping(before=before):  # asked for somebody else, now gone
            return _still_to_answer(before, now)
        case _:
            return None


def as_blocker(lease: Lease) -> Blocker:
    """Return what a lease is to somebody who waits for it to end."""
    match lease:
        case Granted() | Starting():
            return _blocker(lease, How.STARTING)
        case Draining() | Keeping():
            return _blocker(lease, How.DRAINING)
        case Releasing():
            return _blocker(lease, How.RELEASING)
        case Stuck():
            return _blocker(lease, How.STUCK)
        case Detached():
            return _blocker(lease, How.DETACHED)
        case Running():
            return _blocker(lease, How.HELD if lease.held.holder is None else How.DRAINING)


def _blocker(lease: Lease, how: How, left_: Seconds | None = None) -> Blocker:
    return Blocker(who=lease.name, how=how, ref=lease.id, left=left_)
