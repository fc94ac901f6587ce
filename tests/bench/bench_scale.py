"""Sixteen cards and two thousand waiters: what a decision costs, what a status, and how both grow.

The pure cores are driven directly (`crowd.py`), in CPU time. Once with the waiters spread over the
cards, once with all of them on one, which is where requests go that name no card.
"""

import gc
import itertools
import sys

from tests.bench.crowd import CARDS, Crowd
from tests.bench.measuring import Timings, report_figure

SIZES = (250, 500, 1000, 2000)
ROUNDS = 60
STATUS_EVERY = 6
N_LOG_N = 2.2
"""What twice as many may cost at these sizes, where nothing grows faster than n log n."""

GROWTH = (("card", "Tick"), ("card", "SeekLease"), ("node", "NodeTick"), ("node", "AskLease"))


def main() -> None:
    """Measure; `python -m tests.bench.bench_scale kinds` prints every kind of decision."""
    for one_card in (False, True):
        where = "all on one card" if one_card else f"spread over {CARDS} cards"
        played = [_Played(size, one_card=one_card) for size in SIZES]
        for one in played:
            print(f"{one.waiters} waiters, {where}", flush=True)
            one.report()
        for key in GROWTH:
            _report_growth(f"{key[0]}, {key[1]}", [one.decisions[key].median for one in played])
        _report_growth("status", [one.statuses.median for one in played])


def _report_growth(what: str, figures: list[float]) -> None:
    ratios = ", ".join(f"{more / less:.2f}" for less, more in itertools.pairwise(figures))
    report_figure(f"  twice as many: {what}", f"{ratios} times", f"<= {N_LOG_N}")


class _Played:
    """A crowd of one size, and what its life for a while has cost."""

    def __init__(self, waiters: int, *, one_card: bool) -> None:
        gc.collect()
        gc.freeze()  # as berthd does once it has started
        self.waiters = waiters
        crowd = Crowd(waiters, one_card=one_card)
        begun_with = crowd.granted
        self.statuses = Timings([crowd.live(number) for number in range(ROUNDS)][::STATUS_EVERY])
        self.decisions = {key: Timings(times) for key, times in crowd.times.items()}
        assert crowd.granted > begun_with, "cards are handed on"

    def report(self) -> None:
        """Print the slowest kind of decision of each actor, and a status."""
        for actor in ("card", "node"):
            kinds = {kind: times for (who, kind), times in self.decisions.items() if who == actor}
            late = sorted(kinds, key=lambda kind: -kinds[kind].percentile(99))
            for kind in late if "kinds" in sys.argv else late[:1]:
                report_figure(f"  {actor}: {kind}", str(kinds[kind]), "p99 <= 2 ms")
        report_figure("  status, gathered and encoded", str(self.statuses), "<= 30 ms")


if __name__ == "__main__":
    main()
