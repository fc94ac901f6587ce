"""Where Berth's files are. The daemon and every client use these functions, and no others (S4)."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from berth.errors import BerthError, Code, Exit
from berth.words import is_utf8, plain

SOCKET_NAME: Final = "berth.sock"
EVENTS_NAME: Final = "berth.events.sock"
_LONGEST_SOCKET: Final = 100  # bytes; the kernel has 107, and the events' name is longer by 7
_OWNER_ONLY: Final = 0o700
_NAME_ANOTHER: Final = "name another with --socket or BERTH_SOCKET"


def socket_path(
    given: str | None, environ: Mapping[str, str], run_user: Path | None = None
) -> Path:
    """Return where berthd listens.

    In this order: the path given (`--socket`), `BERTH_SOCKET`, `$XDG_RUNTIME_DIR/berth.sock`,
    `/run/user/<uid>/berth.sock` if that directory exists, `/tmp/berth-<uid>/berth.sock`.

    Raises:
        BerthError: the path is too long for a socket, or no path at all.
    """
    explicit = given or environ.get("BERTH_SOCKET")
    path = _absolute(explicit) if explicit else _runtime_dir(environ, run_user) / SOCKET_NAME
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        message = f"the socket's path is longer than {_LONGEST_SOCKET} bytes: {path}"
        raise _wrong(message, "name a shorter one with --socket or BERTH_SOCKET")
    if not is_utf8(str(path)):
        raise _wrong(f"the socket's path is not UTF-8: {plain(str(path))}", _NAME_ANOTHER)
    return path


def _absolute(given: str) -> Path:
    """Return a path that a person named, from the root on."""
    try:
        return Path(given).absolute()
    except FileNotFoundError as error:
        message = f"{plain(given)} is a path from this directory, and that was deleted"
        raise _wrong(message, "name it from / on, or go to another directory") from error


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise _wrong("there is no home directory for Berth's files", "set HOME") from error


def _wrong(message: str, hint: str) -> BerthError:
    return BerthError(Code.BAD_CONFIG, message, hint=hint, exit_status=Exit.CONFIG)


def _runtime_dir(environ: Mapping[str, str], run_user: Path | None) -> Path:
    named = environ.get("XDG_RUNTIME_DIR", "")
    if named.startswith("/"):
        return Path(named)
    own = run_user or Path(f"/run/user/{os.getuid()}")
    return own if own.is_dir() else Path(f"/tmp/berth-{os.getuid()}")  # noqa: S108 -- checked below


def events_path(socket: Path) -> Path:
    """Return where berthd publishes its events: beside its socket."""
    return socket.with_name(socket.name.removesuffix(".sock") + ".events.sock")


def lock_path(socket: Path) -> Path:
    """Return the lock beside the socket: whoever has it is the berthd of that socket."""
    return socket.with_name(f"{socket.name}.lock")


def boot_id() -> str:
    """Return the kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def boot_marker(socket: Path) -> Path:
    """Return the file beside the socket that says in which boot a berthd last ran there (R4)."""
    return socket.with_name(f"{socket.name}.boot")


def berthd_ran_this_boot(socket: Path) -> bool:
    """Tell whether a berthd ran on this socket since the machine was started."""
    try:
        return boot_marker(socket).read_bytes().strip() == boot_id().encode()
    except OSError:
        return False


def prepare_socket_dir(socket: Path) -> None:
    """Make the socket's directory if it is missing, for its owner only.

    Raises:
        BerthError: the directory is somebody else's, or others may write to it.
    """
    directory = socket.parent
    try:
        directory.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
    except OSError as error:
        raise no_socket_in(directory, error) from error
    check_socket_dir(socket)


def no_socket_in(directory: Path, error: OSError) -> BerthError:
    """Return what a person is told where the socket's directory will not do."""
    return _wrong(f"cannot use {directory} for the socket: {error.strerror}", _NAME_ANOTHER)


def check_socket_dir(socket: Path) -> None:
    """Check that nobody else can have put a socket of their own there. Clients check it too.

    Raises:
        BerthError: the directory is somebody else's, or others may write to it.
    """
    directory = socket.parent
    try:
        found = directory.stat()
    except OSError:
        return  # nobody has put anything there
    if found.st_uid not in {os.getuid(), 0} or _others_may_write(found.st_mode):
        raise _wrong(
            f"others could put a socket of their own into {directory}",
            "remove it, or name a directory of yours with --socket",
        )


def _others_may_write(mode: int) -> bool:
    return bool(mode & (stat.S_IWGRP | stat.S_IWOTH)) and not mode & stat.S_ISVTX


def state_dir(environ: Mapping[str, str]) -> Path:
    """Return where journal and learned sizes are kept (`BERTH_STATE_DIR`: the demo's, tests')."""
    given = environ.get("BERTH_STATE_DIR")
    if given:
        return _absolute(given)
    base = environ.get("XDG_STATE_HOME", "")
    home = Path(base) if base.startswith("/") else _home() / ".local" / "state"
    return home / "berth"


def config_path(environ: Mapping[str, str]) -> Path:
    """Return where berth.toml is (`BERTH_CONFIG` names another)."""
    given = environ.get("BERTH_CONFIG")
    if given:
        return _absolute(given)
    base = environ.get("XDG_CONFIG_HOME", "")
    home = Path(base) if base.startswith("/") else _home() / ".config"
    return home / "berth" / "berth.toml"
