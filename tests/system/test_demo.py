"""`berth demo` as people and scripts run it: real processes, and nothing left of them."""

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.system.node import BERTH, wait_for

pytestmark = pytest.mark.system

ENDS_WITHIN = 60.0


class Demo:
    """Starts demos whose folder is a known one, and finds what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "TMPDIR": str(folder), "TERM": "xterm"}

    def start(self, *flags: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*BERTH, "demo", *flags],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def summary(self, *flags: str) -> dict[str, Any]:
        process = self.start("--format", "json", *flags)
        out, err = process.communicate(timeout=ENDS_WITHIN)
        assert (process.returncode, err) == (0, "")
        summary: dict[str, Any] = json.loads(out.splitlines()[-1])
        return summary

    def left_over(self) -> list[str]:
        """Return what a demo of this folder has left: its folders, and its processes."""
        found = [str(path) for path in self.folder.iterdir()]
        mine = f"BERTH_SIM_DIR={self.folder}/".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mine in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found


@pytest.fixture
def demo() -> Iterator[Demo]:
    folder = Path(tempfile.mkdtemp(prefix="bd-", dir="/tmp"))
    yield Demo(folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_cards_change_hands_and_nothing_collides_nor_is_cut(demo: Demo) -> None:
    """What Berth is for, in one line of JSON; and nothing is left of it afterwards."""
    summary = demo.summary("--seconds", "12")
    assert summary["handoffs"] >= 2, summary
    assert summary["granted"] > summary["handoffs"] - 2, summary
    assert summary["requests"] >= 4, summary
    zero = ("collisions", "requests_cut", "requests_failed", "refused")
    assert [summary[name] for name in zero] == [0, 0, 0, 0], summary
    assert summary["handoff_median_s"] > 0.0, summary
    assert demo.left_over() == []


def test_same_seed_without_berth_collides(demo: Demo) -> None:
    """If nothing collided without Berth, that nothing collides with it would say nothing."""
    summary = demo.summary("--seconds", "8", "--without")
    assert summary["collisions"] >= 1, summary
    assert summary["requests_failed"] >= 1, summary
    assert (summary["handoffs"], summary["granted"]) == (0, 0), summary
    assert demo.left_over() == []


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signal_ends_all_of_it(demo: Demo, number: signal.Signals, status: int) -> None:
    """Ctrl-C, a closed terminal: an engine left behind would keep its port for ever."""
    process = demo.start("--seconds", "50")
    wait_for(lambda: list(demo.folder.glob("*/claims/0/[0-9]*")), why="an engine at work")
    process.send_signal(number)
    signalled = time.monotonic()
    out, err = process.communicate(timeout=ENDS_WITHIN)
    assert time.monotonic() - signalled < 5.0  # 2 s on a machine with nothing else to do
    assert (process.returncode, err) == (status, "")
    assert "ended by you" in out
    assert "CUT" not in out  # what the end itself cuts is not Berth's doing
    assert demo.left_over() == []


def test_terminal_shows_a_board_and_is_left_as_it_was(demo: Demo) -> None:
    """A board that leaves the cursor hidden, or the terminal raw, spoils the shell."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(BERTH[0], [*BERTH, "demo", "--seconds", "50"], demo.environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(terminal)
    shown = b""
    give_up = time.monotonic() + ENDS_WITHIN
    while b"chat " not in shown and time.monotonic() < give_up:
        shown += os.read(terminal, 65536)
    for part in (b"simulated node, 2 cards", b"gpu1 24 GiB", b"ctrl-c ends it"):
        assert part in shown, shown
    os.write(terminal, b"\x03")
    with suppress(OSError):  # how a terminal says that its last program is gone
        while part := os.read(terminal, 65536):
            shown += part
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")
    assert b"ended by you" in shown.rpartition(b"\x1b[?25h")[2]
    assert termios.tcgetattr(terminal) == before
    os.close(terminal)
    assert demo.left_over() == []


def test_signal_before_berthd_is_up_ends_it_too(demo: Demo) -> None:
    """Whoever changes their mind at once is not to wait for a start."""
    process = demo.start("--seconds", "50")
    wait_for(lambda: list(demo.folder.glob("*/cards.toml")), why="the demo's folder")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=ENDS_WITHIN)
    assert (process.returncode, err) == (130, "")
    assert demo.left_over() == []


@pytest.mark.parametrize("flags", [[], ["--format", "json"]], ids=["text", "json"])
def test_closed_pipe_ends_it_quietly(demo: Demo, flags: list[str]) -> None:
    """`berth demo | head -1` is no reason for a traceback, nor to go on for a minute."""
    process = demo.start("--seconds", "50", *flags)
    wait_for(lambda: list(demo.folder.glob("*/berth.sock")), why="the demo's berthd")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=20.0) == 128 + signal.SIGPIPE
    assert process.stderr.read() == ""
    process.stderr.close()
    assert demo.left_over() == []


def test_length_comes_from_the_environment_too(demo: Demo) -> None:
    """`make demo` is told so in CI."""
    demo.environment["BERTH_DEMO_SECONDS"] = "nonsense"
    process = demo.start()
    _, err = process.communicate(timeout=ENDS_WITHIN)
    assert process.returncode == 64
    assert "nonsense" in err
