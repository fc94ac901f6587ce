"""Slips of a person's on the command line: one sentence and a status, never a traceback."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

BERTH = [os.fsencode(sys.executable), b"-m", b"berth"]
DIGITS = "9" * 5000


def berth(*words: str | bytes, **environ: str) -> tuple[int, str]:
    """Run berth where no berthd is. Return its status and what it said."""
    ended = subprocess.run(
        [*BERTH, *(os.fsencode(word) for word in words)],
        env={
            **os.environ,
            "BERTH_SOCKET": "/nowhere/b.sock",
            "BERTH_CONFIG": os.devnull,
            **environ,
        },
        capture_output=True,
        timeout=60.0,
        check=False,
    )
    said = ended.stderr.decode()
    assert "Traceback" not in said
    return ended.returncode, said


def test_command_and_arguments_that_are_no_utf8_run(tmp_path: Path) -> None:
    """R1: what the command is given is bytes, and passed on as they are."""
    program = os.fsencode(tmp_path) + b"/mod\xe8le"
    with open(program, "w") as script:  # noqa: PTH123 -- its name is bytes
        script.write('#!/bin/sh\n[ "$1" = "$(printf \'\\377\')" ] && exit 7\n')
    os.chmod(program, stat.S_IRWXU)  # noqa: PTH101 -- the same
    assert berth(b"run", b"--", program, b"\xff")[0] == 7
    status, said = berth(b"run", b"--", program + b"2")
    assert status == 127
    assert f"berth: {tmp_path}/mod\\xe8le2: No such file or directory\n" in said


@pytest.mark.parametrize("flag", ["--as", "--group", "--gpu"])
def test_name_that_is_no_utf8_is_refused_before_anything_runs(flag: str) -> None:
    """R6: a name is shown to everybody, so it is text; the sentence shows which is not."""
    status, said = berth("run", flag, b"\xff", "--", "true")
    assert (status, said.splitlines()[0]) == (64, "berth: '\\xff' is not UTF-8")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("run", "--", ""), 64, "berth: the command is empty"),
        (("run", "--json", "99999999999", "--", "true"), 64, "there is no such file descriptor"),
        (("run", "--json", DIGITS, "--", "true"), 64, "there is no such file descriptor"),
        (("run", "--json", "77", "--", "true"), 64, "--json 77: Bad file descriptor"),
        (("run", "--needs-mib", DIGITS, "--", "true"), 64, "is no number of MiB"),
        (("run", "--wait", DIGITS, "--", "true"), 64, "not longer than ten years"),
        (("hold", "--needs-mib", DIGITS), 64, "--needs-mib"),
        (("hold", "--for", DIGITS), 64, "not longer than ten years"),
        (("run", "--drain-slots", b"http://\xff", "--", "true"), 64, "'http://\\xff' is no URL"),
        (("run", "--key-file", b"/\xff", "--", "true"), 64, "--key-file: /\\xff: No such file"),
        (("status", "--socket", b"/tmp/\xff.sock"), 78, "not UTF-8: /tmp/\\xff.sock"),
        (("daemon", "--socket", "/proc/b.sock"), 78, "cannot use /proc for the socket"),
    ],
)
def test_value_that_makes_no_sense_is_told(
    words: tuple[str | bytes, ...], status: int, says: str, tmp_path: Path
) -> None:
    """R6, S4: each with its status; none starts anything."""
    (tmp_path / "cards.toml").write_text("[[card]]\ntotal_mib = 100\n")
    folders = {"BERTH_SIM_DIR": str(tmp_path), "BERTH_STATE_DIR": str(tmp_path / "state")}
    ended, said = berth(*words, **folders)
    assert ended == status
    assert says in said


@pytest.mark.parametrize(
    "key", [b"\xff\xfe", "schlüssel".encode(), b"one\ntwo", b"nul\0"], ids=["bytes", "é", "2", "0"]
)
def test_key_file_that_holds_no_key_is_told(key: bytes, tmp_path: Path) -> None:
    """A key goes into a header of HTTP: what cannot stand there would fail in the first drain."""
    file = tmp_path / "key"
    file.write_bytes(key)
    status, said = berth("run", "--key-file", str(file), "--", "true")
    assert (status, "holds something that is no key" in said) == (64, True)


def test_relative_socket_in_a_deleted_directory_is_told(tmp_path: Path) -> None:
    """S4: where it would be cannot be known; a run by an absolute path is not disturbed."""
    gone = tmp_path / "gone"
    code = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m berth"
    root = str(Path(__file__).parents[2])
    for socket, verb, status in (("x.sock", "status", 78), ("/no/b.sock", "run -q -- true", 0)):
        gone.mkdir()
        ended = subprocess.run(
            ["bash", "-c", f"{code} {verb}"],
            env={**os.environ, "BERTH_SOCKET": socket, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            timeout=60.0,
            check=False,
        )
        assert (ended.returncode, "Traceback" in ended.stderr) == (status, False)
