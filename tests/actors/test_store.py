"""The journal's file: what is in it survives, what fails leaves nothing (S6)."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from berth.actors.card.recovery import restored
from berth.actors.card.state import Settings
from berth.actors.journal import store as store_module
from berth.actors.journal.core import Batch
from berth.actors.journal.event_rows import ANSWER_BYTES
from berth.actors.journal.messages import (
    DropHold,
    DropLease,
    Kept,
    LastingEntry,
    SaveBaseline,
    SaveHandOffs,
    SaveLease,
)
from berth.actors.journal.records import FORMAT, Clocks, decode_lease, encode_lease
from berth.actors.journal.store import Store
from berth.ids import CardName, LeaseId, RequestId
from berth.lease import (
    Detached,
    Lease,
    Order,
    with_held,
)
from berth.readings import CardIdentity
from berth.units import Instant, MiB, Seconds
from berth.wire import EventMessage
from tests.actors.kept import HELD, HOLD, RUNNING, STATES, WAITING, named

BOOT = "boot-1"
NOW = Instant(5000.0)
GPU0 = CardIdentity(name=CardName("gpu0"), index=0, uuid="GPU-0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    opened.kept(BOOT)  # as the daemon does before anything is written
    yield opened
    opened.close()


def reopened(store: Store, path: Path) -> Store:
    store.close()
    return Store(path)


def keep(store: Store, *leases: Lease, card_key: str = "GPU-0") -> None:
    entries: list[LastingEntry] = [SaveLease(card_key=card_key, lease=lease) for lease in leases]
    store.write(batch(*entries))


def batch(*entries: LastingEntry, events: tuple[EventMessage, ...] = ()) -> Batch:
    return Batch(
        latest={(type(e).__name__, str(n)): e for n, e in enumerate(entries)}, events=events
    )


def event(seq: int, kind: str = "lease.queued", request: str | None = None) -> EventMessage:
    at = "2026-11-30T12:00:00.000Z"
    return EventMessage(seq=seq, at=at, kind=kind, card="gpu0", request=request, facts={"mib": 1})


def tell(store: Store, *seqs: int) -> None:
    store.write(Batch(events=tuple(event(seq) for seq in seqs)))


def seqs(
    store: Store, after_seq: int | None = None, within: float | None = None, limit: int = 1000
) -> list[int]:
    span = None if within is None else Seconds(within)
    return [found.seq for found in store.events(after_seq, span, limit)]


def kept_in(store: Store) -> tuple[Lease, ...]:
    return store.kept(BOOT).leases.get("GPU-0", ())


def after_restart(lease: Lease) -> tuple[Lease, ...]:
    return restored(GPU0, Settings(), Kept(leases={GPU0.key: (lease,)}), NOW).leases


# --- leases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lease",
    [
        *STATES,
        HOLD,
        pytest.param(Detached(held=HELD, order=Order.STOP)),
    ],
    ids=named,
)
def test_lease_of_every_state_starts_again_as_if_nothing_was_written(
    lease: Lease, store: Store, path: Path
) -> None:
    """S6: what recovery makes of it is the same, whether it went through the file or not."""
    keep(store, lease)
    with_file = reopened(store, path)
    (kept,) = kept_in(with_file)
    assert after_restart(kept) == after_restart(lease)
    with_file.close()


def test_record_of_a_newer_format_is_no_lease_here(store: Store) -> None:
    """A format that this Berth does not know is an error, never half a lease."""
    raw = msgspec.json.decode(encode_lease(HOLD, Clocks()))
    newer = msgspec.json.encode({**raw, "format": FORMAT + 1})
    with pytest.raises(ValueError, match="L8 was kept by a newer Berth"):
        decode_lease(newer, Clocks())
    store._db.execute("INSERT INTO leases VALUES ('GPU-0', 'L8', ?)", (newer,))
    with pytest.raises(ValueError, match="newer Berth"):
        store.kept(BOOT)


def test_lease_is_overwritten_by_its_next_state_and_dropped_at_its_end(store: Store) -> None:
    """S6: the file holds one record for each lease that is on the books, and no other."""
    keep(store, STATES[0], HOLD)
    keep(store, RUNNING)
    assert [lease.id for lease in kept_in(store)] == ["L7", "L8"]
    store.write(batch(DropLease(card_key="GPU-0", lease=LeaseId("L7"))))
    assert kept_in(store) == (HOLD,)


def test_leases_are_kept_for_each_card(store: Store) -> None:
    """M1: leases go by UUID; M2: a lease on several cards stands on each."""
    keep(store, HOLD)
    keep(store, HOLD, card_key="GPU-1")
    store.write(batch(DropLease(card_key="GPU-0", lease=LeaseId("L8"))))
    assert store.kept(BOOT).leases == {"GPU-1": (HOLD,)}


# --- boots ----------------------------------------------------------------------------------------


def test_what_was_kept_in_this_boot_is_there_after_a_restart(store: Store, path: Path) -> None:
    """S6: a grant a client has seen survives a kill -9 of berthd."""
    store.write(batch(SaveBaseline(card_key="GPU-0", baseline=MiB(400))))
    keep(store, RUNNING, HOLD)
    again = reopened(store, path)
    kept = again.kept(BOOT)
    assert {lease.id for lease in kept.leases["GPU-0"]} == {"L7", "L8"}
    assert kept.baselines == {"GPU-0": 400}
    again.close()


def test_hold_ends_at_the_same_time_after_a_reboot_and_a_restart(store: Store, path: Path) -> None:
    """S8: its end is kept anew on the new boot's clock, for berthd may be restarted again."""
    until = Instant(time.monotonic() + 600.0)
    keep(store, with_held(HOLD, replace(HOLD.held, until=until)))
    (hold,) = store.kept("boot-2").leases["GPU-0"]
    assert hold.held.until == pytest.approx(until, abs=1.0)
    again = reopened(store, path)
    (hold,) = again.kept("boot-2").leases["GPU-0"]
    assert hold.held.until == pytest.approx(until, abs=1.0)
    again.close()


