"""The queue of one card: who is granted now, whom to ask, and why the others wait.

`plan` walks the queue in order of turn. For each waiter, in this order:

 1. Its namesake is still there (R10): it waits, and holds nobody up.
 2. Somebody ahead would be delayed by it (Q7): it waits. The *slack* is how much may be handed out
    past those ahead without any of them fitting later than it would have.
 3. It fits in the books and on the card (B4): it is granted, and the walk ends; the next walk
    starts from books that hold the grant.
 4. It will fit once those already leaving are gone: it waits for them.
 5. It will fit once holders that it may drain (Q2) are gone: of the sets of them that make it fit,
    with no member that could be left out, the best is asked (Q6).
 6. Nobody that it may drain can make it fit: it asks nobody, and waits for whoever stands there.

A holder that was asked for somebody who has left since is a candidate like any other, but one that
costs nothing: it is asked already. One that nobody needs any more is told to run on (Q3).
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, TypeGuard

import msgspec

from berth.actors.card.books import Books, fits
from berth.actors.card.state import Card, Waiter
from berth.ids import LeaseId, RequestId
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
    WholeCard,
)
from berth.readings import Unmeasured
from berth.standing import Blocker, How
from berth.units import Instant, Seconds, after, left

ANSWER_FIRST_FOR: Final = Seconds(3.0)
"""How long a ready engine is left alone to answer its first request (Q11)."""

_EXACT_UP_TO: Final = 8
"""Up to this many candidates every set is looked at; beyond it a good one is built."""

_RECALLABLE: Final = frozenset({DrainPhase.ASKED, DrainPhase.SILENT, DrainPhase.HEARD})


class Plan(msgspec.Struct):
    """What comes of one walk: a grant, or what everybody who waits is waiting for.

    `asks` pairs a holder with the waiter that wants it gone; `needed` says for each holder asked
    already who still counts on it.
    """

    grant: Waiter | None = None
    asks: list[tuple[Lease, Waiter]] = msgspec.field(default_factory=list)
    needed: dict[LeaseId, Waiter] = msgspec.field(default_factory=dict)
    blockers: dict[RequestId, tuple[Blocker, ...]] = msgspec.field(default_factory=dict)


def plan(card: Card, books: Books, now: Instant) -> Plan:
    """Decide for the waiters of a card whose reading is fresh."""
    walk = _Walk(card, books, now)
    for waiter in card.queue:
        walk.visit(waiter)
        if walk.plan.grant is not None:
            break
    return walk.plan


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that stands in a waiter's way: what its end would bring, and what asking costs."""

    lease: Lease
    gain: int
    asked: bool
    obstacle: Blocker | None


