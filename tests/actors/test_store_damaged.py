"""Values in the journal that berthd never wrote: set aside at the start, or left out (S6)."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from berth.actors.journal.core import Batch
from berth.actors.journal.messages import SaveBaseline, SaveHandOffs, SaveHold, SaveLease
from berth.actors.journal.store import Store
from berth.units import MiB, Seconds
from berth.wire import EventMessage
from tests.actors.kept import HOLD, RUNNING, WAITING

BOOT = "boot-1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a journal with something of everything in it."""
    path = tmp_path / "state" / "journal.db"
    entries: tuple[SaveLease | SaveBaseline | SaveHandOffs | SaveHold, ...] = (
        SaveLease(card_key="GPU-0", lease=RUNNING),
        SaveLease(card_key="GPU-0", lease=HOLD),
        SaveBaseline(card_key="GPU-0", baseline=MiB(400)),
        SaveHandOffs(card_key="GPU-0", count=1, recent=(Seconds(2.0),)),
        WAITING,
    )
    latest = {("", str(place)): entry for place, entry in enumerate(entries)}
    with closing(Store(path)) as store:
        store.kept(BOOT)
        store.write(Batch(latest=latest, events=tuple(map(event, range(1, 7)))))
        store.prune()
    return path


def event(seq: int) -> EventMessage:
    at = "2026-11-30T12:00:00.000Z"
    return EventMessage(seq=seq, at=at, kind="lease.queued", request=f"r{seq}")


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert db.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = 'garbage' WHERE name = 'last_seq'",
        "UPDATE meta SET value = 'garbage' WHERE name = 'last_number'",
        "UPDATE meta SET value = '-7' WHERE name = 'last_seq'",
        "UPDATE meta SET value = '99999999999999999999' WHERE name = 'last_seq'",
        "UPDATE meta SET value = x'ff' WHERE name = 'last_number'",
        "UPDATE meta SET value = CAST(x'ff' AS TEXT) WHERE name = 'boot_id'",
        "UPDATE events SET seq = 9223372036854775807 WHERE seq = 6",
        "UPDATE baselines SET mib = 'garbage'",
        "UPDATE baselines SET mib = -1",
        "UPDATE baselines SET card_key = x'ff'",
        "UPDATE leases SET record = 5",
        "UPDATE leases SET card_key = x'ff' WHERE lease = 'L7'",
        "UPDATE leases SET record = replace(CAST(record AS TEXT), 'L7', 'Lx') WHERE lease = 'L7'",
        "UPDATE leases SET record = replace(CAST(record AS TEXT), '[70,', '[4294967296,')",
        "UPDATE hand_offs SET record = 5",
        "UPDATE hand_offs SET card_key = x'ff'",
        "UPDATE holds SET record = 5",
        "UPDATE holds SET record = replace(CAST(record AS TEXT), '\"r8\"', '\"rx\"')",
    ],
)
def test_journal_with_a_value_that_no_start_can_use_is_set_aside(
    path: Path, statement: str
) -> None:
    """Else berthd would end over it, at this start and at every other one."""
    change(path, statement)
    with closing(Store(path)) as store:
        assert store.set_aside
        kept = store.kept(BOOT)
    assert store.set_aside in kept.suspect
    assert (kept.leases, kept.last_seq) == ({}, 0)


def test_journal_as_berthd_writes_it_is_not_set_aside(path: Path) -> None:
    """The checks above must not cost anybody a good one."""
    with closing(Store(path)) as store:
        kept = store.kept(BOOT)
    assert (store.set_aside, kept.last_seq, kept.last_number) == ("", 6, 6)
    assert [lease.id for lease in kept.leases["GPU-0"]] == ["L7", "L8"]


@pytest.mark.parametrize(
    "damage", ["x'7b5d'", "'no JSON'", "5", "CAST(x'ff' AS TEXT)", "'{\"seq\":1}'"]
)
def test_damaged_events_are_left_out_and_told_of_once(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are shown, and pages go on over a whole one of damaged ones."""
    change(path, f"UPDATE events SET event = {damage} WHERE seq IN (2, 3, 4)")
    with closing(Store(path)) as store, caplog.at_level(logging.WARNING):
        assert store.set_aside == ""
        assert [one.seq for one in store.events(0, None, 100)] == [1, 5, 6]
        assert [one.seq for one in store.events(1, None, 2)] == [5, 6]
        assert [one.seq for one in store.events(None, None, 3)] == [1, 5, 6]
    assert [record.message for record in caplog.records if "event 2" in record.message]
    assert len(caplog.records) == 1
