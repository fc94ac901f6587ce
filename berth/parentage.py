"""Ties between processes: to die with one's parent, to be the parent of all one's orphans."""

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel SIGKILL this process when the thread that made it ends.

    `parent` is the parent's pid as it was before the fork: if it is gone already, die now.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every orphan below this process, so that none of them gets away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