class _Walk:
    """One walk through the queue; the steps are those at the top of this file.

    `coming` is memory of leases that leave or will be asked, `reserved` the part of free and
    coming memory that waiters ahead will take.
    """

    def __init__(self, card: Card, books: Books, now: Instant) -> None:
        self.plan = Plan()
        self._card = card
        self._books = books
        self._now = now
        self._leaving = [lease for lease in card.leases if _is_leaving(lease)]
        self._coming = sum(books.counts[lease.id] for lease in self._leaving)
        self._reserved = 0
        self._slack: float = float("inf")
        self._first: tuple[Blocker, ...] = ()

    def visit(self, waiter: Waiter) -> None:
        """Take one waiter through the steps."""
        if waiter.behind:
            namesake = Blocker(who=waiter.terms.name, how=How.SAME_NAME, ref=waiter.behind)
            self.plan.blockers[waiter.request] = (namesake,)
        elif self._first and self._size(waiter) > self._slack:
            self.plan.blockers[waiter.request] = self._first
            self._slack = min(self._slack, self._ever_free() - self._size(waiter))
        elif fits(waiter.ask, waiter.terms.priority, self._books):
            self.plan.grant = waiter
        else:
            self._block(waiter)

    def _size(self, waiter: Waiter) -> int:
        if isinstance(waiter.ask, WholeCard):
            return self._books.capacity
        return waiter.ask

    def _ever_free(self) -> int:
        return self._books.capacity - self._books.stowaways - self._books.unexplained

    def _free_for(self, waiter: Waiter) -> int:
        """Return what the books have for this waiter now; a hold looks at leases only (B4)."""
        if waiter.terms.priority is Priority.HOLD:
            return self._books.capacity - sum(self._books.counts.values())
        return self._books.free

    def _block(self, waiter: Waiter) -> None:
        """Steps 4 to 6: find out what would make it fit, and ask for it where that is allowed."""
        staying = [self._candidate(waiter, lease) for lease in self._staying()]
        if isinstance(waiter.ask, WholeCard):
            self._clear_card(waiter, staying)
        else:
            self._make_room(waiter, staying, waiter.ask)
        if not self._first:
            self._first = (
                Blocker(who=waiter.terms.name, how=How.FIRST_IN_LINE, ref=waiter.request),
            )

    def _staying(self) -> list[Lease]:
        gone = {lease.id for lease in self._leaving}
        return [lease for lease in self._card.leases if lease.id not in gone]

    def _candidate(self, waiter: Waiter, lease: Lease) -> _Candidate:
        return _Candidate(
            lease=lease,
            gain=self._books.counts[lease.id],
            asked=is_recallable(lease),
            obstacle=obstacle(waiter, lease, self._now),
        )

    def _clear_card(self, waiter: Waiter, staying: list[_Candidate]) -> None:
        """For a whole card everybody has to go, and nobody may pass."""
        self._slack = 0
        obstacles = [candidate for candidate in staying if candidate.obstacle is not None]
        if not obstacles:
            self._ask(waiter, staying)
        self._wait(waiter, obstacles or staying, beyond_leases=not self._leaving and not staying)

    def _make_room(self, waiter: Waiter, staying: list[_Candidate], size: int) -> None:
        free = self._free_for(waiter) + self._coming - self._reserved
        shortfall = size - free
        if shortfall <= 0:
            self._reserved += size
            self._slack = min(self._slack - size, free - size)
            self._wait(waiter, [], beyond_leases=not self._leaving)
            return
        drainable = [candidate for candidate in staying if candidate.obstacle is None]
        chosen = choose(drainable, shortfall)
        if chosen is not None:
            self._ask(waiter, chosen)
            self._reserved += size
            self._slack = min(self._slack - size, free + _gain(chosen) - size)
            self._wait(waiter, chosen, beyond_leases=False)
            return
        waited_for = choose(staying, shortfall)
        everybody = staying if waited_for is None else waited_for
        freed = _gain(everybody)
        room = self._ever_free() - self._reserved if waited_for is None else free + freed
        self._reserved += max(0, size - freed)
        self._slack = min(self._slack, max(0, room - size))
        in_the_way = [candidate for candidate in everybody if candidate.obstacle is not None]
        self._wait(waiter, in_the_way, beyond_leases=waited_for is None)

    def _ask(self, waiter: Waiter, chosen: Sequence[_Candidate]) -> None:
        for candidate in chosen:
            self._leaving.append(candidate.lease)
            self._coming += candidate.gain
            if candidate.asked:
                self.plan.needed[candidate.lease.id] = waiter
            else:
                self.plan.asks.append((candidate.lease, waiter))

    def _wait(self, waiter: Waiter, others: Sequence[_Candidate], *, beyond_leases: bool) -> None:
        """Note what is in the waiter's way: those that leave, the others, the rest of the card."""
        leaving = {lease.id: _as_blocker(lease) for lease in self._leaving}
        for candidate in others:
            if candidate.obstacle is not None:
                leaving[candidate.lease.id] = candidate.obstacle
        blockers = tuple(leaving.values())
        if beyond_leases:
            blockers += self._strangers()
        self.plan.blockers[waiter.request] = blockers

    def _strangers(self) -> tuple[Blocker, ...]:
        """Return what is in the way that no lease explains."""
        measured = self._card.measured
        rows = () if measured is None else measured.stowaways
        named = tuple(
            Blocker(who=row.name or f"pid {row.process.pid}", how=How.STOWAWAY, ref=self._card.name)
            for row in rows
            if isinstance(row.used, Unmeasured) or row.used > 0
        )
        if named:
            return named
        return (Blocker(who=self._card.name, how=How.UNEXPLAINED, ref=self._card.name),)


