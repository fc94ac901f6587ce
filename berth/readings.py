"""What a driver says of a card, and what it leaves unsaid.

An unknown is `Unmeasured`, a type of its own: never 0, never None in arithmetic, never NaN.
"""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from berth.ids import CardName, ProcessId
from berth.units import Instant, MiB


class Unknown(StrEnum):
    """Why a card or a figure is not known."""

    NOT_READ_YET = "not_read_yet"
    STALE = "stale"
    NOT_TOLD = "not_told"
    HUNG = "driver_hung"
    LOST = "lost"
    DRIVER_MISMATCH = "driver_mismatch"
    NO_DRIVER = "no_driver"
    RESET_REQUIRED = "reset_required"
    NO_MEMORY_SIZE = "no_memory"
    SPLIT = "mig"
    FAILED = "failed"
    ASLEEP = "asleep"


class Unmeasured(msgspec.Struct, frozen=True):
    """A figure, or a whole card, that nobody knows. `detail` is the driver's own words."""

    why: Unknown
    detail: str = ""


UNTOLD: Final = Unmeasured(Unknown.NOT_TOLD)
NOT_READ_YET: Final = Unmeasured(Unknown.NOT_READ_YET)

Figure: TypeAlias = float | Unmeasured


class CardIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which card this is, fixed while berthd runs.

    Leases, journal and learned sizes go by `key` (the UUID; without one the PCI address);
    `name` is for people and may move to another card over a reboot.
    """

    name: CardName
    index: int
    uuid: str = ""
    pci: str = ""
    product: str = ""
    vendor: str = "nvidia"

    @property
    def key(self) -> str:
        """Return what the card is remembered by."""
        return self.uuid or self.pci or self.name


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One process on one card: the driver's row, and who it is.

    `ancestors` are its parents up to init, nearest first. `scope` is the `berth-….scope` that it
    runs in, if any.
    """

    process: ProcessId
    name: str
    used: MiB | Unmeasured
    ancestors: tuple[ProcessId, ...] = ()
    scope: str | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Load and heat, for people."""

    utilisation_pct: Figure = UNTOLD
    temperature_c: Figure = UNTOLD
    power_w: Figure = UNTOLD
    power_limit_w: Figure = UNTOLD
    fan_pct: Figure = UNTOLD


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a card.

    `taken` is when the look began: only memory freed before it can be missing from it. `used`
    counts everything that is not free, `reserved` (what the driver keeps for itself) included.
    `blind` says why the rows do not tell who holds what, empty when they do.
    """

    taken: Instant
    total: MiB
    used: MiB
    reserved: MiB = MiB(0)
    processes: tuple[GpuProcess, ...] = ()
    health: Health = msgspec.field(default_factory=Health)
    blind: str = ""

    @property
    def free(self) -> MiB:
        """Return what the driver shows free."""
        return MiB(max(0, self.total - self.used))


Look: TypeAlias = Reading | Unmeasured
