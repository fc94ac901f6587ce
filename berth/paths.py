"""Where Berth's files are. The daemon and every client use these functions, and no others (S4)."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from berth.errors import BerthError, Code, Exit

SOCKET_NAME: Final = "berth.sock"
EVENTS_NAME: Final = "berth.events.sock"
_LONGEST_SOCKET: Final = 100  # bytes; the kernel has 107, and the events' name is longer by 7
_OWNER_ONLY: Final = 0o700


def socket_path(
    given: str | None, environ: Mapping[str, str], run_user: Path | None = None
) -> Path:
    """Return where berthd listens.

    In this order: the path given (`--socket`), `BERTH_SOCKET`, `$XDG_RUNTIME_DIR/berth.sock`,
    `/run/user/<uid>/berth.sock` if that directory exists, `/tmp/berth-<uid>/berth.sock`.

    Raises:
        BerthError: the path is too long for a socket.
    """
    explicit = given or environ.get("BERTH_SOCKET")
    path = Path(explicit).absolute() if explicit else _runtime_dir(environ, run_user) / SOCKET_NAME
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        raise BerthError(
            Code.BAD_CONFIG,
            f"the socket's path is longer than {_LONGEST_SOCKET} bytes: {path}",
            hint="name a shorter one with --socket or BERTH_SOCKET",
            exit_status=Exit.CONFIG,
        )
    return path


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
        return boot_marker(socket).read_text().strip() == boot_id()
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
    return BerthError(
        Code.BAD_CONFIG,
        f"cannot use {directory} for the socket: {error.strerror}",
        hint="name another with --socket or BERTH_SOCKET",
        exit_status=Exit.CONFIG,
    )


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
        raise BerthError(
            Code.BAD_CONFIG,
            f"others could put a socket of their own into {directory}",
            hint="remove it, or name a directory of yours with --socket",
            exit_status=Exit.CONFIG,
        )


def _others_may_write(mode: int) -> bool:
    return bool(mode & (stat.S_IWGRP | stat.S_IWOTH)) and not mode & stat.S_ISVTX


def state_dir(environ: Mapping[str, str]) -> Path:
    """Return where journal and learned sizes are kept (`BERTH_STATE_DIR`: the demo's, tests')."""
    given = environ.get("BERTH_STATE_DIR")
    if given:
        return Path(given).absolute()
    base = environ.get("XDG_STATE_HOME", "")
    home = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return home / "berth"


def config_path(environ: Mapping[str, str]) -> Path:
    """Return where berth.toml is (`BERTH_CONFIG` names another)."""
    given = environ.get("BERTH_CONFIG")
    if given:
        return Path(given).absolute()
    base = environ.get("XDG_CONFIG_HOME", "")
    home = Path(base) if base.startswith("/") else Path.home() / ".config"
    return home / "berth" / "berth.toml"
