"""The stub of NVIDIA's library is believed because tools that Berth did not write believe it."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from tests.nvml_stub import GIB, MIB, Kind, Nvml, Row, Slice, StubCard, StubDriver

Install = Callable[..., StubDriver]

_CARDS = (
    StubCard(
        total=24564 * MIB,
        reserved=420 * MIB,
        used=8203 * MIB,
        rows=(Row(os.getpid(), 8 * GIB), Row(os.getpid(), 5 * MIB, Kind.GRAPHICS)),
    ),
    StubCard(product="Quadro M5000", total=8 * GIB, fan=None, utilisation=None),
)


def run_tool(library: Path, *command: str) -> str:
    """Run a tool that finds the stub where a driver's library would be."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def needs(tool: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(tool) is None
    return pytest.mark.skipif(missing, reason=f"{tool} is not installed")


@pytest.fixture
def session(install: Install) -> Callable[[], StubDriver]:
    """Return a function that opens a session with the cards of this file."""

    def start() -> StubDriver:
        driver = install(*_CARDS)
        pynvml.nvmlInit()
        return driver

    return start


@needs("gpustat")
def test_gpustat_reads_the_cards(install: Install, stub_library: Path) -> None:
    """A plain tool: gpustat asks 18 functions of a real driver, and finds every figure here."""
    install(*_CARDS)
    told = json.loads(run_tool(stub_library, "gpustat", "--json"))
    first, second = told["gpus"]
    assert (first["memory.used"], first["memory.total"]) == (8203, 24564)
    assert {row["gpu_memory_usage"] for row in first["processes"]} <= {8192, 5}
    assert (second["name"], second["fan.speed"]) == ("Quadro M5000", None)


@needs("nvitop")
def test_nvitop_draws_the_cards(install: Install, stub_library: Path) -> None:
    """A thorough tool: nvitop asks 30 functions, and complains where one is missing."""
    install(*_CARDS)
    screen = run_tool(stub_library, "nvitop", "--once")
    assert "Quadro M5000" in screen
    assert "8203MiB / 23.99GiB" in screen
    assert str(os.getpid()) in screen


@needs("nvitop")
def test_nvitop_draws_slices(install: Install, stub_library: Path) -> None:
    """Slices have handles, names and memory of their own."""
    cut = (Slice("MIG-1", 20 * GIB, used=GIB), Slice("MIG-2", 20 * GIB, instance=2))
    install(StubCard(product="NVIDIA A100", mig=True, slices=cut))
    assert "A100" in run_tool(stub_library, "nvitop", "--once")


@pytest.mark.parametrize(
    "spelling", ["00000000:42:00.0", "0000:42:00.0", "42:00.0", "0:42:0.0", "0:42:0", "42:0"]
)
def test_card_is_found_by_every_spelling(session: Callable[[], StubDriver], spelling: str) -> None:
    """NVML reads addresses of any width."""
    session()
    try:
        assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(spelling)) == 1
        with pytest.raises(pynvml.NVMLError_NotFound):
            pynvml.nvmlDeviceGetHandleByPciBusId("0000:43:00.0")
    finally:
        pynvml.nvmlShutdown()


def test_slice_has_its_own_uuid_memory_and_rows(install: Install) -> None:
    """What Berth refuses must look as it does on a real card."""
    cut = (Slice("MIG-1", 20 * GIB, used=GIB), Slice("MIG-2", 20 * GIB, instance=2))
    install(StubCard(mig=True, slices=cut, rows=(Row(7, GIB, slice=0), Row(8, GIB, slice=1))))
    pynvml.nvmlInit()
    try:
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 1)
        assert pynvml.nvmlDeviceGetUUID(part) == "MIG-2"
        assert pynvml.nvmlDeviceGetGpuInstanceId(part) == 2
        assert [row.pid for row in pynvml.nvmlDeviceGetComputeRunningProcesses(part)] == [8]
        assert len(pynvml.nvmlDeviceGetComputeRunningProcesses(card)) == 2
    finally:
        pynvml.nvmlShutdown()


def test_trouble_comes_and_goes_in_a_running_session(session: Callable[[], StubDriver]) -> None:
    """A test says what breaks, at once and for everyone, and counts who asked."""
    driver = session()
    try:
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        before = driver.calls("nvmlDeviceGetName")
        driver.change(0, error=Nvml.LOST)
        with pytest.raises(pynvml.NVMLError_GpuIsLost):
            pynvml.nvmlDeviceGetName(card)
        driver.change(0, error=Nvml.OK)
        assert pynvml.nvmlDeviceGetName(card) == "NVIDIA GeForce RTX 3090"
        assert driver.calls("nvmlDeviceGetName") == before + 2
        assert driver.trace()[-1] == "nvmlDeviceGetName"
    finally:
        pynvml.nvmlShutdown()


def test_reader_never_sees_half_a_change(session: Callable[[], StubDriver]) -> None:
    """A test that changes two figures must not be answered with one of them."""
    driver = session()
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            for size in (1, 2):
                driver.change(0, total=size * GIB, used=size * MIB, reserved=0)

    writer = threading.Thread(target=flip)
    writer.start()
    try:
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        for _ in range(2000):
            told = pynvml.nvmlDeviceGetMemoryInfo(card, pynvml.nvmlMemory_v2)
            assert told.total / GIB in {1, 2, 24564 / 1024}
            if told.total != 24564 * MIB:
                assert told.used / MIB == told.total / GIB
    finally:
        stop.set()
        writer.join(timeout=10)
        pynvml.nvmlShutdown()
