"""A journal that another program has locked: a sqlite3 shell, a backup (S6)."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from berth.actors.journal import sqlite_file
from berth.actors.journal.core import Batch
from berth.actors.journal.messages import SaveBaseline, SaveLease
from berth.actors.journal.store import Store
from berth.daemon import JOURNAL_NAME, DaemonOptions, run_daemon
from berth.errors import BerthError, Code, Exit
from berth.probes.simulated import simulated_cards
from berth.units import MiB, Seconds
from tests.actors.kept import HOLD, RUNNING

BOOT = "boot-1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / JOURNAL_NAME


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Return a journal with a lease, a hold and a baseline, as its actor has it."""
    with closing(Store(path)) as opened:
        opened.kept(BOOT)
        opened.write(
            Batch(
                latest={
                    ("", "1"): SaveLease(card_key="GPU-0", lease=RUNNING),
                    ("", "2"): SaveLease(card_key="GPU-0", lease=HOLD),
                    ("", "3"): SaveBaseline(card_key="GPU-0", baseline=MiB(400)),
                }
            )
        )
        opened.hurry()
        yield opened


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the write lock, as a program with an unfinished transaction does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def write(store: Store, mib: int) -> None:
    entry = SaveBaseline(card_key="GPU-0", baseline=MiB(mib))
    store.write(Batch(latest={("", "1"): entry}))


def test_lock_is_waited_for_a_moment_however_much_is_to_be_written(
    store: Store, path: Path
) -> None:
    """The journal's thread must say that it lives, however many records come meanwhile."""
    begun = time.monotonic()
    with locked(path):
        for mib in range(200):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                write(store, mib)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            store.prune()
        assert len(store.kept(BOOT).leases["GPU-0"]) == 2
        assert store.events(None, None, 10) == ()
    assert time.monotonic() - begun < 2.0
    write(store, 7)
    assert store.kept(BOOT).baselines == {"GPU-0": MiB(7)}


def test_lock_that_is_let_go_of_in_time_fails_no_write(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that writes a little now and then must not cost a grant; two in a row may."""
    monkeypatch.setattr(sqlite_file, "WAIT_FOR_LOCK", Seconds(10.0))
    monkeypatch.setattr(sqlite_file, "WAIT_AGAIN_AFTER", Seconds(60.0))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        lets_go = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        lets_go.start()
        write(store, 8)
        lets_go.join(timeout=5.0)
    assert store.kept(BOOT).baselines == {"GPU-0": MiB(8)}
    begun = time.monotonic()
    with locked(path), pytest.raises(sqlite3.Error, match="locked"):
        write(store, 9)
    assert time.monotonic() - begun < 5.0


def test_start_reads_a_journal_that_is_locked(store: Store, path: Path) -> None:
    """Nothing has to be written for it; what is granted then waits for the lock to go."""
    with locked(path), closing(Store(path)) as next_one:
        kept = next_one.kept(BOOT)
        assert next_one.set_aside == ""
    assert kept.leases == store.kept(BOOT).leases


def test_first_start_of_a_boot_takes_the_journal_over_whole_or_not_at_all(
    store: Store, path: Path
) -> None:
    """Else the start after it would take what ran before the reboot for what runs now."""
    store._db.execute(
        "CREATE TRIGGER full BEFORE DELETE ON leases BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    )
    with pytest.raises(sqlite3.Error, match="disk is full"):
        store.kept("boot-2")
    assert store.kept(BOOT).baselines == {"GPU-0": MiB(400)}
    store._db.execute("DROP TRIGGER full")
    with locked(path), pytest.raises(sqlite3.Error, match="locked"):
        store.kept("boot-2")
    kept = store.kept("boot-2")
    assert [lease.id for lease in kept.leases["GPU-0"]] == [HOLD.id]
    assert kept.baselines == {}


def test_start_that_must_write_says_in_a_sentence_that_the_journal_is_locked(
    store: Store, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one after a reboot does. It waits for some seconds; then a person must help."""
    monkeypatch.setattr(sqlite_file, "WAIT_AT_START", Seconds(0.1))
    (tmp_path / "cards.toml").write_text("[[card]]\ntotal_mib = 1000\n")
    options = DaemonOptions(
        socket=tmp_path / "b.sock", state=path.parent, cards=simulated_cards(tmp_path)
    )
    with locked(path), pytest.raises(BerthError, match="database is locked") as told:
        run_daemon(options, ready=pytest.fail)
    assert (told.value.code, told.value.exit_status) == (Code.NO_JOURNAL, Exit.CONFIG)
    assert "another program holds it locked" in told.value.hint
    assert store.set_aside == ""
    assert not list(path.parent.glob("*.damaged-*"))