def _gain(candidates: Sequence[_Candidate]) -> int:
    return sum(candidate.gain for candidate in candidates)


def choose(candidates: Sequence[_Candidate], shortfall: int) -> Sequence[_Candidate] | None:
    """Return the best set that frees `shortfall` MiB, None when not even all of them do (Q6).

    No member of it could be left out. Of such sets: the one that touches the lowest priority, then
    the fewest jobs, then the fewest holders not asked yet, then those whose turn is the longest.
    """
    useful = [candidate for candidate in candidates if candidate.gain > 0]
    if _gain(useful) < shortfall:
        return None
    if len(useful) > _EXACT_UP_TO:
        return _built(useful, shortfall)
    best: Sequence[_Candidate] = useful
    best_cost = _cost(useful) if _is_minimal(useful, shortfall) else None
    for size in range(1, len(useful)):
        for chosen in combinations(useful, size):
            if _is_minimal(chosen, shortfall):
                cost = _cost(chosen)
                if best_cost is None or cost < best_cost:
                    best, best_cost = chosen, cost
    return best


def _is_minimal(chosen: Sequence[_Candidate], shortfall: int) -> bool:
    freed = _gain(chosen)
    smallest = min(candidate.gain for candidate in chosen)
    return freed >= shortfall > freed - smallest


def _cost(chosen: Sequence[_Candidate]) -> tuple[int, int, int, int, float]:
    new = [candidate.lease for candidate in chosen if not candidate.asked]
    return (
        max((lease.terms.priority for lease in new), default=-1),
        sum(1 for lease in new if not lease.terms.boundary),
        len(new),
        len(chosen),
        max((lease.held.granted for lease in new), default=0.0),
    )


def _built(candidates: Sequence[_Candidate], shortfall: int) -> Sequence[_Candidate]:
    """Build a set without looking at all: the cheapest first, then leave out what is not needed."""
    chosen: list[_Candidate] = []
    for candidate in sorted(candidates, key=_price):
        if _gain(chosen) >= shortfall:
            break
        chosen.append(candidate)
    for candidate in reversed(tuple(chosen)):
        if _gain(chosen) - candidate.gain >= shortfall:
            chosen.remove(candidate)
    return chosen


def _price(candidate: _Candidate) -> tuple[bool, int, bool, int]:
    terms = candidate.lease.terms
    return (not candidate.asked, terms.priority, not terms.boundary, -candidate.gain)


def _is_leaving(lease: Lease) -> bool:
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


def obstacle(waiter: Waiter, lease: Lease, now: Instant) -> Blocker | None:
    """Return why `waiter` may not have `lease` drained now, None when it may (Q2, Q4, Q11)."""
    terms = lease.terms
    in_the_way = _as_blocker(lease)
    by_a_person = waiter.terms.priority is Priority.HOLD
    if isinstance(lease, Granted | Stuck) or lease.held.holder is None:
        return in_the_way
    if not terms.boundary and terms.fail_closed:
        return _blocker(lease, How.BUSY)
    if by_a_person:
        return None
    if terms.pinned:
        return _blocker(lease, How.PINNED)
    turn_ends = after(lease.held.granted, terms.min_turn)
    if now < turn_ends:
        return _blocker(lease, How.IN_TURN, left(turn_ends, now))
    if waiter.terms.priority != terms.priority:
        return None if waiter.terms.priority > terms.priority else _blocker(lease, How.OUTRANKS)
    if not terms.boundary:
        return _blocker(lease, How.BUSY)
    return _still_to_answer(lease, now)


def _still_to_answer(lease: Lease, now: Instant) -> Blocker | None:
    """Return the blocker that an engine is until it has answered a request, or could have (Q11)."""
    match lease:
        case Starting():
            return _blocker(lease, How.STARTING)
        case Running(served=False) if now < after(lease.ready, ANSWER_FIRST_FOR):
            return _blocker(lease, How.STARTING, left(after(lease.ready, ANSWER_FIRST_FOR), now))
        case _:
            return None


def _as_blocker(lease: Lease) -> Blocker:
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
