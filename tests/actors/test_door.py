"""berthd's files take nobody's place, and a lock is the file of its name (S4, S6)."""

import logging
import os
import socket as sockets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from berth.door import Place, check_door, keep_mark
from berth.errors import BerthError, Code, Exit
from berth.locks import OnlyOne
from berth.paths import berthd_ran_this_boot, boot_marker, events_path, lock_path

NAMES = ["b.sock", "b.events.sock", "b.sock.lock", "b.sock.boot"]


def _notes(path: Path) -> None:
    path.write_text("precious\n")


def _link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


STRANGERS = [_notes, Path.mkdir, _link, _pipe]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder of which nothing may vanish or change."""
    yield tmp_path
    for path in tmp_path.iterdir():
        if path.is_file() and path.name.startswith("b.") and path.stat().st_size == 9:
            assert path.read_text() == "precious\n"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_is_not_berthds_is_refused_and_left_as_it_is(
    folder: Path, name: str, stranger: Callable[[Path], None]
) -> None:
    """S4: ZeroMQ deletes what has a socket's name, a lock is emptied, the mark is written over."""
    path = folder / name
    stranger(path)
    before = path.lstat()
    with pytest.raises(BerthError, match=f"{path} is a") as raised:
        check_door(folder / "b.sock")
    assert (raised.value.code, raised.value.exit_status) == (Code.BAD_CONFIG, Exit.CONFIG)
    assert "--socket" in raised.value.hint
    assert path.lstat() == before or stranger is _notes  # reading it moves its time of access
    assert [one.name for one in folder.iterdir()] == [name]


@pytest.mark.parametrize(("lock", "mark"), [("", ""), ("4711\n", "\n"), ("4711", "0a-9f")])
def test_what_a_dead_berthd_left_is_no_stranger(folder: Path, lock: str, mark: str) -> None:
    """HS20: after a kill nobody has to delete anything."""
    socket = folder / "b.sock"
    for path in (socket, events_path(socket)):
        with sockets.socket(sockets.AF_UNIX) as left:
            left.bind(str(path))
    lock_path(socket).write_text(lock)
    boot_marker(socket).write_text(mark)
    check_door(socket)
    keep_mark(socket)
    assert berthd_ran_this_boot(socket)


@pytest.mark.parametrize("kind", [sockets.SOCK_STREAM, sockets.SOCK_DGRAM, sockets.SOCK_SEQPACKET])
@pytest.mark.parametrize("name", NAMES[:2])
def test_socket_that_another_program_uses_is_refused(folder: Path, name: str, kind: int) -> None:
    """S4: a socket too can be somebody's: ssh-agent's, docker's."""
    with sockets.socket(sockets.AF_UNIX, kind) as other:
        other.bind(str(folder / name))
        if kind != sockets.SOCK_DGRAM:
            other.listen()
        with pytest.raises(BerthError, match="another program listens at"):
            check_door(folder / "b.sock")
        lock_path(folder / "b.sock").write_text("4711\n")
        with pytest.raises(BerthError, match=r"another berthd \(pid 4711\) has"):
            check_door(folder / "b.sock")


def test_mark_of_a_berthd_is_made_anew_but_over_nobodys_file(folder: Path) -> None:
    """R4: without it a next berthd with no journal would not wait for holders."""
    mark = boot_marker(folder / "b.sock")
    keep_mark(folder / "b.sock")
    mark.unlink()
    keep_mark(folder / "b.sock")
    assert berthd_ran_this_boot(folder / "b.sock")
    mark.write_text("precious\n")
    keep_mark(folder / "b.sock")
    assert mark.read_text() == "precious\n"


# --- where a socket is bound ----------------------------------------------------------------------


@pytest.fixture
def bound(folder: Path) -> "Iterator[tuple[Place, zmq.Socket[bytes], Path]]":
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    path = folder / "b.sock"
    place = Place(path)
    place.bind(socket)
    yield place, socket, path
    socket.close(linger=0)
    context.term()


def listens(path: Path) -> bool:
    with sockets.socket(sockets.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_file_in_a_sockets_place_is_left_and_told_once(
    bound: "tuple[Place, zmq.Socket[bytes], Path]",
    stranger: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S4: also while berthd runs; and once the place is free, it is taken again."""
    place, socket, path = bound
    path.unlink()
    stranger(path)
    with caplog.at_level(logging.WARNING):
        place.keep(socket)
        place.keep(socket)
    assert len(caplog.records) == 1
    assert not path.is_socket()
    with pytest.raises(BerthError):
        place.bind(socket)
    path.rename(path.with_name("moved"))
    place.keep(socket)
    assert listens(path)


def test_socket_of_a_dead_berthd_in_its_place_is_replaced(
    bound: "tuple[Place, zmq.Socket[bytes], Path]",
) -> None:
    """S4: a second one came and went; the file is there, but nobody behind it."""
    place, socket, path = bound
    path.unlink()
    with sockets.socket(sockets.AF_UNIX) as second:
        second.bind(str(path))
        second.listen()
        theirs = path.stat().st_ino
        place.keep(socket)
        assert path.stat().st_ino == theirs, "it is in use"
    assert not listens(path)
    place.keep(socket)
    assert listens(path)
    assert path.stat().st_mode & 0o777 == 0o600


# --- locks ----------------------------------------------------------------------------------------


def lock_at(path: Path) -> OnlyOne:
    return OnlyOne(path, "it all", hint="stop it", way_out="move it")


@pytest.mark.parametrize("stranger", STRANGERS)
def test_lock_is_made_of_nobodys_file(folder: Path, stranger: Callable[[Path], None]) -> None:
    """A folder for the journal may be one that has a file of that name already."""
    stranger(folder / "b.lock")
    with pytest.raises(BerthError, match="berthd would take its place") as raised:
        lock_at(folder / "b.lock")
    assert raised.value.hint == "move it"


def test_lock_whose_file_is_gone_is_made_and_held_anew(tmp_path: Path) -> None:
    """S6: a deleted file keeps no second berthd out; its folder may be gone with it."""
    path = tmp_path / "state" / "lock"
    path.parent.mkdir()
    with lock_at(path) as first:
        path.unlink()
        path.parent.rmdir()
        assert first.lost() == ""
        with pytest.raises(BerthError, match=rf"another berthd \(pid {os.getpid()}\) has it all"):
            lock_at(path)
        assert first.lost() == ""
    with lock_at(path):
        pass


def test_lock_that_another_has_by_now_is_lost(tmp_path: Path) -> None:
    """S6: of two, it is the one whose file was deleted that gives way, until the other ends."""
    path = tmp_path / "lock"
    with lock_at(path) as first:
        path.unlink()
        with lock_at(path):
            assert first.lost() == f"another berthd (pid {os.getpid()}) has it all"
        assert first.lost() == ""


def test_file_that_is_no_lock_takes_none_away(tmp_path: Path) -> None:
    """Nobody can hold it, so berthd goes on; and it is left as it is."""
    path = tmp_path / "lock"
    with lock_at(path) as first:
        path.unlink()
        path.write_text("precious\n")
        assert first.lost() == ""
    assert path.read_text() == "precious\n"
