"""The journal's file: SQLite in WAL mode. Everything that touches the disk is here.

A transaction that is committed survives a `kill -9` of berthd. It is not forced to the platter
(`synchronous=NORMAL`): after a power failure no engine runs either, and the file is still whole.
"""

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.actors.journal.core import Batch
from berth.actors.journal.messages import (
    DropHold,
    DropLease,
    Kept,
    LastingEntry,
    SaveBaseline,
    SaveHandOffs,
    SaveHold,
    SaveLease,
    SaveUsage,
)
from berth.actors.journal.records import (
    Clocks,
    decode_hold,
    decode_lease,
    encode_hold,
    encode_lease,
)
from berth.actors.journal.usage_files import read_usage, write_usage
from berth.ids import number_of, request_of
from berth.lease import Lease, with_held
from berth.units import Instant, MiB, Seconds
from berth.wire import EventMessage

log = logging.getLogger(__name__)

KEEP_FOR: Final = Seconds(30 * 86400)
KEEP_BYTES: Final = 256 * 1024 * 1024  # the size of a file, not of memory
ANSWER_BYTES: Final = 256 * 1024  # of a message, not of memory
"""How much is read of the events for one answer: it must fit into a frame, and others wait."""
_PRUNED_AT_ONCE: Final = 5000
_LARGEST: Final = (1 << 63) - 1
_DAMAGE: Final = frozenset({"SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_IOERR_SHORT_READ"})
"""What SQLite calls a file that is none of its own, of another schema, or too short."""

