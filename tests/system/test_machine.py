"""What a machine does to berthd: full disks, damaged files, two daemons, clocks, kills."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.system.node import BERTH, Node, wait_for
from tests.system.raw import Raw

pytestmark = pytest.mark.system


def test_full_disk_grants_nothing_and_lets_releases_go_on(node: Node) -> None:
    """S6: no new grants (`no_journal`, an alert); drains and releases go on; it heals by itself."""
    run = node.run(
        "--as", "first", "--needs-mib", "20000", "--", *node.claiming(20000, "sleep", "99")
    )
    node.wait_state("first", "running")
    with _full_disk(node):
        refused = node.berth(
            "run", "--as", "second", "--needs-mib", "1000", "--wait", "3s", "--", "true"
        )
        assert refused.returncode in {75, 76}
        assert "no_journal" in refused.stderr
        run.terminate()
        run.wait(timeout=20.0)
        node.wait_gone("first")
    done = node.berth("run", "--as", "third", "--wait", "20s", "--", "true")
    assert done.returncode == 0
    kinds = [event["kind"] for event in node.events()]
    assert "alert.raised" in kinds
    assert "alert.cleared" in kinds
    assert node.events("lease.freed")[0]["name"] == "first"


def test_journal_that_another_program_has_locked_grants_nothing_until_it_lets_go(
    node: Node,
) -> None:
    """S6: it cannot be written, no more: releases go on, and berthd heals by itself."""
    run = _run(node, "first")
    pid = node.status()["node"]["pid"]
    path = node.folder / "state" / "journal.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = node.berth("run", "--as", "second", "--needs-mib", "1000", "--", "true")
        assert "no_journal" in refused.stderr  # its grant was the first that could not be written
        third = node.run("--as", "third", "--needs-mib", "1000", "--wait", "30s", "--", "true")
        wait_for(lambda: (node.waiter("third") or {}).get("code") == "no_journal")
        run.terminate()
        run.wait(timeout=20.0)
        node.wait_gone("first")
        assert third.poll() is None
    assert third.wait(timeout=20.0) == 0
    assert node.status()["node"]["pid"] == pid
    assert "Traceback" not in node.log_text()


def _run(node: Node, name: str) -> "subprocess.Popen[bytes]":
    """Have an engine hold 20000 MiB."""
    claiming = node.claiming(20000, "sleep", "99")
    run = node.run("--as", name, "--needs-mib", "20000", "--", *claiming)
    node.wait_state(name, "running")
    return run


class _full_disk:  # noqa: N801 -- it reads as what it is
    """As long as it lasts, berthd's process cannot make any file longer."""

    def __init__(self, node: Node) -> None:
        assert node.daemon is not None
        self._pid = node.daemon.pid

    def __enter__(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))

    def __exit__(self, *_: object) -> None:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, unlimited)


@pytest.mark.parametrize("damage", ["garbage", "torn", "record", "newer"])
def test_damaged_journal_is_set_aside_told_and_nothing_is_granted_over_holders(
    node: Node, damage: str
) -> None:
    """S6: never silently dropped; holders nobody knows of have their 10 s to come back."""
    run = node.run(
        "--as", "chat", "--needs-mib", "20000", "--", *node.claiming(20000, "sleep", "99")
    )
    node.wait_state("chat", "running")
    node.kill()
    _damage(node, damage)
    node.start()
    late = node.run("--as", "late", "--needs-mib", "20000", "--", "true")
    lease = node.wait_state("chat", "running")
    assert lease["used_mib"] == 20000
    alerts = [event["why"] for event in node.events("alert.raised")]
    aside = list((node.folder / "state").glob("journal.sqlite3.damaged-*"))
    assert len([path for path in aside if not path.name.endswith(("-wal", "-shm"))]) == 1
    assert any(str(path) in alerts[0] for path in aside)
    assert late.poll() is None
    run.terminate()
    assert late.wait(timeout=30.0) == 0


def _damage(node: Node, damage: str) -> None:
    path = node.folder / "state" / "journal.sqlite3"
    if damage in {"record", "newer"}:
        record = (
            b"{]"
            if damage == "record"
            else b'{"lease":"L1","name":"x","state":"held","granted":1.0,"format":99}'
        )
        with sqlite3.connect(path) as db:
            db.execute("UPDATE leases SET record = ?", (record,))
        db.close()
        return
    for wal in path.parent.glob("journal.sqlite3-*"):
        wal.unlink()
    if damage == "garbage":
        path.write_bytes(os.urandom(20000))
    else:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] + b"\xff" * 3000)


