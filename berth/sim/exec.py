"""Becoming another command, as a shell's `exec` does."""

import os
from collections.abc import Sequence
from typing import NoReturn

from berth.errors import BerthError, Code, Exit


def become(command: Sequence[str]) -> NoReturn:
    """Execute a command in the place of this process.

    Raises:
        BerthError: it is not there, or not executable.
    """
    try:
        os.execvp(command[0], list(command))  # noqa: S606 -- the command is what was asked for
    except FileNotFoundError:
        message, status = f"{command[0]}: not found", Exit.NOT_THERE
    except OSError as error:
        message, status = f"{command[0]}: {error.strerror}", Exit.NOT_EXECUTABLE
    raise BerthError(Code.NOT_FOUND, message, exit_status=status)
