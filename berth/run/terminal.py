"""The terminal: whose turn it is to be in the foreground, as a shell does it.

The command's group gets the terminal, so that Ctrl-C and Ctrl-Z reach it and nothing else. Where
stdin or stdout are no terminal, the wrapper may share its group with others (`berth run … | less`),
so the command gets the terminal only when it asks for it, by being stopped for touching it.
"""

import os
import signal
from contextlib import suppress
from typing import Final

_ASKS_FOR_IT: Final = frozenset({signal.SIGTTIN, signal.SIGTTOU})


class Terminal:
    """The controlling terminal of this wrapper, or none."""

    def __init__(self) -> None:
        self._tty = -1
        with suppress(OSError):
            self._tty = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        if self._tty >= 0:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        self._both_ends = os.isatty(0) and os.isatty(1)
        self._given = False

    def hand_over(self, group: int) -> None:
        """Give a starting command the terminal, if the wrapper has it and shares it with nobody."""
        if self._both_ends:
            self._give(group)

    def _give(self, group: int) -> None:
        if self._tty < 0:
            return
        with suppress(OSError):
            if os.tcgetpgrp(self._tty) == os.getpgrp():
                os.tcsetpgrp(self._tty, group)
                self._given = True

    def take_back(self, group: int) -> None:
        """Take the terminal back from a command that has ended or was stopped, if it has it still.

        In the background it is the shell's: taken from that, the shell would read its end and exit.
        """
        if not self._given:
            return
        with suppress(OSError):
            has_it = os.tcgetpgrp(self._tty)
            if has_it == group or not _lives(has_it):
                os.tcsetpgrp(self._tty, os.getpgrp())
        self._given = False

    def has(self, group: int) -> bool:
        """Tell whether that group has the terminal now."""
        with suppress(OSError):
            return self._tty >= 0 and os.tcgetpgrp(self._tty) == group
        return False

    def on_stopped(self, group: int, by: int) -> None:
        """The command was stopped: stop with it, as its job, and continue it when continued."""
        if by in _ASKS_FOR_IT and not self.has(group) and self._is_ours():
            self._give(group)
        else:
            if self.has(group):
                self.take_back(group)
            os.killpg(os.getpgrp(), signal.SIGTSTP)
            # Here the wrapper stands still until somebody continues it.
            if self._is_ours():
                self._give(group)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGCONT)

    def _is_ours(self) -> bool:
        return self.has(os.getpgrp())


def _lives(group: int) -> bool:
    """Tell whether anybody is in a group: a shell within the command may have left it in front."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