@pytest.mark.parametrize("limit", [20, 64, 255])
def test_berthd_does_not_start_with_too_few_files(
    make_node: Callable[..., Node], limit: int
) -> None:
    """ZeroMQ aborts where files run out: thirty clients ended a berthd that may open 64."""
    refused = subprocess.run(
        _with_files(limit),
        env=make_node().environment,
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )
    assert refused.returncode == 78
    assert f"may have only {limit} files open" in refused.stderr
    assert "ulimit -n" in refused.stderr
    assert "LimitNOFILE=" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_berthd_with_just_enough_files_serves_a_crowd(make_node: Callable[..., Node]) -> None:
    """What is allowed to start must bear a hundred clients: the limit is no idle number."""
    node = make_node()
    with node.log.open("ab") as log:
        node.daemon = subprocess.Popen(
            _with_files(256), env=node.environment, stdout=log, stderr=log
        )
    wait_for(node.answers)
    with ExitStack() as stack:
        for _ in range(100):
            assert stack.enter_context(Raw(node.socket)).call("hello")["ok"]
    assert node.daemon.poll() is None


def _with_files(limit: int) -> list[str]:
    """Return the command of a berthd that may have so many files open."""
    return ["sh", "-c", 'ulimit -n "$0" && exec "$@"', str(limit), *BERTH, "daemon"]


def test_second_daemon_says_who_has_the_socket(node: Node) -> None:
    """One node, one berthd: the second says which pid it is, and leaves the first alone."""
    second = node.berth("daemon")
    assert second.returncode == 69
    assert node.daemon is not None
    assert f"another berthd (pid {node.daemon.pid}) has" in second.stderr
    assert "Traceback" not in second.stderr
    assert node.status()["node"]["pid"] == node.daemon.pid


def test_second_daemon_on_the_same_journal_is_told_so(node: Node) -> None:
    """S6: on a socket of its own too, two would grant what the other has granted."""
    second = node.berth("daemon", "--socket", str(node.folder / "other.sock"))
    assert second.returncode == 69
    assert "has its journal in" in second.stderr
    assert node.daemon is not None
    assert str(node.daemon.pid) in second.stderr


def test_journal_deleted_under_berthd_is_there_for_the_next_one(node: Node) -> None:
    """S6: a grant that a client has seen survives a kill, whoever cleans up in between."""
    _run(node, "chat")
    shutil.rmtree(node.folder / "state")
    node.run("--as", "two", "--needs-mib", "1000", "--", *node.claiming(1000, "sleep", "99"))
    node.wait_state("two", "running")
    node.kill()
    node.start()
    kept = {row["name"]: row["lease"] for row in node.status()["leases"]}
    assert kept == {"chat": "L1", "two": "L2"}
    assert node.events("alert.raised") == []


def test_holders_come_back_to_a_berthd_that_lost_its_journal_though_numbers_repeat(
    node: Node,
) -> None:
    """S6, R4: the second is L1 now; the first, which was, is taken in under another number."""
    first = node.run("--as", "first", "--needs-mib", "8000", "--", "sleep", "99")
    assert node.wait_state("first", "running")["lease"] == "L1"
    node.run("--as", "second", "--needs-mib", "8000", "--", "sleep", "99")
    assert node.wait_state("second", "running")["lease"] == "L2"
    node.kill()
    for file in (node.folder / "state").glob("journal*"):
        file.unlink()
    first.send_signal(signal.SIGSTOP)
    try:
        node.start()
        assert node.wait_state("second", "running")["lease"] == "L1"
    finally:
        first.send_signal(signal.SIGCONT)
    assert node.wait_state("first", "running")["lease"] == "L2"
    node.run("--as", "third", "--needs-mib", "9000", "--", "true")
    wait_for(lambda: (node.waiter("third") or {"code": ""})["code"] == "busy")


