"""The demo in plain lines, where there is no terminal; and in none, for `--format json`."""

import select
import sys
import threading
from collections import deque
from typing import Any

from berth.demo.hand_offs import HandOff
from berth.demo.show import Show

_TOLD = frozenset({"lease.draining", "lease.refused", "lease.stuck", "lease.contested"})


def clock(seconds: float) -> str:
    """Return a time of the play: 01:05."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


class Nobody:
    """Watches nothing, and notices when nobody reads the end either."""

    def tell(self, at: float, text: str) -> None:
        """Pass over it."""

    def event(self, at: float, event: dict[str, Any], hand_off: HandOff | None) -> None:
        """Pass over it."""

    def look(self, show: Show) -> None:  # noqa: ARG002 -- an audience is shown it
        """See whether anybody is left to read."""
        notice_closed_pipe()

    def close(self) -> None:
        """Leave."""


class Lines(Nobody):
    """A line for everything that happens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()

    def tell(self, at: float, text: str) -> None:
        """Write a line, soon."""
        with self._lock:
            self._waiting.append(f"{clock(at)} {text}")

    def event(self, at: float, event: dict[str, Any], hand_off: HandOff | None) -> None:
        """Write what changes hands, and what goes wrong."""
        if hand_off is not None:
            self.tell(at, f"{hand_off.to} has {hand_off.card}, {hand_off.seconds:.1f}s later")
        elif event["kind"] in _TOLD:
            word = event["kind"].removeprefix("lease.")
            self.tell(at, f"{event['name']} on {event['card']} {word}: {event['why']}")

    def look(self, show: Show) -> None:
        """Write what has come together since."""
        super().look(show)
        self.close()

    def close(self) -> None:
        """Write what is still to be written."""
        with self._lock:
            lines = list(self._waiting)
            self._waiting.clear()
        for line in lines:
            print(line, flush=True)  # noqa: T201 -- it is what the demo shows


def notice_closed_pipe() -> None:
    """Find out that nobody reads any more before there is something to write.

    Raises:
        BrokenPipeError: so it is.
    """
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if any(found & select.POLLERR for _, found in poll.poll(0)):
        raise BrokenPipeError
