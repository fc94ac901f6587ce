"""The wrapper's line to berthd: one DEALER socket, and word of when it is there and when it is not.

What berthd says becomes an event of the run (`messages.py`). The kernel tells when the connection
comes and goes; a berthd that is there but silent for 15 s counts as gone too, and the line is made
anew.
"""

import itertools
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq

from berth.run.messages import (
    Attached,
    Card,
    Connected,
    Disconnected,
    LeaseGiven,
    LeaseShown,
    Ordered,
    Queued,
    Refused,
    ReleaseHeard,
    RunEvent,
)
from berth.units import Seconds
from berth.wire import MAX_FRAME, PROTOCOL

SILENT_FOR: Final = 15.0
_RECONNECT_MS: Final = 100
_MONITORED: Final = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


class Link:
    """One line to berthd. `fds` are what to wait on; `events` is what has come since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._context = zmq.Context()
        self._numbers = itertools.count(1)
        self._ops: dict[str, str] = {}
        self._lease = ""
        self._open()

    def _open(self) -> None:
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.set(zmq.LINGER, 200)
        self._socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
        self._socket.set(zmq.MAXMSGSIZE, MAX_FRAME)
        # Nothing is kept for a berthd that is away: what matters is said again when it is back.
        self._socket.set(zmq.IMMEDIATE, 1)
        self._monitor = self._socket.get_monitor_socket(_MONITORED)
        self._socket.connect(f"ipc://{self._path}")
        self._up = False
        self._heard = time.monotonic()

    def register(self, poller: zmq.Poller) -> None:
        """Have a poller wait on this line."""
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)

    def send(self, op: str, fields: Mapping[str, Any]) -> None:
        """Send an operation, if berthd is there."""
        message_id = str(next(self._numbers))
        self._ops[message_id] = op
        body = msgspec.json.encode({"v": PROTOCOL, "id": message_id, "op": op, **fields})
        try:
            self._socket.send(body, zmq.NOBLOCK)
        except zmq.Again:
            del self._ops[message_id]

    def ask_shown(self, lease: str) -> None:
        """Ask for the status of one lease."""
        self._lease = lease
        self.send("status", {})

    def events(self, poller: zmq.Poller) -> list[RunEvent]:
        """Return what has happened on the line since, in order."""
        found = [*self._comings_and_goings(), *self._messages()]
        if self._up and time.monotonic() - self._heard > SILENT_FOR:
            self._make_anew(poller)
            found.append(Disconnected())
        return found

    def _make_anew(self, poller: zmq.Poller) -> None:
        poller.unregister(self._socket)
        poller.unregister(self._monitor)
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=0)
        self._ops.clear()
        self._open()
        self.register(poller)

    def _comings_and_goings(self) -> list[RunEvent]:
        found: list[RunEvent] = []
        while self._monitor.poll(0):
            # A monitor's first frame is the event's number (16 bits) and its value (32 bits).
            (event,) = struct.unpack_from("=H", self._monitor.recv_multipart()[0])
            self._up = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            self._heard = time.monotonic()
            found.append(Connected() if self._up else Disconnected())
        return found

    def _messages(self) -> list[RunEvent]:
        found: list[RunEvent] = []
        while True:
            try:
                body = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return found
            self._heard = time.monotonic()
            event = self._translate(msgspec.json.decode(body))
            if event is not None:
                found.append(event)

    def _translate(self, message: dict[str, Any]) -> RunEvent | None:
        if "order" in message:
            return Ordered(
                order=message["order"],
                attempt=message.get("attempt", 0),
                why=message.get("why", ""),
                at_once=message.get("now", False),
            )
        message_id = message.get("id", "")
        op = self._ops.pop(message_id, "") if message.get("last") else self._ops.get(message_id, "")
        if not message.get("ok"):
            return _refused(op, message.get("error") or {})
        data = message.get("data") or {}
        if not message.get("last"):
            return Queued(
                request=data.get("request", ""),
                why=data.get("why", ""),
                position=data.get("position", 0),
                card=data.get("card", ""),
            )
        return self._answer(op, data)

    def _answer(self, op: str, data: dict[str, Any]) -> RunEvent | None:
        match op:
            case "lease.request":
                cards = tuple(
                    Card(name=card["card"], uuid=card["uuid"], vendor=card["vendor"])
                    for card in data.get("cards", ())
                )
                return LeaseGiven(
                    lease=data["lease"],
                    name=data.get("name", ""),
                    cards=cards,
                    start_by=data.get("start_by"),
                )
            case "attach":
                return Attached(lease=data["lease"])
            case "lease.release":
                return ReleaseHeard()
            case "status":
                return _shown(self._lease, data)
            case _:
                return None

    def close(self) -> None:
        """Close the line, once what was sent last is out."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close()
        self._context.term()


def _refused(op: str, error: dict[str, Any]) -> RunEvent | None:
    """Return a refusal that matters: of the request, or of a release that nobody knows of."""
    if op not in {"lease.request", "lease.release"}:
        return None
    return Refused(
        code=error.get("code", "internal"),
        message=error.get("message", "berthd gave no reason"),
        hint=error.get("hint", ""),
        waited_out=error.get("waited_out", False),
    )


def _shown(lease: str, status: dict[str, Any]) -> LeaseShown:
    rows = [row for row in status.get("leases", ()) if row["lease"] == lease]
    ages = {card["card"]: card["reading_age_s"] for card in status.get("cards", ())}
    used = [row["used_mib"] for row in rows]
    known = all(mib is not None for mib in used)
    known_ages = [ages.get(row["card"]) for row in rows]
    oldest = max((1e9 if age is None else age for age in known_ages), default=0.0)
    return LeaseShown(used_mib=sum(used) if known else None, reading_age=Seconds(oldest))
