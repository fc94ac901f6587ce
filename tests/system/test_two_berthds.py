"""Two berthds never share a socket or a journal, whatever was deleted under the first (S4, S6)."""

import shutil
import signal
import socket as sockets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.node import WITHIN, Node, wait_for

pytestmark = pytest.mark.system


def test_berthd_does_not_start_in_the_place_of_a_file(make_node: Callable[..., Node]) -> None:
    """S4: a mistyped --socket cost a person their notes."""
    node = make_node()
    notes = node.folder / "notes.txt"
    notes.write_text("precious\n")
    before = sorted(node.folder.iterdir())
    refused = node.berth("daemon", "--socket", str(notes))
    assert refused.returncode == 78
    assert f"{notes} is a file that is none of berthd's" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert notes.read_text() == "precious\n"
    assert sorted(node.folder.iterdir()) == before, "no lock, no journal"


def test_berthd_that_cannot_bind_ends(make_node: Callable[..., Node]) -> None:
    """A berthd that nobody can reach governs nothing, and must not look as if it did."""
    node = make_node()
    script = (
        "from berth.door import Place\n"
        "def refuse(*_): raise OSError('no sockets here')\n"
        "Place.bind = refuse\n"
        "from berth.__main__ import main; main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, "daemon"],
        env=node.environment,
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )
    assert ended.returncode == 69
    assert "no client can be served: OSError: no sockets here" in ended.stderr


def test_strangers_file_in_the_sockets_place_is_left_while_berthd_runs(node: Node) -> None:
    """S4: who is connected stays so; once the file is moved away, everybody can come again."""
    node.socket.unlink()
    node.socket.write_text("precious\n")
    wait_for(lambda: f"{node.socket} is a file that is none of berthd's" in node.log_text())
    assert node.socket.read_text() == "precious\n"
    node.socket.rename(node.folder / "kept")
    wait_for(lambda: node.try_status() is not None)


def test_socket_that_a_second_one_left_is_taken_back(node: Node) -> None:
    """S4: else berthd lives on unreachable, and people are told to start another."""
    node.socket.unlink()
    with sockets.socket(sockets.AF_UNIX) as second:
        second.bind(str(node.socket))
    wait_for(lambda: node.try_status() is not None)


@pytest.mark.parametrize("second_socket", ["b.sock", "other.sock"])
def test_berthd_whose_folders_were_deleted_gives_way_to_the_next(
    make_node: Callable[..., Node], second_socket: str
) -> None:
    """S6: while it could not look, another took the locks. It ends; the journal is the other's."""
    node = make_node()
    node.socket = node.folder / "run" / "b.sock"
    node.environment["BERTH_SOCKET"] = str(node.socket)
    node.start()
    node.run("--as", "chat", "--needs-mib", "9000", "--", "sleep", "99")
    node.wait_state("chat", "running")
    first = node.daemon
    assert first is not None
    first.send_signal(signal.SIGSTOP)
    shutil.rmtree(node.folder / "state")
    shutil.rmtree(node.socket.parent)
    node.environment["BERTH_SOCKET"] = str(node.socket.with_name(second_socket))
    first_log, node.log = node.log, node.folder / "second.log"
    try:
        node.start()
        journal = (node.folder / "state" / "journal.sqlite3").stat().st_ino
    finally:
        first.send_signal(signal.SIGCONT)
    try:
        assert first.wait(timeout=WITHIN) == 69
    finally:
        first.kill()
    assert node.daemon is not None
    taken = f"berthd ended: another berthd (pid {node.daemon.pid}) has its journal in"
    assert taken in first_log.read_text()
    assert _journals(node) == {"journal.sqlite3": journal}, "none was set aside"
    if second_socket == "b.sock":
        node.wait_state("chat", "running")


def _journals(node: Node) -> dict[str, int]:
    state: Path = node.folder / "state"
    found = state.glob("journal.sqlite3*")
    return {p.name: p.stat().st_ino for p in found if not p.name.endswith(("-wal", "-shm"))}


def test_second_one_is_kept_out_though_all_was_deleted(node: Node) -> None:
    """S6: the first makes its locks anew, so that whoever comes later finds it."""
    lock = node.folder / "state" / "lock"
    shutil.rmtree(node.folder / "state")
    for path in node.folder.glob("b.*sock*"):
        path.unlink()
    wait_for(lambda: lock.exists() and lock.read_text() and node.socket.exists())
    assert node.daemon is not None
    for socket in (node.socket, node.folder / "other.sock"):
        second = node.berth("daemon", "--socket", str(socket))
        assert second.returncode == 69
        assert f"another berthd (pid {node.daemon.pid}) has" in second.stderr
    assert node.status()["node"]["pid"] == node.daemon.pid
