"""The screens of the real commands: what is written where, and how they end."""

import csv
import io
import json
import os
import subprocess
from collections.abc import Callable

import pytest
import zmq

from tests.system.node import BERTH, Node, wait_for


def two_cards(make_node: Callable[..., Node]) -> Node:
    node = make_node(
        {"total_mib": 24576, "name": "NVIDIA GeForce RTX 4090", "baseline_mib": 421},
        {"total_mib": 49140, "name": "NVIDIA RTX A6000", "baseline_mib": 700},
    )
    node.start()
    return node


def test_status_into_a_pipe_is_uncut_and_plain(node: Node) -> None:
    """A pipe gets the same table, whatever FORCE_COLOR would make of a screen."""
    node.run("--as", "engine-" + "x" * 150, "--needs-mib", "4000", "--", "sleep", "100")
    node.wait_state("engine-" + "x" * 150, "running")
    shown = node.berth("status")
    assert shown.returncode == 0
    assert "engine-" + "x" * 150 in shown.stdout
    assert "\x1b" not in shown.stdout
    forced = node.berth("status", env={**node.environment, "FORCE_COLOR": "1"})
    assert "\x1b[1m" in forced.stdout
    never = node.berth("status", "--color", "never", env={**node.environment, "FORCE_COLOR": "1"})
    assert "\x1b" not in never.stdout


def test_status_names_who_waits_for_whom_and_why(make_node: Callable[..., Node]) -> None:
    """The question that a queue is asked: by the board and by the sum, in the same words."""
    node = two_cards(make_node)
    node.run("--as", "train", "--needs-mib", "20000", "--", "sleep", "100")
    node.wait_state("train", "running")
    node.run("--as", "late", "--needs-mib", "8000", "--", "sleep", "100")
    why = wait_for(lambda: node.waiter("late"))["why"]
    assert why == "train is a job and runs to its end"
    board = node.berth("status").stdout
    assert "train (a) is a job and runs to its end" in board
    for name in ("late", "r2", "gpu0"):
        assert "train (a) is a job and runs to its end" in node.berth("status", name).stdout
    summed = node.berth("status", "late").stdout
    assert "short of" in summed
    unknown = node.berth("status", "nobody")
    assert unknown.returncode == 76
    assert unknown.stderr.splitlines()[0] == "berth: nothing here is called nobody"
    assert "gpu0, gpu1, train, late" in unknown.stderr


def test_formats_carry_the_same_rows(node: Node) -> None:
    """JSON on one line, indented on request; CSV with its header, for a spreadsheet."""
    node.run("--as", "=cmd", "--needs-mib", "4000", "--", "sleep", "100")
    node.wait_state("=cmd", "running")
    plain = node.berth("status", "--format", "json").stdout
    assert plain.count("\n") == 1
    pretty = node.berth("status", "--format", "json", "--pretty").stdout
    assert json.loads(pretty)["leases"][0]["name"] == "=cmd"
    assert pretty.count("\n") > 10
    rows = list(csv.DictReader(io.StringIO(node.berth("status", "--format", "csv").stdout)))
    assert [row["kind"] for row in rows] == ["card", "lease"]
    assert (rows[1]["name"], rows[1]["ask_mib"]) == ("'=cmd", "4000")


def test_check_is_quiet_until_something_needs_a_person(node: Node) -> None:
    """For cron and bars: nothing and 0, or a sentence and 1."""
    quiet = node.berth("status", "--check")
    assert (quiet.returncode, quiet.stdout) == (0, "")
    node.declare([{"total_mib": 24576, "error": "lost"}])
    told = wait_for(lambda: (c := node.berth("status", "--check")).returncode == 1 and c)
    assert told.stdout.startswith("gpu0 cannot be read: ")


