"""A laptop's card that sleeps: told from sysfs, without a call that would wake it.

A driver's session keeps such a card awake, even one that only reads. So a card that the kernel may
put to sleep, and that holds no process, is also let go for a while, long enough to fall asleep
(about 6 s after the last session ends). A card without such power saving is never let go.
"""

from pathlib import Path
from typing import Final

from berth.probes.procfs import PROC
from berth.readings import Unknown, Unmeasured
from berth.units import Instant

SYS: Final = Path("/sys")
QUIET_FOR: Final = 20.0
"""Seconds without a process after which a card is let go."""
LONGEST_QUIET: Final = 1800.0
"""The same for a card that does not fall asleep though it is let go: it doubles up to this."""
LEFT_ALONE: Final = 20.0
"""Seconds that it is then given to fall asleep; still awake, it is read again."""

ASLEEP: Final = Unmeasured(Unknown.ASLEEP, "the card sleeps; a request wakes it")
LET_GO: Final = Unmeasured(
    Unknown.ASLEEP, "nothing uses the card, so it is left to fall asleep; a request wakes it"
)

_SLEEPING: Final = frozenset({"suspended", "suspending"})


def sleeps(pci: str, sys: Path = SYS) -> bool:
    """Tell whether the kernel has put the card at that address to sleep."""
    try:
        with open(f"{sys}/bus/pci/devices/{pci}/power/runtime_status") as status:  # noqa: PTH123 -- 3x faster
            return status.read().strip() in _SLEEPING
    except OSError:  # not on this machine's bus (WSL), or not to be seen from here
        return False


def may_sleep(pci: str, proc: Path = PROC) -> bool:
    """Tell whether NVIDIA's driver lets the kernel put that card to sleep (Runtime D3)."""
    try:
        text = (proc / "driver/nvidia/gpus" / pci / "power").read_text()
    except OSError:
        return False
    return any(
        line.partition(":")[2].strip().startswith("Enabled")
        for line in text.splitlines()
        if line.startswith("Runtime D3 status")
    )


class Rest:
    """When a card is let go so that it can fall asleep."""

    def __init__(self, pci: str, proc: Path = PROC, sys: Path = SYS) -> None:
        self._pci = pci
        self._sys = sys
        self._may = bool(pci) and may_sleep(pci, proc)
        self._quiet_since: Instant | None = None
        self._quiet_for = QUIET_FOR

    def at(self, now: Instant) -> Unmeasured | None:
        """Return why the card must not be touched now, None when it may be read."""
        if self._pci and sleeps(self._pci, self._sys):
            self._quiet_since, self._quiet_for = None, QUIET_FOR
            return ASLEEP
        if self._quiet_since is None or now - self._quiet_since < self._quiet_for:
            return None
        if now - self._quiet_since < self._quiet_for + LEFT_ALONE:
            return LET_GO
        # Something else keeps it awake: a screen, another tool.
        self._quiet_since, self._quiet_for = None, min(self._quiet_for * 2, LONGEST_QUIET)
        return None

    def saw(self, now: Instant, *, processes: int) -> None:
        """Note how many processes a reading has shown."""
        if processes:
            self._quiet_for = QUIET_FOR
        if not self._may or processes:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now
