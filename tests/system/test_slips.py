"""Slips that berthd would have to hear of, and output that is full, closed or not read."""

import os

import pytest

from tests.system.node import Node, wait_for

SHOWING = [
    "status",
    "status --format json",
    "status --format csv",
    "events",
    "events --format csv",
    "events --format json",
]


def test_what_is_shown_is_told_to_be_lost_or_quietly_unread(node: Node) -> None:
    """A full disk is a sentence and 74; a reader that has enough is silence and SIGPIPE's 141."""
    for verb in SHOWING:
        full = node.shell(f"berth {verb} >/dev/full")
        said = "berth: the output cannot be written: No space left on device\n"
        assert (verb, full.returncode, full.stderr) == (verb, 74, said)
        unread = node.shell(f"berth {verb} | exec 0<&-; echo ${{PIPESTATUS[0]}}")
        assert (verb, unread.stdout, unread.stderr) == (verb, "141\n", "")
        assert node.shell(f"berth {verb} >&-").returncode == 0


@pytest.mark.parametrize(
    "words",
    [("stop", "\udcff"), ("reclaim", "\udcff"), ("hold", "--no-wait", "--reason", "\udce9t")],
)
def test_words_that_are_no_utf8_are_refused(node: Node, words: tuple[str, ...]) -> None:
    """R6: 64 and which word, as JSON cannot say it and no screen can show it."""
    ended = node.berth(*words)
    assert ended.returncode == 64
    assert ended.stderr.startswith(f"berth: '\\x{ord(words[-1][0]) - 0xDC00:x}")
    assert "is not UTF-8" in ended.stderr


def test_command_that_is_no_utf8_has_a_name_that_can_be_typed(node: Node) -> None:
    """Its lease is called what is shown, so that it can be stopped by that name."""
    program = node.folder / "mod\udce8le"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    run = node.run("--", os.fspath(program))
    wait_for(lambda: [one["name"] for one in node.status()["leases"]] == ["mod\\xe8le"])
    wait_for(lambda: node.status()["leases"][0]["state"] == "running")
    stopped = node.berth("stop", "mod\\xe8le")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    _, said = run.communicate(timeout=20.0)
    assert run.returncode == 143
    assert b"asked to stop (stopped by a person); 10s grace" in said


def test_numbers_and_times_beyond_all_measure_are_told(node: Node) -> None:
    """5000 digits in COLUMNS are no width; a time before the calendar is none; 1960 is long ago."""
    digits = "9" * 5000
    wide = node.berth("status", env={**node.environment, "COLUMNS": digits})
    assert (wide.returncode, wide.stderr) == (0, "")
    for since, status in (
        ("0001-01-01T00:00", 64),
        ("9999-12-31T23:59", None),
        (digits, 64),
        ("1960-01-01T00:00", 0),
    ):
        ended = node.berth("events", "--since", since)
        assert "Traceback" not in ended.stderr
        assert status is None or ended.returncode == status


def test_boot_mark_that_is_no_text_does_not_break_a_run(node: Node) -> None:
    """R4: a damaged mark says nothing, and the command runs."""
    node.socket.with_name("b.sock.boot").write_bytes(b"\xff\xfe")
    assert node.stop() == 0
    ended = node.berth("run", "-q", "--", "sh", "-c", "exit 7")
    assert (ended.returncode, "Traceback" in ended.stderr) == (7, False)
