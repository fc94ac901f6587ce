"""NVIDIA cards, as their driver worker sees them: what is asked, in which order, and what it means.

A reading asks for the processes first and for the memory after them, so a race counts twice and
never not at all (B1). The session with the driver is opened by the first reading and kept: each
new one costs the driver up to 1.5 s on a machine without persistence. It is opened anew when the
driver says that it ended.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from berth.probes import nvml
from berth.probes.nvidia_cards import bound_elsewhere, driver_of, split_card
from berth.probes.nvml_errors import Code, DriverError
from berth.probes.nvml_library import runs_under_wsl
from berth.probes.procfs import PROC
from berth.probes.rows import KnownProcesses, sees_host_pids
from berth.probes.sleep import Rest
from berth.probes.source import NvidiaCard
from berth.readings import Health, Look, Reading, Unknown, Unmeasured
from berth.units import Instant, MiB, room_mib, used_mib

RETRY_AFTER: Final = 1.0
"""Seconds between two tries to open a card: each may start a helper that loads the module."""
HEALTH_EVERY: Final = 1.0
"""Seconds that load and heat stand: they are for people, and a driver takes its time over them."""
KEPT_XIDS: Final = 256

_MEMINFO_UNIT: Final = 1 << 10
_FOREIGN_PIDS: Final = (
    "berthd runs in a container that does not see the host's processes, so it cannot tell who holds"
    " what on the card: start the container with --pid=host"
)
_UNDER_WINDOWS: Final = (
    "under WSL the driver does not tell what a process holds on the card, so each lease counts what"
    " it asked for"
)
_IS_BACK: Final = Unmeasured(
    Unknown.FAILED,
    "the card answers, and did not when berthd was started: start berthd again to have it governed",
)


class Xid(NamedTuple):
    """A fault that the driver reported: its number, and when it was heard."""

    code: int
    heard: Instant


class NvidiaSource:
    """One NVIDIA card.

    `xids` gathers what the card threw since it was opened, the last 256 of them; who reads them
    takes them out. `stale_library` turns true when the driver no longer matches the library that
    this process has loaded: if the old one was loaded before an upgrade, only a new process can
    load the new one. `trusts_pids` is false inside a container that does not see the host's
    processes: readings then have no rows, and say so (`Reading.blind`).
    """

    def __init__(
        self,
        spec: NvidiaCard,
        *,
        clock: Callable[[], float] = time.monotonic,
        health_every: float = HEALTH_EVERY,
    ) -> None:
        self.xids: list[Xid] = []
        self.stale_library = False
        self.trusts_pids = sees_host_pids(Path(spec.proc))
        self._spec = spec
        self._proc = Path(spec.proc)
        self._clock = clock
        self._health_every = health_every
        self._rest = Rest(spec.identity.pci, self._proc, Path(spec.sys))
        self._processes = KnownProcesses(self._proc)
        self._session = False
        self._card: nvml.OpenCard | None = None
        self._refused: tuple[float, DriverError] | None = None
        self._health: tuple[float, Health] | None = None
        self._has_own_memory = False
        self._under_windows = runs_under_wsl(self._proc)

    def take_xids(self) -> tuple[int, ...]:
        """Return the Xids thrown since the last call."""
        codes = tuple(xid.code for xid in self.xids)
        self.xids.clear()
        return codes

    def read(self, *, wake: bool = False) -> Look:
        """Look at the card. With `wake` a sleeping one is woken: somebody asks for it."""
        taken = Instant(self._clock())
        resting = None if wake else self._rest.at(taken)
        if resting is not None:
            self.close()
            return resting
        try:
            look = self._look(self._opened(taken), taken)
        except DriverError as error:
            self._lose(error)
            return self._why(error)
        rows = len(look.processes) if isinstance(look, Reading) else 1
        self._rest.saw(taken, processes=rows)
        return look

    def _why(self, error: DriverError) -> Unmeasured:
        """Return what an error means for the card; where it is gone, sysfs may know better."""
        elsewhere = None
        if error.unmeasured.why is Unknown.LOST:
            identity = self._spec.identity
            elsewhere = bound_elsewhere(driver_of(identity.pci, Path(self._spec.sys)))
        return elsewhere or error.unmeasured

    def close(self) -> None:
        """Give the driver back. The next reading opens it again."""
        self._close_card()
        if self._session:
            self._session = False
            nvml.close_session()

    def _close_card(self) -> None:
        if self._card is not None:
            self._card.close()
            self._card = None

    def _lose(self, error: DriverError) -> None:
        """Forget what an error made worthless: the card's handle, or the whole session."""
        self.stale_library |= error.code == Code.LIB_RM_VERSION_MISMATCH
        if error.ends_session:
            self.close()
        else:
            # Not the session: after an upgrade a new one could not be opened, this one works on.
            self._close_card()

    def _opened(self, now: Instant) -> nvml.OpenCard:
        """Return the card, opened if need be, but no oftener than once a second."""
        if self._card is not None:
            return self._card
        if self._refused is not None and now - self._refused[0] < RETRY_AFTER:
            raise self._refused[1].with_traceback(None)
        try:
            self._card = self._open()
        except DriverError as error:
            self._refused = (now, error)
            raise
        self._refused = None
        self._card.listen()
        return self._card

    def _open(self) -> nvml.OpenCard:
        if not self._session:
            nvml.open_session(self._proc)
            self._session = True
        identity = self._spec.identity
        card = nvml.OpenCard(pci=identity.pci, uuid=identity.uuid)
        found = card.uuid()
        if identity.uuid and found != identity.uuid:
            detail = f"another card ({found}) is in its place; restart berthd"
            raise DriverError(Code.GPU_NOT_FOUND, Unmeasured(Unknown.LOST, detail))
        if self._spec.refused and not identity.uuid:
            # Engines are shown their card by its UUID, which was not known when berthd started.
            raise DriverError(Code.NOT_READY, _IS_BACK)
        return card

    def _look(self, card: nvml.OpenCard, taken: Instant) -> Look:
        self._hear_xids(card, taken)
        slices = card.slices()
        if slices is not None:
            return split_card(slices)
        used = card.processes() if self.trusts_pids else {}
        memory = self._memory(card)
        if isinstance(memory, Unmeasured):
            return memory
        total = room_mib(memory.total)
        return Reading(
            taken=taken,
            total=total,
            used=MiB(min(total, used_mib(max(0, memory.total - memory.free)))),
            reserved=MiB(min(total, used_mib(memory.reserved))),
            processes=self._processes.rows(used, taken),
            health=self._health_at(card, taken),
            blind=self._blind(used),
        )

    def _blind(self, used: Mapping[int, int | None]) -> str:
        """Return why the rows do not tell who holds what, empty when they do."""
        if self._under_windows:
            return _UNDER_WINDOWS if all(size is None for size in used.values()) else ""
        return "" if self.trusts_pids else _FOREIGN_PIDS

    def _hear_xids(self, card: nvml.OpenCard, now: Instant) -> None:
        self.xids += [Xid(code, now) for code in card.xids()]
        del self.xids[:-KEPT_XIDS]

    def _memory(self, card: nvml.OpenCard) -> nvml.CardMemory | Unmeasured:
        memory = card.memory()
        if memory is None and not self._has_own_memory:
            memory = unified_memory(self._proc)
        elif memory is not None:
            self._has_own_memory = True
        if memory is None or memory.total <= 0:
            name = self._spec.identity.product or self._spec.identity.name
            return Unmeasured(Unknown.NO_MEMORY_SIZE, f"the driver tells no memory size for {name}")
        return memory

    def _health_at(self, card: nvml.OpenCard, now: Instant) -> Health:
        if self._health is None or now - self._health[0] >= self._health_every:
            self._health = (now, card.health())
        return self._health[1]


def unified_memory(proc: Path = PROC) -> nvml.CardMemory | None:
    """Return the memory of a card that shares the machine's (GB10), None when it cannot be read.

    Its size is MemTotal, and what the kernel would hand out (MemAvailable) is free: programs that
    have nothing to do with the card take their part of it too. NVML tells no size of such a card.
    """
    figures: dict[str, int] = {}
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            number = rest.split()
            if name in {"MemTotal", "MemAvailable"} and number:
                figures[name] = int(number[0]) * _MEMINFO_UNIT
        return nvml.CardMemory(figures["MemTotal"], figures["MemAvailable"], 0)
    except (OSError, ValueError, KeyError):
        return None
