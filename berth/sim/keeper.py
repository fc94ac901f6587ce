"""A process that keeps an engine's memory: the driver that is slow to free it, or a stray worker.

It is forked twice and leads a session of its own, so neither a signal to the engine's process group
nor the engine's end touches it. Fork it before the engine has a thread.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from berth.sim.claims import Claim

_STANDARD_FILES: Final = (0, 1, 2)


def fork_slow_release(folder: Path, card: int, lag: float) -> int:
    """Fork who claims for the engine until `lag` seconds after its end. Return its pid.

    It stands for the driver, so only SIGKILL ends it before its time.
    """

    def keep(life: int) -> None:
        os.read(life, 1)  # end of file: the engine is gone
        time.sleep(lag)
        Claim(folder, card).drop()

    return _fork(keep, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


def fork_stray(*, ignore_sigterm: bool) -> int:
    """Fork a worker that claims for the engine and outlives it, until a signal. Return its pid."""

    def keep(life: int) -> None:  # noqa: ARG001 -- it does not care whether the engine lives
        while True:
            signal.pause()

    return _fork(keep, {signal.SIGTERM} if ignore_sigterm else set())


def _fork(keep: Callable[[int], None], ignored: set[signal.Signals]) -> int:
    """Fork a process that left the session, and return its pid once it is ready for signals.

    The writing end of the pipe `life` stays open in the engine alone, for as long as it lives.
    """
    pid_read, pid_write = os.pipe()
    life_read, life_write = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(life_write)
        _become_keeper(keep, ignored, life_read, pid_write)
    os.close(pid_write)
    os.close(life_read)
    pid = int(os.read(pid_read, 32))
    os.close(pid_read)
    os.waitpid(first, 0)
    return pid


def _become_keeper(
    keep: Callable[[int], None], ignored: set[signal.Signals], life: int, pid_write: int
) -> NoReturn:
    """Leave the session, tell the pid, keep. Never returns into the engine's code."""
    try:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        os.write(pid_write, str(os.getpid()).encode())
        _close_all_but(life)
        keep(life)
    finally:
        os._exit(0)


def _close_all_but(kept: int) -> None:
    """Hold nothing of the engine's open: not its port, nor the pipe that somebody reads it from."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in _STANDARD_FILES:
        os.dup2(nowhere, standard)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- numbers, not files of a folder
        if int(name) not in {*_STANDARD_FILES, kept}:
            with suppress(OSError):  # the one that the list was read through is closed by now
                os.close(int(name))
