"""How the main thread of a simulated engine learns that it is to end: by a signal, or by a call."""

import os
import select
import signal
from collections.abc import Iterable
from enum import Enum
from types import FrameType
from typing import Final

_UNLOADED: Final = 0  # no signal has that number


class Ending(Enum):
    """Why an engine is to end."""

    STOP = "stop"
    UNLOADED = "unloaded"


class Endings:
    """Words to end, in the order they came, one byte each in a pipe.

    A signal writes its own byte, through Python's wake-up descriptor. Waiting on a queue or an
    Event would not do: Python runs a handler in the main thread once that wakes, and when the
    signal strikes just before it falls asleep on a lock, nothing wakes it.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def hear(self, numbers: Iterable[signal.Signals]) -> None:
        """Take these signals for the word to stop."""
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, _do_nothing)

    def put_unloaded(self) -> None:
        """Say that the memory is given back. Called from any thread."""
        os.write(self._write, bytes([_UNLOADED]))

    def next(self, within: float | None) -> Ending | None:
        """Wait for a word to end, at most `within` seconds; None when none came."""
        ready, _, _ = select.select([self._read], [], [], within)
        if not ready:
            return None
        return Ending.UNLOADED if os.read(self._read, 1)[0] == _UNLOADED else Ending.STOP


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Keep the signal from ending the process; its byte is in the pipe already."""
