"""How berthd hears that it should stop."""

import faulthandler
import os
import select
import signal
from types import FrameType
from typing import Final


class StopWishes:
    """Where berthd hears that it should stop: SIGTERM, SIGINT, or a wish from within.

    The kernel may hand a signal to any thread, and a main thread that waits for a lock would not
    notice. So signals write into a pipe, and the main thread reads it. SIGUSR1 writes every
    thread's stack to stderr, and stops nothing.
    """

    _STOPPING: Final = frozenset({0, int(signal.SIGTERM), int(signal.SIGINT)})

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _noted_in_the_pipe)
        faulthandler.register(signal.SIGUSR1, all_threads=True)

    def wish(self) -> None:
        """Have `wait` return. May be called from any thread."""
        os.write(self._write, b"\0")

    def wait(self, within: float) -> bool:
        """Wait for a wish or a signal, so many seconds at most. Return whether there was one."""
        ready = select.select([self._read], [], [], within)[0]
        return bool(ready) and not self._STOPPING.isdisjoint(os.read(self._read, 64))


def _noted_in_the_pipe(number: int, frame: FrameType | None) -> None:
    """Do nothing: the signal's number is in the wake-up pipe already."""
    del number, frame
