"""What the demo counts, and the figures that come of it.

Requests are counted where they are asked, collisions where the memory is claimed, hand-offs from
the events. Called from any thread; frozen before anything is ended, so that the end cuts nothing.
"""

import math
import statistics
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from berth.demo.chat import Outcome
from berth.demo.hand_offs import Event, HandOff, HandOffs, Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of a play; times in seconds, None where nothing was measured."""

    seconds: float
    seed: int
    without: bool
    interrupted: bool
    handoffs: int
    collisions: int
    requests: int
    requests_cut: int
    requests_failed: int
    granted: int
    refused: int
    handoff_median_s: float | None
    handoff_p99_s: float | None
    waited_median_s: float | None
    longest: Wait | None

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--format json` ends with."""
        longest = self.longest
        return {
            "seconds": self.seconds,
            "seed": self.seed,
            "without": self.without,
            "interrupted": self.interrupted,
            "handoffs": self.handoffs,
            "collisions": self.collisions,
            "requests": self.requests,
            "requests_cut": self.requests_cut,
            "requests_failed": self.requests_failed,
            "granted": self.granted,
            "refused": self.refused,
            "handoff_median_s": self.handoff_median_s,
            "handoff_p99_s": self.handoff_p99_s,
            "waited_median_s": self.waited_median_s,
            "waited_longest_s": None if longest is None else longest.seconds,
        }


class Tally:
    """Counts while the play goes on."""

    def __init__(self, cards: int) -> None:
        self._lock = threading.Lock()
        self._frozen = False
        self._requests: Counter[Outcome] = Counter()
        self._died = [0] * cards
        self._hand_offs = HandOffs()

    def count(self, outcome: Outcome) -> bool:
        """Count a request that has come to its end; return whether it still counts."""
        with self._lock:
            if not self._frozen:
                self._requests[outcome] += 1
            return not self._frozen

    def count_out_of_memory(self, card: int) -> None:
        """Count an engine that found its card overfull when it had loaded."""
        with self._lock:
            if not self._frozen:
                self._died[card] += 1

    def hear(self, event: Event) -> HandOff | None:
        """Take an event of berthd; return the hand-off that it completes."""
        with self._lock:
            return None if self._frozen else self._hand_offs.hear(event)

    def freeze(self) -> None:
        """Count nothing more."""
        with self._lock:
            self._frozen = True

    @property
    def requests(self) -> Counter[Outcome]:
        """How many requests have come to which end."""
        with self._lock:
            return Counter(self._requests)

    def summary(
        self,
        *,
        seconds: float,
        seed: int,
        without: bool,
        interrupted: bool,
        overfull: Sequence[int],
    ) -> Summary:
        """Return the figures; `overfull`: how often each card was seen to be it."""
        with self._lock:
            seen = self._hand_offs
            took = [hand_off.seconds for hand_off in seen.done]
            waits = list(seen.waits.values())
            return Summary(
                seconds=round(seconds, 1),
                seed=seed,
                without=without,
                interrupted=interrupted,
                handoffs=len(took),
                collisions=collisions(overfull, self._died, seen.contested),
                requests=self._requests.total(),
                requests_cut=self._requests[Outcome.CUT],
                requests_failed=self._requests[Outcome.FAILED],
                granted=len(waits),
                refused=seen.refused,
                handoff_median_s=median(took),
                handoff_p99_s=percentile(took, 99),
                waited_median_s=median([wait.seconds for wait in waits]),
                longest=max(waits, key=lambda wait: wait.seconds, default=None),
            )


def collisions(overfull: Sequence[int], died: Sequence[int], contested: int) -> int:
    """Return how many collisions there were, each counted once.

    A card that is seen to be overfull and the engine that runs out of memory for it are one.
    """
    return contested + sum(max(seen, dead) for seen, dead in zip(overfull, died, strict=True))


def median(figures: Sequence[float]) -> float | None:
    """Return the median, None of nothing."""
    return round(statistics.median(figures), 3) if figures else None


def percentile(figures: Sequence[float], percent: int) -> float | None:
    """Return the least figure that so many of a hundred do not exceed, None of nothing."""
    if not figures:
        return None
    place = math.ceil(len(figures) * percent / 100)
    return round(sorted(figures)[max(0, place - 1)], 3)
