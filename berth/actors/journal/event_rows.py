"""Events as they are read from the journal's file."""

import logging
import sqlite3
from contextlib import closing
from typing import Final

import msgspec

from berth.wire import EventMessage

log = logging.getLogger(__name__)

ANSWER_BYTES: Final = 256 * 1024  # of a message, not of memory
"""How much is read of the events for one answer: it must fit into a frame, and others wait."""
_LARGEST: Final = (1 << 63) - 1
_EVENTS: Final = msgspec.json.Decoder(EventMessage)
_AFTER: Final = "SELECT seq, CAST(event AS BLOB) FROM events WHERE seq > ? AND at >= ? ORDER BY seq"


class EventRows:
    """Reads events. A damaged one is left out, and the first one is told of in berthd's log."""

    def __init__(self) -> None:
        self._told = False

    def read(
        self, db: sqlite3.Connection, after_seq: int | None, since: float, limit: int
    ) -> tuple[EventMessage, ...]:
        """Return events after a number and from a wall time on, in the order of their numbers.

        Not more than fit into one answer: the oldest after the number; without one, the latest.
        """
        after = min(after_seq or 0, _LARGEST)
        if since:  # found by the index on time; else all before would be read
            first = db.execute("SELECT min(seq) FROM events WHERE at >= ?", (since,))
            after = max(after, int(first.fetchone()[0] or _LARGEST) - 1)
        order = f"{_AFTER} DESC" if after_seq is None else _AFTER
        found: list[EventMessage] = []
        size = 0
        with closing(db.execute(order, (after, since))) as rows:
            for seq, record in rows:
                event = self._event(seq, record)
                if event is None:
                    continue
                size += len(record)
                if found and size > ANSWER_BYTES:
                    break
                found.append(event)
                if len(found) == limit:
                    break
        return tuple(reversed(found) if after_seq is None else found)

    def _event(self, seq: int, record: bytes) -> EventMessage | None:
        try:
            return _EVENTS.decode(record)
        except ValueError as error:
            if not self._told:
                told = "journal: event %d cannot be read and is left out, as others like it: %s"
                log.warning(told, seq, error)
                self._told = True
            return None