def test_hand_offs_are_kept_beyond_a_reboot(store: Store, path: Path) -> None:
    """What a hand-off takes is the card's and its driver's, not of one boot."""
    old = SaveHandOffs(card_key="GPU-0", count=1, recent=(Seconds(2.0),))
    new = SaveHandOffs(card_key="GPU-0", count=2, recent=(Seconds(2.0), Seconds(3.5)))
    store.write(batch(old))
    store.write(batch(new))
    again = reopened(store, path)
    assert again.kept("another boot").hand_offs == {"GPU-0": new}
    again.close()


def test_reboot_leaves_holds_alone_and_forgets_baselines(store: Store, path: Path) -> None:
    """S8, B2: no process outlives a reboot; a driver's baseline is of one boot."""
    store.write(batch(SaveBaseline(card_key="GPU-0", baseline=MiB(400))))
    keep(store, RUNNING, HOLD)
    kept = store.kept("boot-2")
    assert [lease.terms for lease in kept.leases["GPU-0"]] == [HOLD.terms]
    assert kept.baselines == {}
    again = reopened(store, path)
    assert again.kept("boot-2").leases["GPU-0"][0].held == kept.leases["GPU-0"][0].held
    again.close()


def test_hold_that_waits_is_kept_until_it_is_held(store: Store, path: Path) -> None:
    """Q1: `berth hold --no-wait`. Its grant and the end of its waiting are one write."""
    store.write(batch(WAITING, replace(WAITING, request=RequestId("r9"))))
    again = reopened(store, path)
    assert [hold.request for hold in again.kept(BOOT).holds] == ["r8", "r9"]
    assert again.kept(BOOT).holds[0] == WAITING
    keep(again, HOLD)
    assert [hold.request for hold in again.kept(BOOT).holds] == ["r9"]
    again.write(batch(DropHold(request=RequestId("r9"))))
    assert again.kept(BOOT).holds == ()
    again.close()


