"""The socket thread: the only one that touches berthd's ZeroMQ sockets.

ZeroMQ sockets belong to one thread, and an actor's thread sits in its inbox. So a plain thread owns
them: what comes in is parsed at the door (`codec.py`) and told to the node; what goes out arrives
through a queue and a wake-up. A message that cannot be delivered is told to the node: its client is
gone. So is one whose process has ended, though its connection stands.

Of what comes in, only so much is told to the node as it can handle soon: what is beyond it waits
with its sender, and ZeroMQ takes from each of them in turn. So a client that asks without end
delays nobody else, and the node's inbox stays short.
"""

import errno
import logging
import os
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias, assert_never

import msgspec
import zmq
from msgspec.structs import replace

from berth.actors.base import Address
from berth.actors.node.codec import BadRequest, decode, encode, encode_refusal, encode_reply
from berth.actors.node.messages import (
    Called,
    NodeInbox,
    Peer,
    PeerGone,
    Publish,
    Push,
    Reply,
    SocketDied,
)
from berth.door import Place
from berth.errors import Code
from berth.ids import Connection, ProcessId
from berth.paths import events_path
from berth.probes.procfs import identify, is_alive
from berth.wire import MAX_FRAME

log = logging.getLogger(__name__)

_KNOWN_CLIENTS: Final = 4096
_UNSEEN: Final = "berthd cannot see your process; a container needs the host's pid namespace"
_UNREAD_REPLIES: Final = 1000
"""How many messages wait for a client that does not read; beyond it, it counts as gone."""
_READ_WITHIN: Final = 0.25
"""Seconds between the last answer and the end of the connections.

A client's socket that has ZMQ_IMMEDIATE set (ours has) drops what it has not read yet when the
connection ends, so an answer sent right before it would be lost.
"""


AT_ONCE: Final = 128
"""How many operations the node may have before it at once; at half of that it is told more."""
_LOOK_AT_DOOR_EVERY: Final = 2.0
"""How often the sockets' files and the clients' processes are looked after (seconds)."""
_LOOKED_AT: Final = 100
"""How many clients are looked at in one go, so that a crowd of them delays nobody."""


class CloseSocket(msgspec.Struct, frozen=True):
    """Send what is waiting, and end."""


Outgoing: TypeAlias = Reply | Push | Publish | CloseSocket


