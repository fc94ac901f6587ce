"""The journal's file: SQLite in WAL mode. Everything that touches the disk is here.

A transaction that is committed survives a `kill -9` of berthd. It is not forced to the platter
(`synchronous=NORMAL`): after a power failure no engine runs either, and the file is still whole.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from berth.actors.journal.core import Batch
from berth.actors.journal.event_rows import EventRows
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
from berth.actors.journal.sqlite_file import SCHEMA, Patience, files, is_damage, put_aside
from berth.actors.journal.usage_files import read_usage, write_usage
from berth.ids import number_of, request_of
from berth.lease import Lease, with_held
from berth.units import Instant, Seconds
from berth.wire import EventMessage

log = logging.getLogger(__name__)

KEEP_FOR: Final = Seconds(30 * 86400)
KEEP_BYTES: Final = 256 * 1024 * 1024  # the size of a file, not of memory
_PRUNED_AT_ONCE: Final = 5000
_LARGEST_COUNT: Final = 1 << 53
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_COUNT)]
_RECORDS: Final = list[tuple[str, bytes]]
_BASELINES: Final = list[tuple[str, _Count]]

_HAND_OFFS: Final = msgspec.json.Decoder(SaveHandOffs)
_ENCODER: Final = msgspec.json.Encoder()


class Store:
    """The journal's file, open. Used by one thread.

    A file that cannot be read (damaged, or of a newer Berth) is set aside under another name, which
    `set_aside` tells; nothing of it is dropped. `fresh`: there was none. A file that is taken away
    while it is open is put back with the next write: what is open is all there is of it.

    A lock of another program is waited for: 5 s at first, and after `hurry` a moment now and then.

    Raises:
        OSError, sqlite3.Error: no journal can be made there at all.
    """

    def __init__(self, path: Path, lost: Callable[[], str] = str) -> None:
        self._lost = lost
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._patience = Patience()
        self._events = EventRows()
        self.set_aside = ""
        try:
            self._open(path)
            self._read_through()
        except (sqlite3.DatabaseError, ValueError, msgspec.MsgspecError) as error:
            self._db.close()
            if isinstance(error, sqlite3.Error) and not is_damage(error):
                raise
            self.set_aside = put_aside(path)
            self._open(path)

    def _read_through(self) -> None:
        """Read what a start needs, so that damage shows now and not later."""
        damage = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(damage)
        self._meta("boot_id", "")
        self._last_number = self._counted("last_number")
        self._kept()

    def _open(self, path: Path) -> None:
        self.fresh = not path.exists()
        self._db = sqlite3.connect(
            path, timeout=self._patience.left, isolation_level=None, check_same_thread=False
        )
        if not self.fresh and not self._has_schema():
            raise sqlite3.DatabaseError("there is no journal in it")
        if self.fresh:  # it would want to write, and be locked out
            self._db.execute("PRAGMA auto_vacuum=INCREMENTAL")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(SCHEMA)
        self._last_number = 0
        self._opened = files(path)
        self._is_open = True

    def _has_schema(self) -> bool:
        found = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
        return found is not None

    def hurry(self) -> None:
        """Wait for no lock for long any more: others wait for the thread that waits."""
        self._patience.hurry()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        """Do all of it or nothing. Another program's lock is waited for at its beginning alone."""
        try:
            with self._patience.spent(self._db):
                self._db.execute(f"BEGIN {kind}")
                self._has_schema()  # reading begins with the first read
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    # --- a file that is taken away ------------------------------------------------------------

    def _keep_in_place(self) -> None:
        """See to it that what is written now will be found by the next berthd.

        Raises:
            sqlite3.Error: it would not be.
        """
        if lost := self._lost():
            raise sqlite3.OperationalError(lost)
        found = files(self._path)
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
            put_aside(self._path)
            beside.rename(self._path)
        self._open(self._path)
        self._last_number = self._counted("last_number")

    # --- writing ----------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Write a batch: all of it, or (with the error raised) nothing.

        Raises:
            sqlite3.Error: the disk is full, the file is damaged, or the like.
        """
        self._keep_in_place()
        now = time.time()
        number = max((_number(event) for event in batch.events), default=0)
        with self._transaction("IMMEDIATE"):
            clocks = clocks_now()
            for entry in batch.latest.values():
                self._apply(entry, clocks)
            self._db.executemany(
                "INSERT OR REPLACE INTO events VALUES (?, ?, ?)",
                [(event.seq, now, _ENCODER.encode(event)) for event in batch.events],
            )
            if number > self._last_number:
                self._set_meta("last_number", str(number))
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
        """Drop events that are too old, and the oldest while the file is too large.

        Raises:
            sqlite3.Error: none was dropped.
        """
        with self._transaction("IMMEDIATE"):
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
                    break
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
            sqlite3.Error: the file cannot be read; at the first start of a boot, or not written.
        """
        with self._transaction("DEFERRED"):
            if self._meta("boot_id", "") == boot_id:
                return self._kept()
        with self._transaction("IMMEDIATE"):
            self._begin_boot(boot_id)
            return self._kept()

    def _kept(self) -> Kept:
        clocks = clocks_now()
        leases: dict[str, tuple[Lease, ...]] = {}
        for card_key, record in self._rows("card_key, CAST(record AS BLOB) FROM leases", _RECORDS):
            leases[card_key] = (*leases.get(card_key, ()), decode_lease(record, clocks))
        holds = [
            decode_hold(record, clocks)
            for _, record in self._rows("request, CAST(record AS BLOB) FROM holds", _RECORDS)
        ]
        taken = self._rows("card_key, CAST(record AS BLOB) FROM hand_offs", _RECORDS)
        last = self._db.execute("SELECT max(seq) FROM events").fetchone()[0]
        return Kept(
            leases=leases,
            hand_offs={card_key: _HAND_OFFS.decode(record) for card_key, record in taken},
            baselines=dict(self._rows("card_key, mib FROM baselines", _BASELINES)),
            usage=read_usage(self._path.parent),
            holds=tuple(sorted(holds, key=lambda hold: number_of(hold.request))),
            last_seq=max(_a_count(last or 0), self._counted("last_seq")),
            last_number=self._last_number,
            suspect=f"the journal could not be read and was set aside as {self.set_aside}"
            if self.set_aside
            else "",
        )

    def _rows(self, what: str, kind: object) -> Any:  # noqa: ANN401 -- of that kind
        """Return rows of a table as they should be: SQLite keeps any value in any column.

        Raises:
            ValueError: there is something else in it.
        """
        return msgspec.convert(self._db.execute(f"SELECT {what}").fetchall(), kind)

    def _counted(self, name: str) -> int:
        """Return a number that was given last; see `_a_count`."""
        text = self._meta(name, "0")
        if not (text.isascii() and text.isdecimal()):
            raise ValueError(f"{name} is no number: {text[:40]!r}")
        return _a_count(int(text))

    def _begin_boot(self, boot_id: str) -> None:
        """Forget what ended with the last boot: who held a card, and what a driver took there."""
        clocks = clocks_now()
        self._db.execute("DELETE FROM baselines")
        for card_key, name, record in self._db.execute("SELECT * FROM leases").fetchall():
            lease = decode_lease(record, clocks, same_boot=False)
            if lease.held.holder is None:
                lease = _of_this_boot(lease, clocks)
                self._apply(SaveLease(card_key=card_key, lease=lease), clocks)
            else:
                self._apply(DropLease(card_key=card_key, lease=name), clocks)
        for (record,) in self._db.execute("SELECT record FROM holds").fetchall():
            self._apply(decode_hold(record, clocks, same_boot=False), clocks)
        self._set_meta("boot_id", boot_id)

    def events(
        self, after_seq: int | None, within: Seconds | None, limit: int
    ) -> tuple[EventMessage, ...]:
        """Return events after a number and within the last seconds, in the order of their numbers.

        Not more than fit into one answer: the oldest after the number; without one, the latest.
        """
        since = 0.0 if within is None else time.time() - within
        with self._transaction("DEFERRED"):
            return self._events.read(self._db, after_seq, since, limit)

    def _meta(self, name: str, default: str) -> str:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return default if row is None else str(row[0])

    def _set_meta(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def _a_count(number: int) -> int:
    """Return a number of the one sequence or of requests, when it can have been given.

    Raises:
        ValueError: it never was: no sequence comes that far, and what follows it had no room.
    """
    if not 0 <= number <= _LARGEST_COUNT:
        raise ValueError(f"{number} was never given")
    return number


def _of_this_boot(hold: Lease, clocks: Clocks) -> Lease:
    """Return a hold of before a reboot; the instant of its grant meant nothing any more."""
    return with_held(hold, replace(hold.held, granted=Instant(clocks.monotonic)))


def clocks_now() -> Clocks:
    """Return this moment on all clocks."""
    return Clocks(
        monotonic=time.monotonic(), boot=time.clock_gettime(time.CLOCK_BOOTTIME), wall=time.time()
    )


def _number(event: EventMessage) -> int:
    """Return the number of the request or lease that an event is about."""
    of = event.request or event.lease
    return int(of[1:]) if of is not None and of[1:].isdecimal() else 0
