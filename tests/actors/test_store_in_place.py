"""A journal's file that is taken away from under an open store (S6)."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from berth.actors.journal.core import Batch
from berth.actors.journal.messages import Kept, LastingEntry, SaveBaseline, SaveLease
from berth.actors.journal.store import Store
from berth.units import MiB
from tests.actors.kept import HOLD, RUNNING

BOOT = "boot-1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    opened.kept(BOOT)
    yield opened
    opened.close()


def batch(*entries: LastingEntry) -> Batch:
    keys = [("", str(place)) for place, _ in enumerate(entries)]
    return Batch(latest=dict(zip(keys, entries, strict=True)))


def _remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def _remove_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def _replace(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"somebody else's")


@pytest.mark.parametrize("take_away", [_remove_folder, Path.unlink, _remove_log, _replace])
def test_journal_that_is_taken_away_is_put_back_with_all_that_was_in_it(
    store: Store, path: Path, take_away: Callable[[Path], None]
) -> None:
    """S6: a write into a file that nobody will find again is no write; a grant would be lost."""
    store.write(batch(SaveLease(card_key="GPU-0", lease=RUNNING)))
    take_away(path)
    store.write(batch(SaveLease(card_key="GPU-1", lease=HOLD)))
    with closing(Store(path)) as next_one:  # as after a kill -9
        kept = next_one.kept(BOOT)
    assert (next_one.set_aside, next_one.fresh) == ("", False)
    assert sorted(kept.leases) == ["GPU-0", "GPU-1"]
    store.write(batch(SaveBaseline(card_key="GPU-0", baseline=MiB(7))))
    assert kept_again(path).baselines == {"GPU-0": MiB(7)}


def kept_again(path: Path) -> Kept:
    with closing(Store(path)) as another:
        return another.kept(BOOT)


def test_journal_that_cannot_be_put_back_cannot_be_written_until_it_can(
    store: Store, path: Path
) -> None:
    """S6: no new grants meanwhile; nothing of what is open is lost over it."""
    store.write(batch(SaveLease(card_key="GPU-0", lease=RUNNING)))
    shutil.rmtree(path.parent)
    path.parent.write_text("a file where the folder was")
    for _ in range(2):
        with pytest.raises(sqlite3.Error, match="is gone"):
            store.write(batch(SaveLease(card_key="GPU-1", lease=HOLD)))
    path.parent.unlink()
    store.write(batch(SaveLease(card_key="GPU-1", lease=HOLD)))
    assert sorted(kept_again(path).leases) == ["GPU-0", "GPU-1"]
