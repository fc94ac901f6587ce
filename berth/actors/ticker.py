"""The ticker: time, as the actors hear of it."""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from berth.actors.base import Address
from berth.actors.card.messages import CardInbox, Resumed
from berth.units import Seconds

TICK_EVERY: Final = Seconds(0.5)

SUSPEND_FROM: Final = 5.0
"""From how many seconds of sleep on the machine counts as suspended (S8)."""


def seconds_slept() -> float:
    """Return how long the machine has been suspended since it was booted."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class Ticker(threading.Thread):
    """Tells every actor, twice a second, that time has passed; and cards, that the machine slept.

    The monotonic clock stands still in a suspend, the boot clock does not: their difference shows
    how long the machine has slept so far.
    """

    def __init__(
        self,
        ticks: tuple[tuple[Address[Any], object], ...],
        cards: tuple[Address[CardInbox], ...],
        slept: Callable[[], float] = seconds_slept,
    ) -> None:
        super().__init__(name="ticker", daemon=True)
        self._ticks = ticks
        self._cards = cards
        self._slept = slept
        self._slept_before = slept()
        self._stopped = threading.Event()

    def run(self) -> None:
        """Tick until stopped."""
        while not self._stopped.wait(TICK_EVERY):
            self.tick()

    def tick(self) -> None:
        """Tell everybody once."""
        slept = self._slept()
        just_now = slept - self._slept_before
        if just_now > SUSPEND_FROM:
            for card in self._cards:
                card.tell(Resumed(slept=Seconds(just_now)))
        self._slept_before = slept
        for address, tick in self._ticks:
            address.tell(tick)

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
