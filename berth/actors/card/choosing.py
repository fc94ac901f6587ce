"""Which holders to ask for a waiter: of the sets that make it fit, the best (Q6)."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import msgspec

from berth.lease import Lease
from berth.standing import Blocker

_EXACT_UP_TO: Final = 8
"""Up to this many candidates every set is looked at; beyond it a good one is built."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that stands in a waiter's way: what its end would bring, and what asking costs."""

    lease: Lease
    gain: int
    asked: bool
    obstacle: Blocker | None


def gain_of(candidates: Sequence[Candidate]) -> int:
    """Return what the end of them all would bring (MiB)."""
    return sum(candidate.gain for candidate in candidates)


def choose(candidates: Sequence[Candidate], shortfall: int) -> Sequence[Candidate] | None:
    """Return the best set that frees `shortfall` MiB, None when not even all of them do (Q6).

    No member of it could be left out. Of such sets: the one that touches the lowest priority, then
    the fewest jobs, then the fewest holders not asked yet, then those whose turn is the longest.
    """
    useful = [candidate for candidate in candidates if candidate.gain > 0]
    if gain_of(useful) < shortfall:
        return None
    if len(useful) > _EXACT_UP_TO:
        return _built(useful, shortfall)
    best: Sequence[Candidate] = useful
    best_cost = _cost(useful) if _is_minimal(useful, shortfall) else None
    for size in range(1, len(useful)):
        for chosen in combinations(useful, size):
            if _is_minimal(chosen, shortfall):
                cost = _cost(chosen)
                if best_cost is None or cost < best_cost:
                    best, best_cost = chosen, cost
    return best


def _is_minimal(chosen: Sequence[Candidate], shortfall: int) -> bool:
    freed = gain_of(chosen)
    smallest = min(candidate.gain for candidate in chosen)
    return freed >= shortfall > freed - smallest


def _cost(chosen: Sequence[Candidate]) -> tuple[int, int, int, int, float]:
    new = [candidate.lease for candidate in chosen if not candidate.asked]
    return (
        max((lease.terms.priority for lease in new), default=-1),
        sum(1 for lease in new if not lease.terms.boundary),
        len(new),
        len(chosen),
        max((lease.held.granted for lease in new), default=0.0),
    )


def _built(candidates: Sequence[Candidate], shortfall: int) -> Sequence[Candidate]:
    """Build a set without looking at all: the cheapest first, then leave out what is not needed."""
    chosen: list[Candidate] = []
    for candidate in sorted(candidates, key=_price):
        if gain_of(chosen) >= shortfall:
            break
        chosen.append(candidate)
    for candidate in reversed(tuple(chosen)):
        if gain_of(chosen) - candidate.gain >= shortfall:
            chosen.remove(candidate)
    return chosen


def _price(candidate: Candidate) -> tuple[bool, int, bool, int]:
    terms = candidate.lease.terms
    return (not candidate.asked, terms.priority, not terms.boundary, -candidate.gain)
