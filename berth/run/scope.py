"""A systemd scope around the command, where a user systemd answers (R1).

The waiting child is put into `berth-<lease>.scope` before it executes the command. Then whatever it
starts can be found, counted and ended as one, also when it leaves its process tree. Without a user
systemd, and where the scope cannot be made, the command runs without one.
"""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from berth.probes.procfs import scope_of

MAKE_WITHIN: Final = 2.0
MOVE_WITHIN: Final = 0.5
_SYSTEMD_RUNS: Final = Path("/run/systemd/system")


def user_systemd_answers(environ: Mapping[str, str], booted: Path = _SYSTEMD_RUNS) -> bool:
    """Tell, without starting anything, whether there is a user systemd to ask."""
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    return booted.is_dir() and (runtime / "systemd" / "private").exists()


def make_scope(lease: str, pid: int, environ: Mapping[str, str]) -> str | None:
    """Put a process into a new scope of its own. Return the scope's name, None without one."""
    if not user_systemd_answers(environ):
        return None
    name = f"berth-{lease}.scope"
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    call = [
        *("busctl", "--user", "--quiet", "call"),
        *("org.freedesktop.systemd1", "/org/freedesktop/systemd1"),
        *("org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"),
        *(name, "fail", "2"),
        *("PIDs", "au", "1", str(pid)),
        *("CollectMode", "s", "inactive-or-failed"),
        "0",
    ]
    try:
        made = subprocess.run(  # noqa: S603 -- fixed words, and our own lease id and pid
            call,
            env={**environ, "XDG_RUNTIME_DIR": runtime},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=MAKE_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return name if made.returncode == 0 and _is_in(pid, name) else None


def _is_in(pid: int, name: str) -> bool:
    """Wait until the process is in its scope: systemd moves it a moment after it has answered."""
    give_up = time.monotonic() + MOVE_WITHIN
    while time.monotonic() < give_up:
        if scope_of(pid) == name:
            return True
        time.sleep(0.002)
    return False
