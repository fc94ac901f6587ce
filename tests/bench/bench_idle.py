"""berthd with nothing to do: its share of a core, and what it and its driver workers keep.

Four cards on the stub of NVIDIA's library, read every 2 s each. The stub answers at once, so what
the driver itself would take is not in the figures.
"""

import os
import sys
import tempfile
import threading
from pathlib import Path

from tests.bench.measuring import report_figure
from tests.nvml_stub import NoCompilerError, build
from tests.system.node import wait_for
from tests.system.nvidia_node import CARD, NvidiaNode

CARDS = 4
SETTLE = 5.0
SECONDS = 30.0


def main() -> None:
    """Measure, where there is a compiler."""
    with tempfile.TemporaryDirectory(prefix="berth-", dir="/tmp") as name:
        folder = Path(name)
        try:
            library = build(folder)
        except NoCompilerError as error:
            sys.stderr.write(f"skipped: {error}\n")
            return
        node = NvidiaNode(folder / "node", library, *[CARD] * CARDS)
        node.feeder.stop()
        try:
            node.start()
            _measure(node)
        finally:
            node.close()


def _measure(node: NvidiaNode) -> None:
    assert node.daemon is not None
    berthd = node.daemon.pid
    workers = wait_for(lambda: _workers(berthd))
    pause = threading.Event()
    pause.wait(SETTLE)
    before = [_cpu_seconds(pid) for pid in (berthd, *workers)]
    calls = node.driver.calls("nvmlDeviceGetMemoryInfo_v2")
    pause.wait(SECONDS)
    after = [_cpu_seconds(pid) for pid in (berthd, *workers)]
    readings = node.driver.calls("nvmlDeviceGetMemoryInfo_v2") - calls
    shares = [100 * (late - early) / SECONDS for early, late in zip(before, after, strict=True)]
    report_figure("idle, 4 cards: berthd and workers", f"{sum(shares):.2f} % of a core", "<= 0.5 %")
    report_figure("  berthd alone", f"{shares[0]:.2f} %", "-")
    report_figure("  readings of a card", f"{readings / CARDS / SECONDS:.2f} a second", "0.5")
    report_figure("berthd, resident", f"{_resident_mib(berthd):.1f} MiB", "<= 60 MiB")
    worst = max(_resident_mib(pid) for pid in workers)
    report_figure("driver worker, resident", f"{worst:.1f} MiB", "<= 25 MiB")


def _workers(berthd: int) -> list[int]:
    """Return the pids of the driver workers, once there is one for each card."""
    children = Path(f"/proc/{berthd}/task").glob("*/children")
    pids = [pid for child in children for pid in child.read_text().split()]
    found = [int(pid) for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found if len(found) == CARDS else []


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process: /proc/<pid>/schedstat counts in ns, stat in ticks."""
    return sum(
        int(task.read_text().split()[0]) / 1e9
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat")
    )


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
