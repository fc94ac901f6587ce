"""What a driver is to Berth: something that can be looked at, in a process of its own.

What crosses to that process and back is here too, so that a worker imports no more than it needs.
"""

from typing import Protocol, TypeAlias

import msgspec

from berth.readings import CardIdentity, Look


class Source(Protocol):
    """One card of one driver. Lives in the driver worker; may block or break as drivers do."""

    @property
    def stale_library(self) -> bool:
        """Tell whether only a new process can load the library that matches the driver."""

    def read(self, *, wake: bool = False) -> Look:
        """Look at the card now. With `wake` a sleeping one is woken: somebody asks for it."""

    def take_xids(self) -> tuple[int, ...]:
        """Return the numbers of the faults that the card threw since the last call."""

    def close(self) -> None:
        """Give the driver back."""


class SimulatedCard(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated card: the folder that declares it, and its place in the file."""

    folder: str
    identity: CardIdentity


class NvidiaCard(msgspec.Struct, frozen=True, kw_only=True):
    """An NVIDIA card; `proc`, `sys`: where to look.

    `refused`: it could not be governed when berthd was started.
    """

    identity: CardIdentity
    proc: str = "/proc"
    sys: str = "/sys"
    refused: bool = False


CardSpec: TypeAlias = SimulatedCard | NvidiaCard
"""Enough to open a card in another process. Plain data: it crosses to a spawned worker."""


class Pace(msgspec.Struct, frozen=True):
    """To the worker: look every so many seconds; `wake`: also when the card sleeps."""

    every: float
    wake: bool = False


class Sight(msgspec.Struct, frozen=True):
    """From the worker: a look, the Xids thrown since the one before, whether it is worn out."""

    look: Look
    xids: tuple[int, ...] = ()
    stale: bool = False


def open_source(spec: CardSpec) -> Source:
    """Open a card. Imports its driver's binding only now, in the worker."""
    match spec:
        case SimulatedCard():
            from berth.probes.simulated import SimulatedSource  # noqa: PLC0415 -- see above

            return SimulatedSource(spec)
        case NvidiaCard():
            from berth.probes.nvidia import NvidiaSource  # noqa: PLC0415 -- see above

            return NvidiaSource(spec)
