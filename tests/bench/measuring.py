"""What the benchmarks share: medians, percentiles, and how a figure is printed."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timings:
    """Times of one thing, in seconds."""

    seconds: Sequence[float]

    @property
    def median(self) -> float:
        """Return the median."""
        return statistics.median(self.seconds)

    def percentile(self, percent: float) -> float:
        """Return a percentile."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    def __str__(self) -> str:
        median, late = self.median * 1e3, self.percentile(99) * 1e3
        return f"median {median:.2f} ms, p99 {late:.2f} ms ({len(self.seconds)} times)"


def timed(what: Callable[[], object]) -> float:
    """Return how long `what` takes, in seconds."""
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def report(name: str, timings: Timings, goal: str) -> None:
    """Print a figure beside its goal."""
    print(f"{name:<34} {timings}   goal: {goal}", flush=True)


def report_ratio(name: str, ours: Timings, other: Timings, against: str, goal: str) -> None:
    """Print how many times a named alternative takes, in the same run."""
    ratio = ours.median / other.median
    print(f"{name:<34} {ratio:.1f} x {against}   goal: {goal}", flush=True)


def report_figure(name: str, figure: str, goal: str) -> None:
    """Print any other figure beside its goal."""
    print(f"{name:<34} {figure}   goal: {goal}", flush=True)