@pytest.mark.parametrize("verb", [["status"], ["events"], ["status", "--format", "json"]])
def test_reader_that_has_enough_ends_it_quietly(node: Node, verb: list[str]) -> None:
    """`berth status | head -1`: no traceback, and no word on stderr."""
    command = " ".join([*BERTH, *verb, "|", "true"])
    ended = subprocess.run(
        ["sh", "-c", command],
        env=node.environment,
        capture_output=True,
        text=True,
        timeout=30.0,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_events_are_picked_by_kind_card_and_name(make_node: Callable[..., Node]) -> None:
    """W3: a line names the card only when there are several; a kind is a word or its first half."""
    node = two_cards(make_node)
    assert node.berth("run", "--as", "one", "--gpu", "1", "--", "true").returncode == 0
    assert node.berth("run", "--as", "two", "--", "true").returncode == 0
    kinds = {line.split()[2] for line in node.berth("events", "--name", "one").stdout.splitlines()}
    assert "lease.granted" in kinds
    only = node.berth("events", "--kind", "lease.granted", "--card", "gpu1").stdout.splitlines()
    assert len(only) == 1
    assert only[0].split()[1:4] == ["gpu1", "lease.granted", "one"]
    assert node.berth("events", "--kind", "alert.cleared").stdout == ""
    assert node.berth("events", "--name", "of-the-past").stdout == ""
    assert node.berth("events", "--kind", "lease.granted", "--card", "1").stdout.count("one") == 1
    rows = list(csv.DictReader(io.StringIO(node.berth("events", "--format", "csv").stdout)))
    assert {"lease.queued", "lease.granted", "lease.freed"} <= {row["kind"] for row in rows}


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        (("--since", "foo"), 64, ["'foo'", "10m", "2026-11-30T12:00", "seq"]),
        (("--since", "30-11"), 64, ["'30-11'", "10m", "2026-11-30T12:00", "seq"]),
        (("--kind", "bogus"), 64, ["'bogus'", "lease, card, engine, stowaway, alert, node"]),
        (("--kind", "alert,lease.bogus"), 64, ["'lease.bogus'", "lease.queued", "lease.stuck"]),
        (("--card", "gpu9"), 76, ["no card gpu9", "gpu0"]),
    ],
)
def test_events_that_cannot_be_are_told_with_those_that_can(
    node: Node, asked: tuple[str, ...], status: int, words: list[str]
) -> None:
    """An empty screen after a typo reads as if nothing had happened."""
    said = node.berth("events", *asked)
    assert (said.returncode, said.stdout) == (status, "")
    assert [word for word in words if word not in said.stderr] == []


def test_follow_goes_on_over_a_restart_and_misses_nothing(node: Node) -> None:
    """Ten of the past first, then what happens; what was missed is asked for."""
    following = node.popen("events", "--follow", "--format", "json")
    assert following.stdout is not None
    os.set_blocking(following.stdout.fileno(), False)
    lines: list[bytes] = []

    def seen(kind: str) -> bool:
        assert following.stdout is not None
        lines.append(following.stdout.read() or b"")
        return kind.encode() in b"".join(lines)

    wait_for(lambda: seen("node.started") or seen("card.ok"))
    node.kill()
    node.start()
    assert node.berth("run", "--as", "later", "--", "true").returncode == 0
    wait_for(lambda: seen('"lease.freed"'))
    seqs = [json.loads(line)["seq"] for line in b"".join(lines).splitlines()]
    assert seqs == sorted(set(seqs))


def test_no_daemon_stale_socket_and_a_newer_one_are_told_in_two_lines(
    make_node: Callable[..., Node],
) -> None:
    """The first line is the whole fact, the second the way out; JSON says the same."""
    node = make_node()
    none = node.berth("status")
    assert none.returncode == 69
    assert none.stderr.splitlines()[0] == f"berth: no berthd answers at {node.socket}"
    assert "Start it:  berth daemon" in none.stderr
    told = node.berth("status", "--format", "json")
    error = json.loads(told.stdout)["error"]
    assert (told.returncode, error["code"]) == (69, "no_berth")
    node.start()
    node.kill()
    stale = node.berth("status")
    assert stale.returncode == 69
    assert "is left at" in stale.stderr
    assert "but berthd is gone" in stale.stderr
    assert "It is safe to start a new one:  berth daemon" in stale.stderr


@pytest.mark.parametrize(("theirs", "way_out"), [(2, "berth update"), (0, "start it again")])
def test_berthd_of_another_version_is_told_with_both_numbers(
    make_node: Callable[..., Node], theirs: int, way_out: str
) -> None:
    """An older client, and an older daemon: exit 69, and which of the two to change."""
    node = make_node()
    with zmq.Context() as context, context.socket(zmq.ROUTER) as other:
        other.set(zmq.LINGER, 0)
        other.bind(f"ipc://{node.socket}")
        asking = node.popen("status")
        assert other.poll(20_000)
        *route, body = other.recv_multipart()
        message = f"berthd speaks protocol {theirs}, this client 1"
        error = {"code": "bad_request", "message": message, "hint": "", "waited_out": False}
        asked = json.loads(body)["id"]
        answer = {"v": theirs, "id": asked, "ok": False, "last": True, "error": error}
        other.send_multipart([*route, json.dumps(answer).encode()])
        _, told = asking.communicate(timeout=20.0)
    assert asking.returncode == 69
    first, second = told.decode().splitlines()
    assert first == f"berth: berthd speaks protocol {theirs}, this berth speaks 1"
    assert way_out in second
