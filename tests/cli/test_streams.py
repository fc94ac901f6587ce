"""Closed, full and unread streams: what is run runs, and nothing ends in a traceback or unsaid."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BERTH = f"{sys.executable} -m berth"
NOBODY = {**os.environ, "BERTH_SOCKET": "/nowhere/b.sock", "BERTH_CONFIG": os.devnull}


def shell(script: str) -> "subprocess.CompletedProcess[str]":
    """Run a line of shell where no berthd is."""
    return subprocess.run(
        ["bash", "-c", script.replace("berth ", f"{BERTH} ", 1)],
        env=NOBODY,
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_stream_does_not_break_a_run(closed: str, tmp_path: Path) -> None:
    """Cron and daemons close streams: the command is run, and its status is the run's."""
    written = tmp_path / "written"
    script = (
        f"berth run -q -- sh -c 'echo out; echo err >&2; echo ran > {written}; exit 7' {closed}"
    )
    ended = shell(script)
    assert (ended.returncode, written.read_text()) == (7, "ran\n")
    assert "Traceback" not in ended.stderr


def test_file_never_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What the command says on a stream that was closed must not land in a file of Berth's."""
    report = tmp_path / "report"
    shell(f"berth run --json {report} -- sh -c 'echo astray; echo astray >&2' >&- 2>&-")
    assert '"event"' in report.read_text()
    assert "astray" not in report.read_text()


def test_full_stderr_leaves_the_commands_status() -> None:
    """R6: what Berth cannot say must not change what the command has said."""
    assert shell("berth run -- sh -c 'exit 3' 2>/dev/full").returncode == 3
    assert shell("berth status 2>/dev/full").returncode == 69


@pytest.mark.parametrize("verb", ["version", "--help", "run --help"])
def test_output_that_cannot_be_written_is_one_sentence_and_74(verb: str) -> None:
    """A full disk is told: the file that was to be written is not what it should be."""
    ended = shell(f"berth {verb} >/dev/full")
    said = "berth: the output cannot be written: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (74, said)


@pytest.mark.parametrize("verb", ["version", "run --help"])
def test_reader_that_leaves_early_is_no_error(verb: str) -> None:
    """`| head -1`: quiet, with the status that other programs have (SIGPIPE)."""
    ended = shell(f"berth {verb} | exec 0<&-; echo ${{PIPESTATUS[0]}}")
    assert (ended.stdout, ended.stderr) == ("141\n", "")


_LONG = """
import os, sys
from berth.cli import app, version
version.version = lambda: print("a" * 300000)
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)
print(app.run_cli(["version"]), file=sys.stderr)
"""


def test_reader_that_leaves_in_the_middle_is_no_error_either() -> None:
    """What does not fit into a buffer fails within the verb, where typer has its own way out."""
    ended = subprocess.run(
        [sys.executable, "-c", _LONG], capture_output=True, text=True, timeout=60.0, check=False
    )
    assert ended.stderr == "141\n"


def test_what_a_stream_cannot_encode_is_shown_by_its_escape() -> None:
    """A terminal in ASCII or Latin-1 shows names of other people's in UTF-8 too."""
    code = (
        "import sys; from berth.streams import open_missing_streams; "
        "open_missing_streams(); print('\\u4e2d')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=60.0,
        check=True,
    )
    assert ended.stdout == "\\u4e2d\n"
