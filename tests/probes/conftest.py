"""The stub of NVIDIA's library, and machines for it to stand in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from berth.probes.nvidia import NvidiaSource
from berth.probes.source import NvidiaCard
from tests.nvml_stub import (
    LIBRARY_VARIABLE,
    STATE_VARIABLE,
    NoCompilerError,
    StubCard,
    StubDriver,
    build,
    load,
)
from tests.probes.machines import FakeMachine, ManualClock, spec_of


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stub once, and have pynvml use it in this process."""
    try:
        library = build(tmp_path_factory.mktemp("nvml"))
    except NoCompilerError as reason:
        pytest.skip(str(reason))
    load(library)
    return library


@pytest.fixture
def install(
    stub_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., StubDriver]:
    """Return a function that installs a driver with the given cards."""

    def make(*cards: StubCard, version: str = "580.95") -> StubDriver:
        state = tmp_path / "driver"
        monkeypatch.setenv(LIBRARY_VARIABLE, str(stub_library))
        monkeypatch.setenv(STATE_VARIABLE, str(state))
        return StubDriver(state, *cards, driver_version=version)

    return make


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A machine with nothing on it: its own /proc and /sys."""
    return FakeMachine(tmp_path / "machine")


@pytest.fixture
def clock() -> ManualClock:
    """A clock that a test turns."""
    return ManualClock()


@pytest.fixture
def watch(machine: FakeMachine, clock: ManualClock) -> Iterator[Callable[..., NvidiaSource]]:
    """Return a function that watches a card of the stub; every session is closed at the end."""
    opened: list[NvidiaSource] = []

    def make(index: int = 0, *, spec: NvidiaCard | None = None) -> NvidiaSource:
        source = NvidiaSource(spec or spec_of(machine, index), clock=clock)
        opened.append(source)
        return source

    yield make
    for source in opened:
        source.close()