class _Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who is behind a connection. `mirrored`: it is a REQ socket, which wants its empty frame."""

    pid: int
    process: ProcessId | None
    mirrored: bool


def _peer_pid(frames: "list[zmq.Frame]") -> int:
    """Return the pid at the other end, 0 where it is not told (it speaks no ZeroMQ of ours)."""
    for frame in reversed(frames):
        with suppress(zmq.ZMQError, ValueError):
            return int(str(frame.get("Peer-Address")).rpartition(":")[2])
    return 0


class SocketThread(threading.Thread):
    """Owns the ROUTER (requests and orders) and PUB (events) sockets of one berthd."""

    def __init__(self, path: Path, node: Address[NodeInbox]) -> None:
        super().__init__(name="socket", daemon=True)
        self._node = node
        self._outgoing: SimpleQueue[Outgoing] = SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._context = zmq.Context()
        self._places = (Place(path), Place(events_path(path)))
        self._router = self._bind(zmq.ROUTER, self._places[0], {zmq.ROUTER_MANDATORY: 1})
        self._pub = self._bind(zmq.PUB, self._places[1], {})
        self._clients: OrderedDict[Connection, _Client] = OrderedDict()
        self._unseen: list[Connection] = []
        self._answered = -_READ_WITHIN
        self._told = 0
        self._handled = 0
        self._full = False

    def _bind(self, kind: int, place: Place, own: dict[int, int]) -> "zmq.Socket[bytes]":
        """Bind a socket that only its owner can connect to (S4). Options hold from the bind on."""
        socket = self._context.socket(kind)
        options = {
            zmq.LINGER: 500,
            zmq.SNDHWM: _UNREAD_REPLIES,
            zmq.MAXMSGSIZE: MAX_FRAME,
            zmq.IPC_FILTER_UID: os.getuid(),
            **own,
        }
        for option, value in options.items():
            socket.set(option, value)
        place.bind(socket)
        return socket

    def tell(self, message: Outgoing, /) -> None:
        """Send something. May be called from any thread."""
        self._outgoing.put(message)
        os.eventfd_write(self._wake, 1)

    def handled(self) -> None:
        """Note that the node has handled an operation. Called from the node's thread only."""
        self._handled += 1
        if self._full and self._told - self._handled <= AT_ONCE // 2:
            os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Serve until told to close. A thread that dies takes its node along."""
        try:
            self._serve()
        except Exception as error:
            self._node.tell(SocketDied(cause=f"{type(error).__name__}: {error}"))
            raise
        finally:
            self._close()

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._wake, zmq.POLLIN)
        serving, looked = True, time.monotonic()
        while serving:
            self._full = True  # so that the node says when there is room, also from now on
            self._full = self._told - self._handled >= AT_ONCE
            poller.modify(self._router, 0 if self._full else zmq.POLLIN)
            ready = dict(poller.poll(round(_LOOK_AT_DOOR_EVERY * 1000)))
            if time.monotonic() - looked >= _LOOK_AT_DOOR_EVERY:
                looked = time.monotonic()
                self._keep_door_open()
                self._see_who_is_gone()
            if self._router in ready:
                self._receive_all()
            if self._wake in ready:
                os.eventfd_read(self._wake)
                serving = self._send_all()

    def _keep_door_open(self) -> None:
        """Bind anew where a socket's file was deleted. Who is connected already stays connected."""
        for socket, place in zip((self._router, self._pub), self._places, strict=True):
            place.keep(socket)

    def _see_who_is_gone(self) -> None:
        """Tell the node whose process has ended: a child of it may keep the connection open (S5).

        The next few each time, in turn. Who cannot be seen from here is never gone by this.
        """
        self._unseen = self._unseen or list(self._clients)
        looked_at, self._unseen = self._unseen[:_LOOKED_AT], self._unseen[_LOOKED_AT:]
        for connection in looked_at:
            known = self._clients.get(connection)
            if known is not None and known.process is not None and not is_alive(known.process):
                self._is_gone(connection)

    def _is_gone(self, connection: Connection) -> None:
        self._clients.pop(connection, None)
        self._node.tell(PeerGone(connection=connection))

    def _close(self) -> None:
        """Give the sockets back. Their files stay: a later berthd or node may have them by now."""
        threading.Event().wait(max(0.0, self._answered + _READ_WITHIN - time.monotonic()))
        self._router.close()
        self._pub.close()
        self._context.term()

    # --- in ---------------------------------------------------------------------------------

    def _receive_all(self) -> None:
        with suppress(zmq.Again):
            while self._told - self._handled < AT_ONCE:
                self._receive(self._router.recv_multipart(zmq.NOBLOCK, copy=False))

    def _receive(self, frames: "list[zmq.Frame]") -> None:
        connection = Connection(frames[0].bytes)
        message = frames[1:]
        # A REQ socket puts an empty frame before its message, and wants it back.
        mirrored = len(message) > 1 and not len(message[0])
        client = self._client(connection, _peer_pid(frames), mirrored=mirrored)
        try:
            if len(message) != 1 + mirrored:
                raise BadRequest("", Code.BAD_REQUEST, "a message is one frame of JSON")
            if client.process is None:
                raise BadRequest("", Code.NOT_YOURS, _UNSEEN)
            message_id, op = decode(message[-1].bytes, client.process)
        except BadRequest as bad:
            self._send(connection, encode_refusal(bad))
            return
        peer = Peer(connection=connection, process=client.process)
        self._told += 1
        self._node.tell(Called(peer=peer, message_id=message_id, op=op))

    def _client(self, connection: Connection, pid: int, *, mirrored: bool) -> "_Client":
        """Return who is at the other end, as the kernel said when it connected."""
        known = self._clients.get(connection)
        if known is None or known.pid != pid or known.process is None:
            known = _Client(pid=pid, process=identify(pid), mirrored=mirrored)
        self._clients[connection] = replace(known, mirrored=mirrored)
        self._clients.move_to_end(connection)
        if len(self._clients) > _KNOWN_CLIENTS:
            self._clients.popitem(last=False)
        return self._clients[connection]

    # --- out --------------------------------------------------------------------------------

    def _send_all(self) -> bool:
        """Send what waits. Return False when told to close."""
        with suppress(Empty):
            while True:
                outgoing = self._outgoing.get_nowait()
                match outgoing:
                    case Reply():
                        self._send(outgoing.connection, encode_reply(outgoing))
                    case Push():
                        self._send(outgoing.connection, encode(outgoing.message))
                    case Publish():
                        event = outgoing.event
                        self._pub.send_multipart([event.kind.encode(), encode(event.flat())])
                    case CloseSocket():
                        return False
                    case _:
                        assert_never(outgoing)
        return True

    def _send(self, connection: Connection, body: bytes) -> None:
        known = self._clients.get(connection)
        frames = [b"", body] if known is not None and known.mirrored else [body]
        try:
            self._router.send_multipart([connection, *frames], zmq.NOBLOCK)
            self._answered = time.monotonic()
        except zmq.Again:
            log.warning("a client does not read its answers; it counts as gone")
        except zmq.ZMQError as error:
            if error.errno != errno.EHOSTUNREACH:
                raise
        else:
            return
        self._is_gone(connection)
