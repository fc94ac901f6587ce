"""From the card showing its memory free to the next command being executed; and run's own cost.

The free moment is taken by an observer of its own: it watches the claims, not berthd. The next
command writes its first moment itself.
"""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.measuring import Timings, report, report_ratio
from tests.system.node import BERTH, Node, wait_for

HAND_OVERS = 25
RUNS = 15

# Written by the command itself: CLOCK_MONOTONIC is one for all processes.
_FIRST_WORD = "import time,sys; open(sys.argv[1],'w').write(str(time.monotonic()))"


def main() -> None:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="berth-", dir="/tmp") as name:
        node = Node(Path(name), [{"total_mib": 24576}])
        node.start()
        try:
            free_to_exec(node)
            run_overhead(node)
        finally:
            node.close()


def free_to_exec(node: Node) -> None:
    """Measure: driver free to next exec."""
    started = Timings([_to_first_word(node, []) for _ in range(RUNS)]).median
    gaps = []
    for number in range(HAND_OVERS):
        holder = node.run("--as", f"h{number}", "--", *node.claiming(20000, "sleep", "100"))
        claim = wait_for(lambda: list((node.sim / "claims" / "0").glob("[0-9]*")))[0]
        word = node.folder / f"word-{number}"
        node.run("--as", f"n{number}", "--", sys.executable, "-c", _FIRST_WORD, str(word))
        wait_for(partial(node.waiter, f"n{number}"))
        holder.terminate()
        freed = _moment_of_death(int(claim.name))
        wait_for(partial(_written, word))
        gaps.append(float(word.read_text()) - freed - started)
        holder.wait()
    report("driver free to next exec", Timings(gaps), "median <= 60 ms, p99 <= 150 ms")


def _written(word: Path) -> bool:
    return word.exists() and bool(word.read_text())


def _moment_of_death(pid: int) -> float:
    """Return the moment at which a process was seen dead (a zombie is), by looking at it alone."""
    path = f"/proc/{pid}/stat"
    while True:
        try:
            text = Path(path).read_text()
        except OSError:
            return time.monotonic()
        if text.rpartition(")")[2].split()[0] in {"Z", "X"}:
            return time.monotonic()
        os.sched_yield()


def run_overhead(node: Node) -> None:
    """Measure: from typing `berth run` to its command's first word, less the command's own."""
    bare = Timings([_to_first_word(node, []) for _ in range(RUNS)])
    wrapped = Timings([_to_first_word(node, [*BERTH, "run", "--"]) for _ in range(RUNS)])
    overhead = Timings([seconds - bare.median for seconds in wrapped.seconds])
    report("berth run, own overhead to exec", overhead, "<= 150 ms")
    report_ratio("berth run, to its first word", wrapped, bare, "the bare command", "-")


def _to_first_word(node: Node, before: list[str]) -> float:
    word = node.folder / "word"
    begun = time.monotonic()
    subprocess.run(
        [*before, sys.executable, "-c", _FIRST_WORD, str(word)], env=node.environment, check=True
    )
    return float(word.read_text()) - begun


if __name__ == "__main__":
    main()
