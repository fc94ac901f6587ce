"""`berth status` as a whole process, against gpustat on the same stub driver, in turn in one run.

And what `berth status --watch` costs while nothing happens.
"""

import os
import pty
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.bench.measuring import Timings, report, report_figure, report_ratio, timed
from tests.nvml_stub import (
    GIB,
    LIBRARY_VARIABLE,
    STATE_VARIABLE,
    NoCompilerError,
    Row,
    StubCard,
    StubDriver,
    build,
)
from tests.system.node import BERTH, wait_for

ROUNDS = 15
WATCHED_FOR = 20.0


def main() -> None:
    """Measure, where there is a compiler."""
    with tempfile.TemporaryDirectory(prefix="berth-", dir="/tmp") as name:
        folder = Path(name)
        try:
            library = build(folder)
        except NoCompilerError as error:
            sys.stderr.write(f"skipped: {error}\n")
            return
        rows = (Row(os.getpid(), 6 * GIB), Row(os.getppid(), 2 * GIB))
        card = StubCard(used=8 * GIB, rows=rows)
        driver = StubDriver(folder / "state", card, card)
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("BERTH_")},
            "LD_LIBRARY_PATH": str(library.parent),
            LIBRARY_VARIABLE: str(library),
            STATE_VARIABLE: str(driver.path),
            "BERTH_SOCKET": str(folder / "b.sock"),
            "BERTH_STATE_DIR": str(folder / "berth"),
            "BERTH_CONFIG": os.devnull,
            "COLUMNS": "120",
        }
        with (folder / "log").open("wb") as log:
            berthd = subprocess.Popen([*BERTH, "daemon"], env=environment, stdout=log, stderr=log)
        try:
            wait_for(lambda: _ends_well([*BERTH, "status", "--format", "json"], environment))
            _measure(environment)
            _watch(environment)
        finally:
            berthd.terminate()
            berthd.wait(timeout=20.0)


def _measure(environment: dict[str, str]) -> None:
    commands = {
        "berth status": [*BERTH, "status"],
        "berth status --format json": [*BERTH, "status", "--format", "json"],
        "gpustat": [sys.executable, "-m", "gpustat", "-cpu"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(timed(lambda at=command: _run(at, environment)))  # type: ignore[misc]
    goals = {"berth status": "faster than gpustat", "berth status --format json": "faster still"}
    for name, seconds in times.items():
        report(name, Timings(seconds[1:]), goals.get(name, "none"))
    whole, gpustat = Timings(times["berth status"][1:]), Timings(times["gpustat"][1:])
    report_ratio("berth status", whole, gpustat, "gpustat", "< 1 x")


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60.0)


def _ends_well(command: list[str], environment: dict[str, str]) -> bool:
    return (
        subprocess.run(command, env=environment, check=False, capture_output=True).returncode == 0
    )


def _watch(environment: dict[str, str]) -> None:
    """Watch a node on which nothing happens, and see what that costs."""
    master, slave = pty.openpty()
    watching = subprocess.Popen(
        [*BERTH, "status", "--watch"],
        env={**environment, "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    pause = threading.Event()
    pause.wait(3.0)
    used, begin = _cpu(watching.pid), time.monotonic()
    while time.monotonic() - begin < WATCHED_FOR:
        pause.wait(0.5)
        os.set_blocking(master, False)
        try:
            os.read(master, 65536)
        except BlockingIOError:
            continue
    percent = 100 * (_cpu(watching.pid) - used) / (time.monotonic() - begin)
    report_figure("berth status --watch, idle", f"{percent:.2f} % of a core", "<= 1 %")
    watching.terminate()
    watching.wait(timeout=10.0)
    os.close(master)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
