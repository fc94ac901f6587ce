"""A reading of 8 NVIDIA cards with 16 processes each, on the stub of NVIDIA's library.

Against the same figures asked of pynvml and thrown away, in turn in the same run. The rows have
pids of real processes; the stub answers at once, so this is what Berth itself adds.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pynvml

from berth.cards import card_name
from berth.probes.nvidia import NvidiaSource
from berth.probes.source import NvidiaCard
from berth.readings import CardIdentity, Reading
from tests.bench.measuring import Timings, report, report_ratio, timed
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

CARDS = 8
ROWS = 16
ROUNDS = 1000


def main() -> None:
    """Measure, where there is a compiler."""
    with tempfile.TemporaryDirectory(prefix="berth-", dir="/tmp") as name:
        folder = Path(name)
        try:
            os.environ[LIBRARY_VARIABLE] = str(build(folder))
        except NoCompilerError as error:
            sys.stderr.write(f"skipped: {error}\n")
            return
        os.environ[STATE_VARIABLE] = str(folder / "state")
        holders = [subprocess.Popen(["sleep", "600"]) for _ in range(CARDS * ROWS)]
        try:
            _measure(folder / "state", [holder.pid for holder in holders])
        finally:
            for holder in holders:
                holder.kill()
                holder.wait()


def _measure(state: Path, pids: list[int]) -> None:
    shares = [pids[at * ROWS : (at + 1) * ROWS] for at in range(CARDS)]
    cards = [
        StubCard(used=ROWS * GIB, rows=tuple(Row(pid, GIB) for pid in share)) for share in shares
    ]
    StubDriver(state, *cards)
    sources = [NvidiaSource(_spec(index), health_every=0.0) for index in range(CARDS)]
    first = timed(lambda: _read(sources))
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(CARDS)]
    ours, plain = [], []
    for _ in range(ROUNDS):
        ours.append(timed(lambda: _read(sources)))
        plain.append(timed(lambda: _plainly(handles)))
    for source in sources:
        source.close()
    what = f"reading of {CARDS} cards x {ROWS} rows"
    report(what, Timings(ours[20:]), "<= 2 ms")
    report_ratio(what, Timings(ours[20:]), Timings(plain[20:]), "bare pynvml", "<= 2 x")
    report("the first, sessions opened", Timings([first]), "none")


def _spec(index: int) -> NvidiaCard:
    pci = f"0000:{0x41 + index:02x}:00.0"
    return NvidiaCard(identity=CardIdentity(name=card_name(index), index=index, pci=pci))


def _read(sources: list[NvidiaSource]) -> None:
    for source in sources:
        look = source.read()
        assert isinstance(look, Reading), look
        assert len(look.processes) == ROWS


def _plainly(handles: list[object]) -> None:
    """Ask pynvml for the figures of a reading, and do nothing with them."""
    for handle in handles:
        pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle)
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses(handle)
        pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
        pynvml.nvmlDeviceGetUtilizationRates(handle)
        pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
        pynvml.nvmlDeviceGetPowerUsage(handle)
        pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)
        pynvml.nvmlDeviceGetFanSpeed(handle)


if __name__ == "__main__":
    main()
