"""One engine being played: what it was asked to do, and what its routes and main thread share."""

from dataclasses import dataclass, field
from pathlib import Path

from berth.sim.endings import Endings
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


@dataclass(slots=True)
class Play:
    """An engine at work. `loaded` is set by the main thread, read by those that answer calls."""

    flags: EngineFlags
    memory: Memory
    work: Work
    endings: Endings = field(default_factory=Endings)
    loaded: bool = False