def test_what_a_killed_daemon_left_is_no_obstacle(node: Node) -> None:
    """HS20: the socket files and the lock of a dead berthd need nobody to delete them."""
    node.kill()
    assert node.socket.exists()
    left = node.berth("status")
    assert left.returncode == 69
    assert "a socket file is left" in left.stderr
    node.start()
    assert node.status()["cards"][0]["state"] == "ok"


def test_stopped_daemon_ends_waits_and_leaves_engines_alone(node: Node) -> None:
    """A stop in order refuses who waits with a reason, and holders come back to the next berthd."""
    run = node.run("--as", "chat", "--", *node.claiming(20000, "sleep", "99"))
    node.wait_state("chat", "running")
    late = node.run("--as", "late", "--", "true")
    wait_for(lambda: node.waiter("late"))
    assert node.stop() == 0
    assert late.wait(timeout=20.0) == 76
    assert run.poll() is None
    node.start()
    assert node.wait_state("chat", "running")["lease"] == "L1"


def test_sigusr1_writes_every_thread_and_stops_nothing(node: Node) -> None:
    """Whoever wants to know what a berthd is doing need not stop it."""
    assert node.daemon is not None
    node.daemon.send_signal(signal.SIGUSR1)
    wait_for(lambda: "most recent call first" in node.log_text())
    assert node.status()["cards"][0]["state"] == "ok"


def test_pid_that_was_handed_out_again_frees_what_its_old_owner_held(node: Node) -> None:
    """Z1, R5: a process is pid and start time; a stranger with the pid is not the holder."""
    run = node.run("--as", "chat", "--needs-mib", "9000", "--", "sleep", "99")
    lease = node.wait_state("chat", "running")
    node.kill()
    path = node.folder / "state" / "journal.sqlite3"
    with sqlite3.connect(path) as db:
        (record,) = db.execute("SELECT record FROM leases").fetchone()
        start = _start_time(run.pid)
        changed = record.replace(str(start).encode(), str(start - 1).encode())
        assert changed != record
        db.execute("UPDATE leases SET record = ?", (changed,))
    db.close()
    run.kill()
    run.wait(timeout=20.0)
    survivor = subprocess.Popen(["sleep", "99"])
    try:
        node.start()
        wait_for(lambda: node.lease("chat") is None, why=f"{lease['lease']} is freed")
        assert survivor.poll() is None
    finally:
        survivor.kill()
        survivor.wait()


def _start_time(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_two_requests_in_one_moment_are_not_both_granted_against_one_reading(node: Node) -> None:
    """HS11: two processes ask at once; the books count the first before the card shows it."""
    runs = [
        node.run("--as", name, "--needs-mib", "13000", "--wait", "2s", "--", "sleep", "4")
        for name in ("x", "y")
    ]
    wait_for(lambda: node.lease("x") or node.lease("y"))
    assert len(node.status()["leases"]) == 1
    statuses = sorted(run.wait(timeout=30.0) for run in runs)
    assert statuses == [0, 75]


def test_berthd_that_is_stopped_and_continued_goes_on(node: Node) -> None:
    """A berthd that stood still (SIGSTOP, a slow machine) grants on a new reading only."""
    assert node.daemon is not None
    os.kill(node.daemon.pid, signal.SIGSTOP)
    late = node.popen("run", "--as", "late", "--", "true")
    waited = subprocess.run([*BERTH, "version"], check=True, capture_output=True, timeout=30.0)
    assert waited.stdout
    os.kill(node.daemon.pid, signal.SIGCONT)
    assert late.wait(timeout=30.0) == 0


def test_state_folder_that_cannot_be_used_is_one_sentence(make_node: Callable[[], Node]) -> None:
    """Whoever has no room for a journal is told so before anything is promised."""
    node = make_node()
    (node.folder / "state").write_text("a file, no folder")
    tried = node.berth("daemon")
    assert tried.returncode == 78
    assert "the journal cannot be opened" in tried.stderr
    assert "Traceback" not in tried.stderr


def test_folder_of_cards_that_is_wrong_is_one_sentence(make_node: Callable[[], Node]) -> None:
    """Z1: what is wrong with cards.toml is told with its place."""
    node = make_node()
    (node.sim / "cards.toml").write_text("[[card]]\ntotal_mb = 3\n")
    tried = node.berth("daemon")
    assert tried.returncode == 78
    assert "total_mb" in tried.stderr
    assert "Traceback" not in tried.stderr
