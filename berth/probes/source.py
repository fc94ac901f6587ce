"""What a driver is to Berth: something that can be looked at, in a process of its own."""

from typing import Protocol, TypeAlias

import msgspec

from berth.readings import CardIdentity, Look


class Source(Protocol):
    """One card of one driver. Lives in the driver worker; may block or break as drivers do."""

    def read(self) -> Look:
        """Look at the card now."""

    def close(self) -> None:
        """Give the driver back."""


class SimulatedCard(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated card: the folder that declares it, and its place in the file."""

    folder: str
    identity: CardIdentity


CardSpec: TypeAlias = SimulatedCard
"""Enough to open a card in another process. Plain data: it crosses to a spawned worker."""


def open_source(spec: CardSpec) -> Source:
    """Open a card. Imports its driver's binding only now, in the worker."""
    from berth.probes.simulated import SimulatedSource  # noqa: PLC0415 -- only where it is used

    return SimulatedSource(spec)
