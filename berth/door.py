"""What stands where berthd's files are to be, and which of it is its own (S4).

ZeroMQ deletes whatever has the name of a socket that it binds. So what stands there is looked at
first: a socket that a dead berthd left may go, anything else is somebody's.
"""

import errno
import logging
import os
import re
import socket as sockets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

import zmq

from berth.errors import BerthError, Code, Exit
from berth.paths import (
    berthd_ran_this_boot,
    boot_id,
    boot_marker,
    events_path,
    lock_path,
    no_socket_in,
)

log = logging.getLogger(__name__)

NAME_ANOTHER_SOCKET: Final = "move it away, or name another path with --socket or BERTH_SOCKET"
_LOCKED_BY: Final = re.compile(rb"\d{0,10}\n?")
_MARKED_BY: Final = re.compile(rb"[0-9a-f-]{0,36}\n?")
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFREG: "a file that is none of berthd's",
}
_NOBODY: Final = frozenset({errno.ECONNREFUSED, errno.ENOENT, errno.ENOTDIR})


def check_door(socket: Path) -> None:
    """Check that berthd's files can be made without taking anybody else's place. Touches nothing.

    Raises:
        BerthError: something that is not berthd's stands there, or somebody listens there already.
    """
    try:
        _check_all(socket)
    except OSError as error:
        raise no_socket_in(socket.parent, error) from error


def _check_all(socket: Path) -> None:
    for path in (socket, events_path(socket)):
        if stranger := _no_socket_at(path):
            raise in_the_way(path, stranger, NAME_ANOTHER_SOCKET)
    check_lock(lock_path(socket), NAME_ANOTHER_SOCKET)
    _check_file(boot_marker(socket), _MARKED_BY, NAME_ANOTHER_SOCKET)
    for path in (socket, events_path(socket)):
        if _somebody_listens(path):
            raise _listened_at(path, lock_path(socket))


def check_lock(path: Path, way_out: str) -> None:
    """Check that what has a lock's name is a berthd's lock, or nothing. Locking it empties it.

    Raises:
        BerthError: it is something else.
    """
    _check_file(path, _LOCKED_BY, way_out)


def in_the_way(path: Path, what: str, way_out: str) -> BerthError:
    """Return what a person is told whose file has the name of one of berthd's."""
    message = f"{path} is {what}: berthd would take its place"
    return BerthError(Code.BAD_CONFIG, message, hint=way_out, exit_status=Exit.CONFIG)


def keep_mark(socket: Path) -> None:
    """See to it that the mark of a berthd that runs in this boot is there (R4)."""
    path = boot_marker(socket)
    with suppress(OSError, BerthError):
        if not berthd_ran_this_boot(socket):
            _check_file(path, _MARKED_BY, NAME_ANOTHER_SOCKET)
            path.write_text(boot_id())


def _listened_at(path: Path, lock: Path) -> BerthError:
    with suppress(OSError):
        if pid := lock.read_text().strip():
            return BerthError(
                Code.BAD_CONFIG,
                f"another berthd (pid {pid}) has {path}",
                hint="berth status shows what it governs; stop it first, or name another --socket",
                exit_status=Exit.UNAVAILABLE,
            )
    return in_the_way(path, "a socket that another program listens at", NAME_ANOTHER_SOCKET)


def _check_file(path: Path, content: re.Pattern[bytes], way_out: str) -> None:
    kind = _kind_at(path)
    if kind == 0:
        return
    if kind == stat.S_IFREG:
        with path.open("rb") as file:
            if content.fullmatch(file.read(64)):
                return
    raise in_the_way(path, _KINDS.get(kind, "a device"), way_out)


def _no_socket_at(path: Path) -> str:
    """Return what stands there, empty for a socket and for nothing."""
    kind = _kind_at(path)
    return "" if kind in {0, stat.S_IFSOCK} else _KINDS.get(kind, "a device")


def _kind_at(path: Path) -> int:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _somebody_listens(path: Path) -> bool:
    """Tell whether a socket is in use, by whomever and for whatever."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(0)
        return probe.connect_ex(os.fspath(path)) not in _NOBODY


class Place:
    """Where one socket is bound, for as long as its thread lives. Used by that thread only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._own: tuple[int, int] | None = None
        self._warned = ""

    def bind(self, socket: "zmq.Socket[bytes]") -> None:
        """Bind a socket that only its owner can connect to.

        Raises:
            BerthError: something stands there that is no socket.
            zmq.ZMQError, OSError: there can be none.
        """
        if stranger := _no_socket_at(self._path):
            raise in_the_way(self._path, stranger, NAME_ANOTHER_SOCKET)
        before = os.umask(0o177)
        try:
            socket.bind(f"ipc://{self._path}")
        finally:
            os.umask(before)
        self._own = self._there()

    def keep(self, socket: "zmq.Socket[bytes]") -> None:
        """Bind anew where the file is gone, or another berthd's that is dead.

        Who is connected already stays connected.
        """
        try:
            if self._own is not None and self._there() == self._own:
                self._warned = ""
                return
            if stranger := _no_socket_at(self._path):
                raise in_the_way(self._path, stranger, NAME_ANOTHER_SOCKET)
            if _somebody_listens(self._path):
                self._warn(f"somebody else listens at {self._path} by now")
                return
            self._bind_anew(socket)
        except (BerthError, OSError) as error:  # a ZMQError is none of them
            self._warn(f"{self._path} was taken away, and cannot be made anew: {error}")
        else:
            log.warning("%s was taken away, and is made anew", self._path)
            self._warned = ""

    def _bind_anew(self, socket: "zmq.Socket[bytes]") -> None:
        with suppress(zmq.ZMQError):
            socket.unbind(f"ipc://{self._path}")
        self._own = None
        try:
            self.bind(socket)
        except zmq.ZMQError as error:
            raise OSError(error.errno, error.strerror) from error

    def _there(self) -> tuple[int, int] | None:
        try:
            found = self._path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_dev, found.st_ino

    def _warn(self, why: str) -> None:
        """Say it once, not every 2 s."""
        if why != self._warned:
            log.warning("%s", why)
            self._warned = why
