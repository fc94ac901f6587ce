"""The last lines of the demo: what was measured, in words."""

from berth.demo.crew import CARDS, ENGINES
from berth.demo.hand_offs import Wait
from berth.demo.tally import Summary


def summary_lines(summary: Summary) -> list[str]:
    """Return the end of a play, for people."""
    head = f"{summary.seconds:.0f}s, {CARDS} simulated cards, {len(ENGINES)} engines, 1 stowaway"
    ended = "; ended by you" if summary.interrupted else ""
    lines = _without(summary) if summary.without else _with(summary)
    return [head + ended, *lines]


def _with(summary: Summary) -> list[str]:
    median = "" if summary.handoff_median_s is None else f"; median {summary.handoff_median_s:.1f}s"
    lines = [
        _row("hand-offs", summary.handoffs, f"each after the card showed the memory free{median}"),
        _row("collisions", summary.collisions, "the same load without Berth:  " + _other(summary)),
        _row("requests", summary.requests, f"cut {summary.requests_cut}{_failed(summary)}"),
    ]
    if summary.longest is not None and summary.waited_median_s is not None:
        lines.append(
            f"  {'waited':<10}        median {summary.waited_median_s:.1f}s,"
            f" longest {summary.longest.seconds:.1f}s ({_who(summary.longest)})"
        )
    return [*lines, "Now with your own card:  berth daemon   then   berth run -- CMD"]


def _without(summary: Summary) -> list[str]:
    return [
        _row("collisions", summary.collisions, "an engine loaded beside others, out of memory"),
        _row("requests", summary.requests, f"cut {summary.requests_cut}{_failed(summary)}"),
        "The same load with Berth:  " + _other(summary),
    ]


def _row(word: str, number: int, remark: str) -> str:
    return f"  {word:<10}  {number:>4}  {remark}"


def _failed(summary: Summary) -> str:
    if not summary.requests_failed:
        return ""
    return f", failed {summary.requests_failed}: the engine could not load"


def _other(summary: Summary) -> str:
    seed = "" if summary.seed == 1 else f" --seed {summary.seed}"
    return f"berth demo{seed}{'' if summary.without else ' --without'}"


def _who(wait: Wait) -> str:
    """Return who waited the longest, and for whom, as far as berthd told."""
    _, found, whom = wait.why.rpartition(" for ")
    return f"{wait.name}, for {whom}" if found else wait.name