def test_hold_that_waits_outlives_a_reboot(store: Store) -> None:
    """Its instant of asking meant nothing any more: it has waited since the start."""
    store.write(batch(WAITING))
    (hold,) = store.kept("boot-2").holds
    assert replace(hold, arrived=WAITING.arrived) == WAITING
    assert store.kept("boot-2").holds == (hold,)


# --- events ---------------------------------------------------------------------------------------


def test_events_are_read_back_as_they_were_told(store: Store) -> None:
    """W3: an event keeps its own facts."""
    told = event(1, request="r1")
    store.write(Batch(events=(told,)))
    assert store.events(0, None, 10) == (told,)


@pytest.mark.parametrize(
    ("after_seq", "limit", "expected"),
    [
        (None, 100, [1, 2, 3, 4, 5]),
        (None, 2, [4, 5]),
        (0, 2, [1, 2]),
        (3, 100, [4, 5]),
        (5, 100, []),
        (99, 100, []),
    ],
)
def test_events_after_a_number_come_oldest_first(
    store: Store, after_seq: int | None, limit: int, expected: list[int]
) -> None:
    """S5: a gap in PUB's seq is filled from there on; without a number, the latest ones."""
    tell(store, 1, 2, 3, 4, 5)
    assert seqs(store, after_seq, limit=limit) == expected


def test_more_events_than_fit_into_an_answer_come_page_by_page(store: Store) -> None:
    """An answer too large for a frame would never come, and its reading would keep grants off."""
    store.write(Batch(events=tuple(_wordy(seq) for seq in range(1, 1001))))
    found: list[int] = []
    pages = 0
    while page := store.events(found[-1] if found else 0, None, 10000):
        found += [event.seq for event in page]
        pages += 1
    assert found == list(range(1, 1001))
    assert pages > 2
    latest = [event.seq for event in store.events(None, None, 10000)]
    assert latest == found[-len(latest) :]
    assert 1 < len(latest) < 1000


def test_event_that_is_larger_than_an_answer_should_be_comes_alone(store: Store) -> None:
    """Whoever pages must get past it."""
    store.write(Batch(events=(_wordy(1, 2 * ANSWER_BYTES), _wordy(2))))
    assert [event.seq for event in store.events(0, None, 10)] == [1]
    assert [event.seq for event in store.events(1, None, 10)] == [2]


def _wordy(seq: int, size: int = 1000) -> EventMessage:
    return EventMessage(seq=seq, at="2026-11-30T12:00:00.000Z", kind="lease.queued", why="w" * size)


class Wall:
    """A wall clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000_000.0
        monkeypatch.setattr(
            store_module,
            "time",
            SimpleNamespace(
                time=lambda: self.now,
                monotonic=time.monotonic,
                clock_gettime=time.clock_gettime,
                CLOCK_BOOTTIME=time.CLOCK_BOOTTIME,
            ),
        )


def test_events_of_the_last_seconds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """W3: `berth events` shows the last 24 h unless --since."""
    wall = Wall(monkeypatch)
    tell(store, 1)
    wall.now += 100
    tell(store, 2)
    wall.now += 10
    assert seqs(store, within=110.0) == [1, 2]
    assert seqs(store, within=109.0) == [2]
    assert seqs(store, after_seq=2, within=110.0) == []


def test_events_older_than_their_time_are_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S6: kept 30 days."""
    wall = Wall(monkeypatch)
    tell(store, 1)
    wall.now += 30 * 86400
    tell(store, 2)
    store.prune()
    assert seqs(store) == [1, 2]
    wall.now += 1
    store.prune()
    assert seqs(store) == [2]


def test_oldest_events_are_dropped_while_the_file_is_too_large(store: Store) -> None:
    """S6: … or 256 MiB, the oldest first and no more than need be."""
    tell(store, *range(1, 6001))
    store.prune(keep_bytes=400_000)
    assert seqs(store, limit=10_000) == list(range(5001, 6001))


