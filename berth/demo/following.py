"""Follows what happens on the demo's node: every event in order, and how the node stands."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq

from berth.client import Client
from berth.errors import BerthError
from berth.paths import events_path

_LOOK_MS: Final = 50
_ASK_EVERY_MS: Final = 1000
"""After so long without news the past is asked for: a published event can be lost."""


class Follower(threading.Thread):
    """Brings every event of a node, without a gap, until it is stopped."""

    def __init__(self, path: Path, hear: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(name="follower", daemon=True)
        self._path = path
        self._hear = hear
        self._ended = threading.Event()
        self._last = 0

    def stop(self) -> None:
        """End following."""
        self._ended.set()
        if self.is_alive():
            self.join(timeout=1.0)

    def run(self) -> None:
        """Listen, and fill what is missing from the past."""
        context = zmq.Context()
        listener = context.socket(zmq.SUB)
        listener.set(zmq.SUBSCRIBE, b"")
        listener.connect(f"ipc://{events_path(self._path)}")
        quiet_ms = _ASK_EVERY_MS
        try:
            while not self._ended.is_set():
                if quiet_ms >= _ASK_EVERY_MS:
                    self._fill()
                    quiet_ms = 0
                if not listener.poll(_LOOK_MS):
                    quiet_ms += _LOOK_MS
                    continue
                _, body = listener.recv_multipart()
                self._take(msgspec.json.decode(body))
        finally:
            listener.close(linger=0)
            context.term()

    def _take(self, event: dict[str, Any]) -> None:
        if event["seq"] > self._last + 1:
            self._fill()
        if event["seq"] > self._last:
            self._last = event["seq"]
            self._hear(event)

    def _fill(self) -> None:
        try:
            with Client(self._path, answer_within=2.0) as client:
                missed = client.call("events", {"since": self._last})["events"]
        except BerthError:  # berthd is going already
            return
        for event in missed:
            if event["seq"] > self._last:
                self._last = event["seq"]
                self._hear(event)
