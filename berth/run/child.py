"""The child that becomes the command.

It is forked before the wrapper has a thread or a socket, puts itself in a process group of its own,
has the kernel kill it when the wrapper dies, and waits on a pipe. Told to go on, it executes the
command: until then it has run nothing of it, and the grant has not cost a fork.
"""

import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

import msgspec

from berth.errors import Exit
from berth.parentage import adopt_orphans, die_with_parent
from berth.words import plain

_TTY_SIGNALS: Final = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)

_PYTHONS_OWN: Final = (signal.SIGPIPE, signal.SIGXFSZ)


class Child(msgspec.Struct):
    """The waiting child, then the command. `pid` is also its process group.

    `errors` reads end-of-file once the command was executed, else a line that says why not.
    """

    pid: int
    errors: int
    _go: int

    def start(self, environment: Mapping[str, str]) -> None:
        """Let it execute the command, with these variables added to its environment."""
        with suppress(BrokenPipeError):
            os.write(self._go, json.dumps(dict(environment)).encode())
        os.close(self._go)
        self._go = -1

    def drop(self) -> None:
        """End it without executing anything."""
        if self._go >= 0:
            os.close(self._go)
            self._go = -1
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def fork_child(command: Sequence[str], directory: str | None) -> Child:
    """Fork the child that will execute the command. Call it before any thread or socket is made."""
    adopt_orphans()
    go_read, go_write = os.pipe()
    error_read, error_write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(go_write)
        os.close(error_read)
        _become(command, directory, parent, go_read, error_write)
    os.close(go_read)
    os.close(error_write)
    with suppress(OSError):  # the child does the same; whoever is first
        os.setpgid(pid, pid)
    return Child(pid=pid, errors=error_read, _go=go_write)


def _become(
    command: Sequence[str], directory: str | None, parent: int, go: int, errors: int
) -> NoReturn:
    """Wait for the word, then execute the command. Never returns into the wrapper's code."""
    status = Exit.NOT_EXECUTABLE
    try:
        os.setpgid(0, 0)
        die_with_parent(parent)
        before = {number: signal.signal(number, signal.SIG_IGN) for number in _TTY_SIGNALS}
        word = _read_all(go)
        if not word:
            os._exit(Exit.OK)
        os.close(go)
        os.environ.update(json.loads(word))
        if directory is not None:
            os.chdir(directory)
        # The command inherits what the wrapper was started with, less what Python changed.
        for number, handler in {**before, **dict.fromkeys(_PYTHONS_OWN, signal.SIG_DFL)}.items():
            signal.signal(number, handler)
        os.execvp(command[0], list(command))  # noqa: S606 -- the command is what was asked for
    except FileNotFoundError as error:
        status = Exit.NOT_THERE
        _complain(errors, command, error)
    except OSError as error:
        _complain(errors, command, error)
    except Exception as error:  # noqa: BLE001 -- else it would end without a word
        _tell(errors, Exit.NOT_EXECUTABLE, f"{plain(command[0])} cannot be started: {error}")
    finally:
        os._exit(status)


def _read_all(pipe: int) -> bytes:
    parts = []
    while part := os.read(pipe, 65536):
        parts.append(part)
    return b"".join(parts)


def _complain(errors: int, command: Sequence[str], error: OSError) -> None:
    status = Exit.NOT_THERE if isinstance(error, FileNotFoundError) else Exit.NOT_EXECUTABLE
    name = error.filename or command[0]
    _tell(errors, status, f"{plain(str(name))}: {error.strerror}")


def _tell(errors: int, status: Exit, why: str) -> None:
    os.write(errors, f"{int(status)} {why}\n".encode(errors="backslashreplace"))


def read_errors(errors: int) -> tuple[int, str] | None:
    """Return the status and the reason of a command that was not executed, None when it was."""
    text = _read_all(errors).decode(errors="replace").strip()
    os.close(errors)
    if not text:
        return None
    status, _, why = text.partition(" ")
    return int(status), why