def test_file_that_stays_too_large_without_events_is_let_be(store: Store) -> None:
    """S6: leases are never dropped for room, and the pruning comes to an end."""
    keep(store, RUNNING)
    tell(store, 1, 2)
    store.prune(keep_bytes=1)
    assert seqs(store) == []
    assert [lease.id for lease in kept_in(store)] == ["L7"]


def test_last_numbers_survive_pruning_and_a_restart(store: Store, path: Path) -> None:
    """S6, Q8: no sequence number and no lease id is ever given twice."""
    store.write(Batch(events=(event(41, request="r12"), event(42, request="r11"))))
    store.prune(keep_bytes=1)
    assert (store.kept(BOOT).last_seq, store.kept(BOOT).last_number) == (42, 12)
    again = reopened(store, path)
    assert (again.kept(BOOT).last_seq, again.kept(BOOT).last_number) == (42, 12)
    tell(again, 43)
    assert again.kept(BOOT).last_seq == 43
    again.close()


def test_number_of_a_lease_counts_like_that_of_a_request(store: Store) -> None:
    """Q8: request r9 becomes lease L9; a lease that attached had no request."""
    at = "2026-11-30T12:00:00.000Z"
    attached = EventMessage(seq=1, at=at, kind="lease.attached", card="gpu0", lease="L30")
    odd = EventMessage(seq=2, at=at, kind="lease.kept", card="gpu0", lease="unknown")
    store.write(Batch(events=(attached, odd, event(3))))
    assert store.kept(BOOT).last_number == 30


def test_new_file_has_given_no_number(store: Store) -> None:
    """S6: the first request of a machine is r1, the first event 1."""
    kept = store.kept(BOOT)
    assert (kept.last_seq, kept.last_number, kept.leases, kept.baselines) == (0, 0, {}, {})


def test_number_that_no_sequence_reaches_finds_nothing(store: Store) -> None:
    """Spec 16: `since` is any integer on the wire."""
    tell(store, 1)
    assert seqs(store, after_seq=1 << 63) == []


# --- a write that fails ---------------------------------------------------------------------------


def test_write_that_fails_in_the_middle_leaves_nothing_of_its_batch(store: Store) -> None:
    """S6: a batch is one transaction: the lease is not there without its event."""
    store._db.execute(
        "CREATE TRIGGER full BEFORE INSERT ON events WHEN new.seq = 2 "
        "BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    )
    keep(store, HOLD)
    with pytest.raises(sqlite3.Error, match="disk is full"):
        store.write(
            batch(
                SaveLease(card_key="GPU-0", lease=RUNNING),
                DropLease(card_key="GPU-0", lease=LeaseId("L8")),
                events=(event(1, request="r77"), event(2)),
            )
        )
    assert kept_in(store) == (HOLD,)
    assert seqs(store) == []
    assert store.kept(BOOT).last_number == 0


def test_store_writes_again_once_what_was_in_its_way_is_gone(store: Store) -> None:
    """S6: the failed transaction is over, so the next one can begin."""
    store._db.execute(
        "CREATE TRIGGER full BEFORE INSERT ON leases BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(sqlite3.Error):
        keep(store, RUNNING)
    store._db.execute("DROP TRIGGER full")
    keep(store, RUNNING)
    assert [lease.id for lease in kept_in(store)] == ["L7"]


def test_file_that_cannot_be_written_is_an_sqlite_error(store: Store) -> None:
    """S6: the one kind of error that the shell takes for a journal that can't be written."""
    store._db.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.Error, match="readonly"):
        tell(store, 1)
    store._db.execute("PRAGMA query_only = OFF")
    assert seqs(store) == []


def test_directory_of_the_journal_is_its_owners_alone(store: Store, path: Path) -> None:
    """S6: the journal holds the keys by which leases are found again."""
    assert path.parent.stat().st_mode & 0o777 == 0o700
