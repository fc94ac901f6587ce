"""The journal's file as SQLite has it: its tables, its files, its damage, and its locks."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from berth.units import Seconds

WAIT_AT_START: Final = Seconds(5.0)
"""How long a start waits for a lock of another program: nobody is served yet."""
WAIT_FOR_LOCK: Final = Seconds(0.25)
WAIT_AGAIN_AFTER: Final = Seconds(2.0)
"""While berthd serves, it waits that long for a lock, and not again so soon: what waits behind the
journal's thread, the question whether it lives among it, must be heard in time."""
_A_WAIT: Final = 0.05
_DAMAGE: Final = frozenset({"SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_IOERR_SHORT_READ"})
"""What SQLite calls a file that is none of its own, of another schema, or too short."""

SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS leases (
        card_key TEXT NOT NULL, lease TEXT NOT NULL, record BLOB NOT NULL,
        PRIMARY KEY (card_key, lease)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS baselines (
        card_key TEXT PRIMARY KEY, mib INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS hand_offs (
        card_key TEXT PRIMARY KEY, record BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS holds (
        request TEXT PRIMARY KEY, record BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS events (
        seq INTEGER PRIMARY KEY, at REAL NOT NULL, event BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS events_at ON events (at);
"""


class Patience:
    """How long to wait for a lock of another program: a start's while, later a moment at times."""

    def __init__(self) -> None:
        self._starting = True
        self._none_until = 0.0

    def hurry(self) -> None:
        """Others wait from now on."""
        self._starting = False

    @property
    def left(self) -> Seconds:
        """How long may be waited now."""
        if self._starting:
            return WAIT_AT_START
        return Seconds(0.0) if time.monotonic() < self._none_until else WAIT_FOR_LOCK

    @contextmanager
    def spent(self, db: sqlite3.Connection) -> Iterator[None]:
        """Take a lock in here, and nothing else; note whether it was waited for."""
        db.execute(f"PRAGMA busy_timeout = {self.left * 1000:.0f}")
        began = time.monotonic()
        try:
            yield
        finally:
            ended = time.monotonic()
            if ended - began >= _A_WAIT:
                self._none_until = ended + WAIT_AGAIN_AFTER


def files(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Return which files have the journal's name and its log's, None for one that is not there."""
    found: list[tuple[int, int] | None] = []
    for suffix in ("", "-wal"):
        try:
            stat = path.with_name(path.name + suffix).stat()
        except (FileNotFoundError, NotADirectoryError):
            found.append(None)
        else:
            found.append((stat.st_dev, stat.st_ino))
    return tuple(found)


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether the file is at fault, and not the disk, a lock or the right to write there."""
    if isinstance(error, sqlite3.ProgrammingError):  # it is not open
        return False
    name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
    return name in _DAMAGE or name.startswith("SQLITE_CORRUPT")


def is_locked(error: Exception) -> bool:
    """Tell whether another program has the file, and it need only let go of it."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def put_aside(path: Path) -> str:
    """Give a journal that cannot be read another name, its write-ahead log with it."""
    stamp = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return str(aside)
