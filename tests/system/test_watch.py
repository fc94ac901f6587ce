"""`berth status --watch` on a real terminal: live, resized, left, and gone without a trace."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.node import BERTH, Node, wait_for

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal with a command on it. `screen` is what stands on it, drawn over and over."""

    def __init__(self, node: Node, *arguments: str, size: tuple[int, int] = (24, 80)) -> None:
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [*BERTH, *arguments],
            env={**node.environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        self.written = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> str:
        """Return all that was written so far."""
        while select.select([self.master], [], [], 0)[0]:
            try:
                self.written += os.read(self.master, 65536).decode(errors="replace")
            except OSError:
                break
        return self.written

    @property
    def screen(self) -> list[str]:
        """Return the rows of the last frame."""
        frame = self.read().rpartition("\x1b[H")[2]
        return [_ESCAPES.sub("", row) for row in frame.split("\r\n")]

    def shows(self, text: str) -> bool:
        return any(text in row for row in self.screen)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=10.0)
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def watching(node: Node) -> Iterator[Terminal]:
    """Return a terminal on which a node with one engine is watched."""
    node.run("--as", "chat", "--needs-mib", "4000", "--", "sleep", "100")
    node.wait_state("chat", "running")
    terminal = Terminal(node, "status", "--watch")
    wait_for(lambda: terminal.shows("chat"))
    yield terminal
    terminal.close()


def left_clean(terminal: Terminal) -> bool:
    """Tell whether screen, cursor and terminal are as they were before."""
    modes = termios.tcgetattr(terminal.slave)
    written = terminal.read()
    return (
        modes == terminal.before
        and written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
        and written.endswith("\x1b[?1049l")
    )


def test_what_happens_is_shown_and_q_leaves(node: Node, watching: Terminal) -> None:
    """Driven by events: a new waiter is there within a second or two, and its event at the foot."""
    node.run("--as", "late", "--needs-mib", "22000", "--", "sleep", "100")
    wait_for(lambda: watching.shows("chat (a) is a job and runs to its end"))
    wait_for(lambda: watching.shows("lease.queued"))
    os.write(watching.master, b"q")
    assert watching.process.wait(timeout=10.0) == 0
    assert left_clean(watching)


def test_resized_while_watched(watching: Terminal) -> None:
    """The layout is chosen anew for each size; no line is wider than the window."""
    watching.resize(30, 40)
    wait_for(lambda: max(map(len, watching.screen)) <= 40 and watching.shows("chat"))
    watching.resize(8, 60)
    wait_for(lambda: len(watching.screen) == 8)
    watching.resize(40, 120)
    wait_for(lambda: len(watching.screen) == 40)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + 15), (signal.SIGHUP, 128 + 1)]
)
def test_screen_and_cursor_come_back_on_every_signal(
    watching: Terminal, number: signal.Signals, status: int
) -> None:
    """A killed watch that leaves a terminal without cursor and echo is remembered for long."""
    watching.process.send_signal(number)
    assert watching.process.wait(timeout=10.0) == status
    assert left_clean(watching)


def test_stopped_and_continued_it_gives_the_screen_back_and_takes_it_again(
    watching: Terminal,
) -> None:
    """Ctrl-Z: the shell has its screen meanwhile."""
    watching.process.send_signal(signal.SIGTSTP)
    wait_for(lambda: watching.read().endswith("\x1b[?1049l"))
    watching.process.send_signal(signal.SIGCONT)
    wait_for(lambda: watching.read().rindex("\x1b[?1049h") > watching.read().rindex("\x1b[?1049l"))
    wait_for(lambda: watching.shows("chat"))


def test_berthd_that_goes_away_is_told_and_found_again(node: Node, watching: Terminal) -> None:
    """The last screen stays, under since when nobody answers."""
    node.kill()
    wait_for(lambda: watching.shows("berthd is gone since "))
    assert watching.shows("chat")
    node.start()
    wait_for(lambda: not watching.shows("berthd is gone since ") and watching.shows("chat"))


def test_paused_stays_as_it_is(node: Node, watching: Terminal) -> None:
    """p: a screen that is read must not change under the eyes."""
    os.write(watching.master, b"p")
    wait_for(lambda: watching.shows("paused"))
    node.run("--as", "newcomer", "--needs-mib", "1000", "--", "sleep", "100")
    node.wait_state("newcomer", "running")
    assert not watching.shows("newcomer"), watching.screen
    os.write(watching.master, b"p")
    wait_for(lambda: watching.shows("newcomer"))


def test_watching_costs_next_to_nothing(node: Node, watching: Terminal) -> None:
    """At most 1 % of a core while nothing happens; measured more closely by the benchmark."""
    del node

    def cpu() -> float:
        stat = Path(f"/proc/{watching.process.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    begin, used = time.monotonic(), cpu()
    wait_for(lambda: time.monotonic() - begin > 5.0, within=10.0)
    assert cpu() - used <= 0.03 * (time.monotonic() - begin)


def test_without_a_terminal_it_points_elsewhere(node: Node) -> None:
    """A pipe cannot be watched: exit 64, and what to do instead."""
    refused = node.berth("status", "--watch")
    assert refused.returncode == 64
    assert "berth events --follow" in refused.stderr