_SCHEMA: Final = """
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

_EVENTS: Final = msgspec.json.Decoder(EventMessage)
_HAND_OFFS: Final = msgspec.json.Decoder(SaveHandOffs)
_ENCODER: Final = msgspec.json.Encoder()


class Store:
    """The journal's file, open. Used by one thread.

    A file that cannot be read (damaged, or of a newer Berth) is set aside under another name, which
    `set_aside` tells; nothing of it is dropped. `fresh`: there was none. A file that is taken away
    while it is open is put back with the next write: what is open is all there is of it.

    Raises:
        OSError, sqlite3.Error: no journal can be made there at all.
    """

    def __init__(self, path: Path, lost: Callable[[], str] = str) -> None:
        self._lost = lost
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self.set_aside = ""
        try:
            self._open(path)
            self._read_through()
        except (sqlite3.DatabaseError, ValueError, msgspec.MsgspecError) as error:
            if isinstance(error, sqlite3.Error) and not _is_damage(error):
                raise
            self._db.close()
            self.set_aside = _put_aside(path)
            self._open(path)

    def _read_through(self) -> None:
        """Read what a start needs, so that damage shows now and not later."""
        damage = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(damage)
        for (record,) in self._db.execute("SELECT record FROM leases"):
            decode_lease(record, Clocks())
        for (record,) in self._db.execute("SELECT record FROM hand_offs"):
            _HAND_OFFS.decode(record)
        for (record,) in self._db.execute("SELECT record FROM holds"):
            decode_hold(record, Clocks())

    def _open(self, path: Path) -> None:
        self.fresh = not path.exists()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if not self.fresh and not self._has_schema():
            raise sqlite3.DatabaseError("there is no journal in it")
        self._db.execute("PRAGMA auto_vacuum=INCREMENTAL")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)
        self._last_number = int(self._meta("last_number", "0"))
        self._opened = _files(path)
        self._is_open = True

    def _has_schema(self) -> bool:
        found = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
        return found is not None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # --- a file that is taken away ------------------------------------------------------------

    def _keep_in_place(self) -> None:
        """See to it that what is written now will be found by the next berthd.

        Raises:
            sqlite3.Error: it would not be.
        """
        if lost := self._lost():
            raise sqlite3.OperationalError(lost)
        found = _files(self._path)
        opened, self._opened = self._opened, found
        taken_away = any(was not in {None, now} for was, now in zip(opened, found, strict=True))
        if self._is_open and not taken_away:
            return
        self._opened = opened
        try:
            self._put_back()
        except OSError as error:
            raise sqlite3.OperationalError(f"{self._path} is gone: {error}") from error
        log.warning("%s was taken away, and is put back", self._path)

    def _put_back(self) -> None:
        """Write what is open to a file of the name that it had. What took its place is set aside.

        A file is closed before the next of its name is opened: SQLite removes the log by its name.
        """
        if self._is_open:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = self._path.with_name(f"{self._path.name}.new")
            beside.unlink(missing_ok=True)
            self._db.execute("VACUUM INTO ?", (str(beside),))
            self._is_open = False
            self._db.close()
            _put_aside(self._path)
            beside.rename(self._path)
        self._open(self._path)

    # --- writing ----------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Write a batch: all of it, or (with the error raised) nothing.

        Raises:
            sqlite3.Error: the disk is full, the file is damaged, or the like.
        """
        self._keep_in_place()
        now = time.time()
        number = max((_number(event) for event in batch.events), default=0)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            clocks = clocks_now()
            for entry in batch.latest.values():
                self._apply(entry, clocks)
            self._db.executemany(
                "INSERT OR REPLACE INTO events VALUES (?, ?, ?)",
                [(event.seq, now, _ENCODER.encode(event)) for event in batch.events],
            )
            if number > self._last_number:
                self._set_meta("last_number", str(number))
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._last_number = max(self._last_number, number)

    def _apply(self, entry: LastingEntry, clocks: Clocks) -> None:
        match entry:
            case SaveLease():
                self._db.execute(
                    "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)",
                    (entry.card_key, entry.lease.id, encode_lease(entry.lease, clocks)),
                )
                if entry.lease.held.holder is None:  # a hold that is held waits no more
                    self._apply(DropHold(request=request_of(entry.lease.id)), clocks)
            case DropLease():
                self._db.execute(
                    "DELETE FROM leases WHERE card_key = ? AND lease = ?",
                    (entry.card_key, entry.lease),
                )
            case SaveBaseline():
                self._db.execute(
                    "INSERT OR REPLACE INTO baselines VALUES (?, ?)",
                    (entry.card_key, entry.baseline),
                )
            case SaveHandOffs():
                self._db.execute(
                    "INSERT OR REPLACE INTO hand_offs VALUES (?, ?)",
                    (entry.card_key, _ENCODER.encode(entry)),
                )
            case SaveUsage():
                write_usage(self._path.parent, entry)
            case SaveHold():
                self._db.execute(
                    "INSERT OR REPLACE INTO holds VALUES (?, ?)",
                    (entry.request, encode_hold(entry)),
                )
            case DropHold():
                self._db.execute("DELETE FROM holds WHERE request = ?", (entry.request,))

    def prune(self, *, keep_for: Seconds = KEEP_FOR, keep_bytes: int = KEEP_BYTES) -> None:
        """Drop events that are too old, and the oldest while the file is too large."""
        last = self._db.execute("SELECT max(seq) FROM events").fetchone()[0]
        if last is not None:
            self._set_meta("last_seq", str(last))
        self._db.execute("DELETE FROM events WHERE at < ?", (time.time() - keep_for,))
        while self._size() > keep_bytes:
            dropped = self._db.execute(
                "DELETE FROM events WHERE seq IN (SELECT seq FROM events ORDER BY seq LIMIT ?)",
                (_PRUNED_AT_ONCE,),
            )
            if dropped.rowcount <= 0:
                return
            self._db.execute("PRAGMA incremental_vacuum")
        self._db.execute("PRAGMA incremental_vacuum")

    def _size(self) -> int:
        pages, free, size = (
            int(self._db.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    # --- reading ----------------------------------------------------------------------------

    def kept(self, boot_id: str) -> Kept:
        """Return what was kept. After a reboot no process lives on: only holds do.

        Raises:
            ValueError: a record is damaged, or a newer Berth's.
        """
        same_boot = self._meta("boot_id", "") == boot_id
        if not same_boot:
            self._db.execute("DELETE FROM baselines")
            self._set_meta("boot_id", boot_id)
        leases: dict[str, tuple[Lease, ...]] = {}
        clocks = clocks_now()
        for card_key, name, record in self._db.execute("SELECT * FROM leases").fetchall():
            lease = decode_lease(record, clocks, same_boot=same_boot)
            if same_boot:
                leases[card_key] = (*leases.get(card_key, ()), lease)
            elif lease.held.holder is None:
                lease = _of_this_boot(lease, clocks)
                self._apply(SaveLease(card_key=card_key, lease=lease), clocks)
                leases[card_key] = (*leases.get(card_key, ()), lease)
            else:
                self._apply(DropLease(card_key=card_key, lease=name), clocks)
        rows = self._db.execute("SELECT card_key, mib FROM baselines").fetchall()
        taken = self._db.execute("SELECT * FROM hand_offs").fetchall()
        last = self._db.execute("SELECT max(seq) FROM events").fetchone()[0]
        return Kept(
            leases=leases,
            hand_offs={card_key: _HAND_OFFS.decode(record) for card_key, record in taken},
            baselines={card_key: MiB(mib) for card_key, mib in rows},
            usage=read_usage(self._path.parent),
            holds=self._holds(clocks, same_boot=same_boot),
            last_seq=max(int(last or 0), int(self._meta("last_seq", "0"))),
            last_number=self._last_number,
            suspect=f"the journal could not be read and was set aside as {self.set_aside}"
            if self.set_aside
            else "",
        )

    def _holds(self, clocks: Clocks, *, same_boot: bool) -> tuple[SaveHold, ...]:
        rows = self._db.execute("SELECT record FROM holds").fetchall()
        holds = [decode_hold(record, clocks, same_boot=same_boot) for (record,) in rows]
        if not same_boot:
            for hold in holds:
                self._apply(hold, clocks)
        return tuple(sorted(holds, key=lambda hold: number_of(hold.request)))

    def events(
        self, after_seq: int | None, within: Seconds | None, limit: int
    ) -> tuple[EventMessage, ...]:
        """Return events after a number and within the last seconds, in the order of their numbers.

        Not more than fit into one answer: the oldest after the number; without one, the latest.
        """
        since = 0.0 if within is None else time.time() - within
        after = min(after_seq or 0, _LARGEST)
        if within is not None:  # found by the index on time; else all before would be read
            first = self._db.execute("SELECT min(seq) FROM events WHERE at >= ?", (since,))
            after = max(after, int(first.fetchone()[0] or _LARGEST) - 1)
        order = "DESC" if after_seq is None else "ASC"
        rows = self._db.execute(
            f"SELECT event FROM events WHERE seq > ? AND at >= ? ORDER BY seq {order} LIMIT ?",  # noqa: S608
            (after, since, limit),
        )
        found: list[EventMessage] = []
        size = 0
        for (event,) in rows:
            size += len(event)
            if found and size > ANSWER_BYTES:
                break
            found.append(_EVENTS.decode(event))
        return tuple(reversed(found) if after_seq is None else found)

    def _meta(self, name: str, default: str) -> str:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return default if row is None else str(row[0])

    def _set_meta(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def _of_this_boot(hold: Lease, clocks: Clocks) -> Lease:
    """Return a hold of before a reboot; the instant of its grant meant nothing any more."""
    return with_held(hold, replace(hold.held, granted=Instant(clocks.monotonic)))


def clocks_now() -> Clocks:
    """Return this moment on all clocks."""
    return Clocks(
        monotonic=time.monotonic(), boot=time.clock_gettime(time.CLOCK_BOOTTIME), wall=time.time()
    )


def _files(path: Path) -> tuple[tuple[int, int] | None, ...]:
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


def _is_damage(error: sqlite3.Error) -> bool:
    """Tell whether the file is at fault, and not the disk or the right to write there."""
    name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
    return name in _DAMAGE or name.startswith("SQLITE_CORRUPT")


def _put_aside(path: Path) -> str:
    """Give a journal that cannot be read another name, its write-ahead log with it."""
    stamp = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return str(aside)


def _number(event: EventMessage) -> int:
    """Return the number of the request or lease that an event is about."""
    of = event.request or event.lease
    return int(of[1:]) if of is not None and of[1:].isdecimal() else 0
