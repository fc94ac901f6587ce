"""One berthd for one socket and for one state folder, however often it is started."""

import fcntl
import os
import resource
from pathlib import Path
from typing import Final, TextIO

from berth.errors import BerthError, Code, Exit

FILES_WANTED: Final = 65536
"""How many open files berthd asks for: each connection is one, and ZeroMQ ends it without one."""


def only_one(path: Path, has: str, hint: str) -> TextIO:
    """Take a lock. It goes with the process, so no dead berthd keeps it.

    `has` is what another berthd is told to have.

    Raises:
        BerthError: another berthd has it; the sentence says which.
    """
    lock = path.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        message = f"another berthd (pid {owner}) has {has}"
        raise BerthError(
            Code.BAD_CONFIG, message, hint=hint, exit_status=Exit.UNAVAILABLE
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def raise_file_limit() -> None:
    """Allow this process as many open files as it may have, up to what berthd can need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
