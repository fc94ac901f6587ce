"""A client that speaks the protocol by hand, well or badly."""

import itertools
import json
from pathlib import Path
from typing import Any, Self

import zmq

WITHIN_MS = 10_000


class Raw:
    """One DEALER connection. Use it as a context manager."""

    def __init__(self, path: Path, kind: int = zmq.DEALER) -> None:
        self._context = zmq.Context()
        self.socket = self._context.socket(kind)
        self.socket.set(zmq.LINGER, 0)
        self.socket.connect(f"ipc://{path}")
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close(linger=0)
        self._context.term()

    def send(self, op: str, **fields: Any) -> str:
        """Send an operation; return its id."""
        message_id = str(next(self._numbers))
        self.socket.send(json.dumps({"v": 1, "id": message_id, "op": op, **fields}).encode())
        return message_id

    def hear(self) -> dict[str, Any]:
        """Return the next message."""
        assert self.socket.poll(WITHIN_MS), "berthd says nothing"
        heard: dict[str, Any] = json.loads(self.socket.recv())
        return heard

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send an operation and return its last answer."""
        message_id = self.send(op, **fields)
        while True:
            heard = self.hear()
            if heard.get("id") == message_id and heard["last"]:
                return heard

    def order(self, name: str) -> dict[str, Any]:
        """Wait for an order of that name."""
        while True:
            heard = self.hear()
            if heard.get("order") == name:
                return heard

    def lease(self, name: str, mib: int, **terms: Any) -> str:
        """Ask for a lease and start it; return its id."""
        granted = self.call("lease.request", name=name, needs_mib=mib, **terms)
        assert granted["ok"], granted
        lease: str = granted["data"]["lease"]
        assert self.call("lease.started", lease=lease)["ok"]
        return lease
