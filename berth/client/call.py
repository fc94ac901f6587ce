"""The client's side of the socket: one request, its answers. The only place that waits for one."""

import errno
import os
import re
import socket as sockets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import zmq

from berth.client.refusals import NoBerth
from berth.errors import BerthError, Code, Exit, refusal_status
from berth.paths import check_socket_dir
from berth.wire import MAX_ANSWER, PROTOCOL

ANSWER_WITHIN: Final = 10.0
_SPEAKS: Final = re.compile(r"berthd speaks protocol (\d{1,9})")


def berthd_listens(path: Path) -> bool:
    """Tell whether somebody is behind the socket, without speaking to them."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
    return True


def nobody_there(path: Path) -> NoBerth:
    """Return what a person is told when no berthd answers."""
    shown = _shown(path)
    start = "Start it:  berth daemon"
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        found = probe.connect_ex(os.fspath(path))
    if found == errno.ECONNREFUSED:
        message = f"a socket file is left at {shown} but berthd is gone"
        hint = "It is safe to start a new one:  berth daemon"
    elif found in {errno.EACCES, errno.EPERM}:
        message = f"{shown} belongs to another user's berthd"
        hint = "Start your own:  berth daemon    or name another with --socket or BERTH_SOCKET"
    elif found == 0:
        message = f"berthd at {shown} does not answer"
        hint = "See what it does:  kill -USR1 with its pid writes every thread to its log"
    else:
        message = f"no berthd answers at {shown}"
        hint = f"{start}\n(looked there because {_because(path)})"
    return NoBerth(message, hint)


def _shown(path: Path) -> str:
    """Return a socket's path as a person knows it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and path.parent == Path(runtime):
        return f"$XDG_RUNTIME_DIR/{path.name}"
    return str(path)


def _because(path: Path) -> str:
    if os.environ.get("BERTH_SOCKET") == str(path):
        return "BERTH_SOCKET is set"
    if os.environ.get("XDG_RUNTIME_DIR") == str(path.parent):
        return "XDG_RUNTIME_DIR is set"
    return "XDG_RUNTIME_DIR is not set"


class Client:
    """A line to berthd for operations with one answer. Use it as a context manager."""

    def __init__(self, path: Path, answer_within: float = ANSWER_WITHIN) -> None:
        self._path = path
        self._answer_within = answer_within
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.set(zmq.LINGER, 0)
        self._socket.set(zmq.MAXMSGSIZE, MAX_ANSWER)
        self._number = 0
        self._hearing: dict[str, Callable[[dict[str, Any]], None]] = {}

    def __enter__(self) -> Self:
        check_socket_dir(self._path)
        if not berthd_listens(self._path):
            self.close()
            raise nobody_there(self._path)
        self._socket.connect(f"ipc://{self._path}")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the line."""
        self._socket.close()
        self._context.term()

    def call(
        self,
        op: str,
        fields: dict[str, Any] | None = None,
        progress: Callable[[dict[str, Any]], None] | None = None,
        within: float | None = None,
    ) -> dict[str, Any]:
        """Send an operation and return its data.

        With `progress`, what comes before the end is passed to it, and the end is waited for as
        long as berthd says something every 10 s. It also hears what still comes when the call was
        interrupted, while another is made. `within` is in seconds, 10 if it is None.

        Raises:
            BerthError: berthd refused it, or does not answer.
        """
        self._number += 1
        message_id = str(self._number)
        request = {"v": PROTOCOL, "id": message_id, "op": op, **(fields or {})}
        self._socket.send(msgspec.json.encode(request))
        if progress is not None:
            self._hearing[message_id] = progress
        patience = self._answer_within if within is None else within
        give_up = time.monotonic() + patience
        while (wait := give_up - time.monotonic()) > 0 and self._socket.poll(int(wait * 1000) + 1):
            answer = msgspec.json.decode(self._socket.recv())
            told = answer.get("id", "")
            if told == message_id and answer.get("last"):
                return _data(answer)
            if told in self._hearing:
                self._hearing[told](answer.get("data") or {})
            if told == message_id:
                give_up = time.monotonic() + patience
        raise nobody_there(self._path)


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["ok"]:
        data: dict[str, Any] = answer.get("data") or {}
        return data
    error = answer["error"]
    message = error["message"]
    other = _SPEAKS.search(message)
    if other is not None:
        raise _other_protocol(int(other[1]))
    code = _code(error["code"])
    status = refusal_status(code)
    raise BerthError(code, message, hint=error.get("hint", ""), exit_status=status)


def _other_protocol(theirs: int) -> BerthError:
    """Return what a person is told when berthd is of another version than this command."""
    hint = (
        "Update this one:  berth update"
        if theirs > PROTOCOL
        else "berthd is the older one: stop it, and start it again with this berth"
    )
    message = f"berthd speaks protocol {theirs}, this berth speaks {PROTOCOL}"
    return BerthError(Code.BAD_REQUEST, message, hint=hint, exit_status=Exit.UNAVAILABLE)


def _code(text: str) -> Code:
    try:
        return Code(text)
    except ValueError:  # a newer berthd's
        return Code.INTERNAL
