"""The standard streams: there, whatever `berth` was started with, and never why it fails unsaid."""

import io
import os
import sys
from contextlib import suppress
from typing import Final

_NAMES: Final = ("stdin", "stdout", "stderr")


def open_missing_streams() -> None:
    """Open /dev/null for each standard stream that is closed (`2>&-`), and let nothing be unshown.

    The next file that is opened would have its number, and a command would write into that. What a
    stream cannot encode is shown by its escape.
    """
    for number, name in enumerate(_NAMES):
        if not _is_open(number):
            lead_nowhere(number)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, mode, errors="backslashreplace", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def lead_nowhere(number: int) -> None:
    """Have a descriptor read and write /dev/null, in what is started from here too."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    os.set_inheritable(number, True)  # noqa: FBT003 -- it takes no keyword


def say(text: str) -> None:
    """Write lines to stderr. Where nobody can read them, the exit status has to do."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def end_streams() -> None:
    """Write what is left, so that the interpreter finds nothing to complain of at its exit."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            lead_nowhere(number)
            with suppress(OSError):
                stream.flush()
