"""One engine being played: what it was asked to do, and what its routes and main thread share."""

from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from queue import Empty, SimpleQueue

from berth.sim.memory import Memory
from berth.sim.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFlags:
    """What `berth sim engine` was asked to play. Times in seconds, memory in MiB.

    `residual_mib` is what an unload leaves claimed where it does not end the process; no kind of
    today has such an unload.
    """

    kind: str
    mib: int
    folder: Path
    card: int
    port: int
    slots: int
    metrics: bool
    token_s: float
    cut_after_s: float
    load_s: float
    run_s: float | None
    crash_after_s: float | None
    release_lag_s: float
    double_fork: bool
    lie_on_unload: bool
    ignore_sigterm: bool
    hang_slots: bool
    leak_mib: int
    oom: bool
    residual_mib: int


class Ending(Enum):
    """Why an engine is to end."""

    STOP = auto()
    UNLOADED = auto()


@dataclass(slots=True)
class Play:
    """An engine at work. `loaded` is set by the main thread, read by those that answer calls.

    Endings come through a queue, and through this kind of queue, for it may be put into from a
    signal handler that interrupts its own reader. An Event may not.
    """

    flags: EngineFlags
    memory: Memory
    work: Work
    loaded: bool = False
    endings: "SimpleQueue[Ending]" = field(default_factory=SimpleQueue)

    def next_ending(self, within: float | None) -> Ending | None:
        """Wait for the word to end, at most `within` seconds; None when none came."""
        try:
            return self.endings.get(timeout=within)
        except Empty:
            return None
