"""One berthd for one socket and for one state folder, however often it is started."""

import fcntl
import logging
import os
import resource
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self, TextIO

from berth.door import check_lock
from berth.errors import BerthError, Code, Exit

log = logging.getLogger(__name__)

FILES_WANTED: Final = 65536
"""How many open files berthd asks for: each connection is one, and ZeroMQ ends it without one."""
FILES_NEEDED: Final = 256
"""With fewer berthd does not start: it would end under its clients, not refuse one of them."""
FILES_ADVISED: Final = 4096


class OnlyOne:
    """A lock that one berthd holds. It goes with the process, so no dead berthd keeps it.

    It is the file of that name: one that was deleted keeps nobody out. `has` is what another berthd
    is told to have, `hint` what to do then, `way_out` what to do about a file that is no lock.

    Raises:
        BerthError: another berthd has it, or something else has its name; the sentence says which.
        OSError: no lock can be made there.
    """

    def __init__(self, path: Path, has: str, *, hint: str, way_out: str) -> None:
        self._path = path
        self._has = has
        self._way_out = way_out
        self._mutex = threading.Lock()
        self._warned = ""
        try:
            self._file = self._take(None)
        except BlockingIOError:
            raise BerthError(
                Code.BAD_CONFIG, self._taken(), hint=hint, exit_status=Exit.UNAVAILABLE
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def lost(self) -> str:
        """Return who has the lock by now, empty while it is this berthd's. For any thread.

        Where its file is gone, it is made and locked anew.
        """
        with self._mutex:
            if self._is_in_place(self._file):
                return ""
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                before, self._file = self._file, self._take(self._file)
            except (BlockingIOError, PermissionError):
                return self._taken()
            except (OSError, BerthError) as error:  # then no other berthd can have it either
                self._warn(f"{self._path} was taken away, and cannot be made anew: {error}")
                return ""
            if before is not self._file:
                before.close()
                log.warning("%s was taken away, and is made anew", self._path)
            return ""

    def _take(self, held: TextIO | None) -> TextIO:
        """Open and lock the file of that name. Return `held` where it is that one."""
        while True:
            check_lock(self._path, self._way_out)
            with ExitStack() as closing:
                file = closing.enter_context(self._path.open("a+"))
                if held is not None and os.path.sameopenfile(held.fileno(), file.fileno()):
                    return held
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_in_place(file):
                    file.truncate(0)
                    file.write(f"{os.getpid()}\n")
                    file.flush()
                    closing.pop_all()
                    return file

    def _is_in_place(self, file: TextIO) -> bool:
        try:
            return os.path.samestat(self._path.lstat(), os.fstat(file.fileno()))
        except OSError:
            return False

    def _taken(self) -> str:
        owner = ""
        with suppress(OSError):
            owner = self._path.read_text(errors="replace").strip()
        return f"another berthd (pid {owner or 'unknown'}) has {self._has}"

    def _warn(self, why: str) -> None:
        """Say it once, not at every look."""
        if why != self._warned:
            log.warning("%s", why)
            self._warned = why


def raise_file_limit() -> None:
    """Allow this process as many open files as it may have, up to what berthd can need.

    Raises:
        BerthError: it may have so few that ZeroMQ would end berthd under a handful of clients.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = hard == resource.RLIM_INFINITY
    if not endless and hard < FILES_NEEDED:
        raise BerthError(
            Code.BAD_CONFIG,
            f"berthd may have only {hard} files open, and each client is one:"
            f" it needs {FILES_NEEDED}",
            hint=f"raise the hard limit before it starts (ulimit -n {FILES_ADVISED});"
            f" in a systemd unit LimitNOFILE={FILES_ADVISED}",
            exit_status=Exit.CONFIG,
        )
    wanted = FILES_WANTED if endless else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
