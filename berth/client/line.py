"""A line to berthd that outlives it: one DEALER socket, and word of when berthd comes and goes.

The kernel tells when the connection comes and goes; a berthd that is there but silent for 15 s
counts as gone too, and the line is made anew. One thread owns a line.
"""

import struct
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq

from berth.wire import MAX_ANSWER

SILENT_FOR: Final = 15.0
RECONNECT_MS: Final = 100
MONITORED: Final = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


class Presence(Enum):
    """Whether berthd is at the other end."""

    THERE = "there"
    GONE = "gone"


SOCKET_OPTIONS: Final = {
    zmq.LINGER: 200,
    zmq.RECONNECT_IVL: RECONNECT_MS,
    zmq.MAXMSGSIZE: MAX_ANSWER,
    # Nothing is kept for a berthd that is away: what matters is said again when it is back.
    zmq.IMMEDIATE: 1,
}


def presence_of(frames: list[bytes]) -> Presence:
    """Return what a socket's monitor says: its first frame is an event's number and value."""
    (event,) = struct.unpack_from("=H", frames[0])
    return Presence.THERE if event == zmq.EVENT_HANDSHAKE_SUCCEEDED else Presence.GONE


class Line:
    """One line to berthd."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._context = zmq.Context()
        self._open()

    def _open(self) -> None:
        self._socket = self._context.socket(zmq.DEALER)
        for option, value in SOCKET_OPTIONS.items():
            self._socket.set(option, value)
        self._monitor = self._socket.get_monitor_socket(MONITORED)
        self._socket.connect(f"ipc://{self._path}")
        self._up = False
        self._heard = time.monotonic()

    def register(self, poller: zmq.Poller) -> None:
        """Have a poller wait on this line."""
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)

    def send(self, body: bytes) -> bool:
        """Send a message; return False when berthd is not there."""
        try:
            self._socket.send(body, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def news(self, poller: zmq.Poller) -> Iterator[Presence | dict[str, Any]]:
        """Return what has happened on the line since, in order."""
        while self._monitor.poll(0):
            presence = presence_of(self._monitor.recv_multipart())
            self._up = presence is Presence.THERE
            self._heard = time.monotonic()
            yield presence
        yield from self._messages()
        if self._up and time.monotonic() - self._heard > SILENT_FOR:
            self._make_anew(poller)
            yield Presence.GONE

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            try:
                body = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._heard = time.monotonic()
            yield msgspec.json.decode(body)

    def _make_anew(self, poller: zmq.Poller) -> None:
        poller.unregister(self._socket)
        poller.unregister(self._monitor)
        self._close_sockets(linger=0)
        self._open()
        self.register(poller)

    def _close_sockets(self, linger: int | None = None) -> None:
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=linger)

    def close(self) -> None:
        """Close the line, once what was sent last is out."""
        self._close_sockets()
        self._context.term()
