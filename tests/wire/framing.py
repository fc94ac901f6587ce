"""Messages as a client sends them, and what comes of them."""

import os
from typing import Any

import msgspec
import pytest

from berth.actors.node.codec import BadRequest, decode
from berth.ids import ProcessId
from berth.probes.procfs import identify

PID = os.getpid()
ME = identify(PID) or ProcessId(PID, 0)


def frame(op: object = "hello", **fields: Any) -> bytes:
    """Return a message of version 1 with the id 7, changed as told."""
    return msgspec.json.encode({"v": 1, "id": "7", "op": op} | fields)


def refused(body: bytes, peer: ProcessId = ME) -> BadRequest:
    """Return how a message is refused that must be."""
    with pytest.raises(BadRequest) as raised:
        decode(body, peer)
    return raised.value
