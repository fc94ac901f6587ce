"""`berth demo` as people and scripts run it: real processes, and nothing left of them."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
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
        self.environment = {**os.environ, "TMPDIR": str(folder)}

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
