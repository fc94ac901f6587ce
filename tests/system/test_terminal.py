"""`berth run` on a real terminal, under a real shell with job control."""

import os
import pty
import re
import select
import signal
import time
from collections.abc import Iterator

import pytest

from tests.system.node import Node, wait_for

pytestmark = pytest.mark.system

WITHIN = 20.0
CTRL_C, CTRL_Z = b"\x03", b"\x1a"


class Shell:
    """An interactive bash on a pseudo-terminal."""

    def __init__(self, node: Node) -> None:
        self.seen = ""
        environment = {**node.environment, "PS1": "$ ", "TERM": "dumb"}
        self.pid, self._tty = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)

    def send(self, keys: bytes) -> None:
        os.write(self._tty, keys)

    def line(self, command: str) -> None:
        """Type a command line."""
        self.send(command.encode() + b"\n")

    def expect(self, pattern: str, within: float = WITHIN) -> str:
        """Read until the pattern has been seen; return what stood before and with it."""
        give_up = time.monotonic() + within
        while (found := re.search(pattern, self.seen)) is None:
            left = give_up - time.monotonic()
            ready, _, _ = select.select([self._tty], [], [], max(0.0, left))
            assert ready, f"{pattern!r} not seen in {self.seen!r}"
            self.seen += os.read(self._tty, 65536).decode(errors="replace")
        read, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return read

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._tty)


@pytest.fixture
def shell(node: Node) -> Iterator[Shell]:
    started = Shell(node)
    started.expect(r"\$ ")
    yield started
    started.close()


BERTH_RUN = "$PYTHON -m berth run"


@pytest.fixture(autouse=True)
def _python(node: Node) -> None:
    import sys  # noqa: PLC0415

    node.environment["PYTHON"] = sys.executable


def test_command_has_the_terminal_and_ctrl_c_ends_it(node: Node, shell: Shell) -> None:
    """R1: the command's group is the foreground group: Ctrl-C reaches it, not the wrapper."""
    shell.line(f"{BERTH_RUN} --as front -- sh -c 'echo up; exec sleep 100'; echo rc=$?")
    shell.expect(r"\nup")
    node.wait_state("front", "running")
    shell.send(CTRL_C)
    shell.expect(r"rc=130")
    node.wait_gone("front")


def test_command_reads_from_the_terminal(node: Node, shell: Shell) -> None:
    """R1: a program that asks gets its answer."""
    shell.line(f"{BERTH_RUN} -- sh -c 'read word; echo got=$word'")
    wait_for(lambda: node.status()["leases"])
    shell.line("harbor")
    shell.expect(r"got=harbor")


def test_ctrl_z_stops_command_and_wrapper_and_fg_continues_both(node: Node, shell: Shell) -> None:
    """R1: the whole job stops, as under a shell, and goes on where it stopped."""
    shell.line(f"{BERTH_RUN} --as job -- sh -c 'echo up; while read x; do echo ok=$x; done'")
    shell.expect(r"\nup")
    shell.send(CTRL_Z)
    shell.expect(r"Stopped")
    shell.line("echo shell=here")
    shell.expect(r"shell=here\r\n")
    shell.line("fg")
    shell.line("again")
    shell.expect(r"ok=again")
    shell.send(CTRL_C)
    shell.expect(r"\$ ")
    node.wait_gone("job")


def test_run_in_the_background_leaves_the_terminal_to_the_shell(node: Node, shell: Shell) -> None:
    """`berth run … &`: when it ends, the shell must not find its terminal taken, and exit."""
    shell.line(f"{BERTH_RUN} --as back -- sh -c 'echo up; exec sleep 0.2' &")
    shell.expect(r"\$ up")
    node.wait_gone("back")
    shell.line("wait; echo shell=here")
    shell.expect(r"shell=here\r\n")
    shell.line("echo again=here")
    shell.expect(r"again=here\r\n")


def test_job_that_was_moved_to_the_background_leaves_the_terminal_to_the_shell(
    node: Node, shell: Shell
) -> None:
    """Ctrl-Z, then `bg`: it had the terminal once, and has it no more."""
    shell.line(f"{BERTH_RUN} --as job -- sh -c 'echo up; exec sleep 1'")
    shell.expect(r"\nup")
    shell.send(CTRL_Z)
    shell.expect(r"Stopped")
    shell.line("bg; wait; echo shell=here")
    shell.expect(r"shell=here\r\n")
    shell.line("echo again=here")
    shell.expect(r"again=here\r\n")


def test_ctrl_c_ends_what_a_command_left_behind(node: Node, shell: Shell) -> None:
    """R9: its engine in the background ignores Ctrl-C, and the prompt must come back."""
    claim = " ".join(node.claiming(500, "sleep", "100"))
    shell.line(f"{BERTH_RUN} --as left -- sh -c '{claim} & sleep 0.5'; echo rc=$?")
    shell.expect(r"what it left behind holds the card")
    shell.send(CTRL_C)
    shell.expect(r"rc=0")
    node.wait_gone("left")


def test_ctrl_c_while_queued_withdraws(node: Node, shell: Shell) -> None:
    """R1: exit 130, and the request is gone."""
    node.run("--as", "holder", "--", "sleep", "100")
    node.wait_state("holder", "running")
    shell.line(f"{BERTH_RUN} --as late -- true; echo rc=$?")
    wait_for(lambda: node.waiter("late"))
    shell.send(CTRL_C)
    shell.expect(r"rc=130")
    wait_for(lambda: node.waiter("late") is None)


def test_reader_of_a_pipe_keeps_the_terminal(node: Node, shell: Shell) -> None:
    """R1: `berth run … | less`: the command must not take the terminal from its reader."""
    shell.line(
        f"{BERTH_RUN} -- sh -c 'echo data; sleep 2' | sh -c 'cat; read x </dev/tty; echo $x'"
    )
    shell.expect(r"data")
    shell.line("typed")
    shell.expect(r"typed\r\ntyped")
