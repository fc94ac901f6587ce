"""The wrapper's loop: waits on everything at once, feeds the core, and does what it decides."""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO, assert_never

import msgspec
import zmq

from berth.run.calls import Caller
from berth.run.child import Child, fork_child, read_errors
from berth.run.core import begin, decide, wake_at
from berth.run.link import Link
from berth.run.messages import (
    AskShown,
    ChildExited,
    ChildFailed,
    ChildRuns,
    DropChild,
    Leave,
    NoChildren,
    Passed,
    PostUnload,
    ReadBoundary,
    RunEffect,
    RunEvent,
    Say,
    SendAttach,
    SendPong,
    SendRelease,
    SendRequest,
    SendStarted,
    SendWithdraw,
    SendWord,
    SignalGroup,
    Signalled,
    SignalTree,
    StartChild,
)
from berth.run.scope import make_scope
from berth.run.state import Leftovers, Over, Run, Running, RunOptions
from berth.run.terminal import Terminal
from berth.run.tree import below_this_process, signal_tree
from berth.streams import say
from berth.units import Instant
from berth.words import first_cells

_PASSED_ON: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run needs: the command, the terms as the socket wants them, where berthd is."""

    command: Sequence[str]
    directory: str | None
    environment: Mapping[str, str]
    options: RunOptions
    terms: Mapping[str, Any]
    socket: Path
    slots_url: str | None = None
    unload_url: str | None = None
    engine_key: str | None = None


class Voice(msgspec.Struct, frozen=True, kw_only=True):
    """How a run speaks to the person at the terminal, and to a program (`report`, `--json`)."""

    quiet: bool = False
    report: TextIO | None = None


def run(plan: RunPlan, voice: Voice) -> int:
    """Run a command under a lease. Return the status to exit with."""
    child = fork_child(plan.command, plan.directory)  # before anything has a thread or a socket
    return _Wrapper(plan, voice, child).loop()


def _now() -> Instant:
    return Instant(time.monotonic())


class _Wrapper:
    """One run, at work."""

    def __init__(self, plan: RunPlan, voice: Voice, child: Child) -> None:
        self._plan = plan
        self._voice = voice
        self._passing = False
        self._child = child
        self._run: Run = begin(plan.options, _now())
        self._terminal = Terminal()
        self._signals, self._signals_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._catch_signals()
        self._link = Link(plan.socket)
        self._caller = Caller(plan.slots_url, plan.unload_url, plan.engine_key)
        self._status = 0

    def _catch_signals(self) -> None:
        """Have every signal turn up in a pipe, to be handled in order and in one place."""
        signal.set_wakeup_fd(self._signals_write, warn_on_full_buffer=False)
        for number in (*_PASSED_ON, signal.SIGCHLD):
            signal.signal(number, _noted_in_the_pipe)

    def loop(self) -> int:
        """Go on until the core says to leave."""
        poller = zmq.Poller()
        poller.register(self._signals, zmq.POLLIN)
        poller.register(self._caller.fd, zmq.POLLIN)
        self._link.register(poller)
        while not isinstance(self._run.phase, Over):
            wait = max(0.0, wake_at(self._run, _now()) - _now())
            ready = dict(poller.poll(int(wait * 1000) + 1))
            if self._signals in ready:
                self._on_signals()
            if self._caller.fd in ready:
                for outcome in self._caller.outcomes():
                    self._hear(outcome)
            for event in self._link.events(poller):
                self._hear(event)
            self._hear(Passed())
        self._link.close()
        self._terminal.take_back(self._child.pid)
        return self._status

    def _hear(self, event: RunEvent) -> None:
        self._run, effects = decide(self._run, event, _now())
        for effect in effects:
            self._do(effect)

    # --- what happens -----------------------------------------------------------------------

    def _on_signals(self) -> None:
        with suppress(BlockingIOError):
            for number in os.read(self._signals, 256):
                if number != signal.SIGCHLD:
                    self._hear(Signalled(number=number))
        self._reap()

    def _reap(self) -> None:
        """Collect every child that has ended or stopped: the command, and orphans of its tree."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                self._hear(NoChildren())
                return
            if pid == 0:
                return
            if pid == self._child.pid:
                self._on_child(status)

    def _on_child(self, status: int) -> None:
        if os.WIFSTOPPED(status):
            self._terminal.on_stopped(self._child.pid, os.WSTOPSIG(status))
            return
        self._terminal.take_back(self._child.pid)  # Ctrl-C is for the wrapper now
        if os.WIFSIGNALED(status):
            self._hear(ChildExited(signal=os.WTERMSIG(status)))
        elif os.WIFEXITED(status):
            self._hear(ChildExited(status=os.WEXITSTATUS(status)))

    # --- what is done -----------------------------------------------------------------------

    def _do(self, effect: RunEffect) -> None:
        match effect:
            case SendRequest():
                self._send("lease.request", {**self._plan.terms, "waited_s": effect.waited})
            case SendWithdraw():
                self._send("withdraw", {"request": effect.request})
            case SendStarted():
                pids = [self._child.pid]
                started = {"lease": effect.lease, "pids": pids, "scope": effect.scope}
                self._send("lease.started", started)
            case SendWord():
                self._send_word(effect)
            case SendRelease():
                self._send("lease.release", {"lease": effect.lease})
            case SendAttach():
                self._send_attach(effect)
            case SendPong():
                self._send("pong", {"lease": effect.lease})
            case AskShown():
                self._link.ask_shown(effect.lease)
            case StartChild():
                self._start(effect)
            case DropChild():
                self._child.drop()
            case ReadBoundary():
                self._caller.read()
            case PostUnload():
                self._caller.unload()
            case SignalGroup():
                with suppress(ProcessLookupError):
                    os.killpg(self._child.pid, effect.number)
            case SignalTree():
                signal_tree(effect.number)
            case Say():
                self._say(effect)
            case Leave():
                self._status = effect.status
            case _:
                assert_never(effect)

    def _send(self, op: str, fields: Mapping[str, Any]) -> None:
        self._link.send(op, fields)

    def _send_word(self, effect: SendWord) -> None:
        word = {
            "lease": effect.lease,
            "attempt": effect.attempt,
            "state": effect.word,
            "why": effect.why,
            **({} if effect.in_flight is None else {"in_flight": effect.in_flight}),
        }
        self._send("lease.answer", word)

    def _send_attach(self, effect: SendAttach) -> None:
        terms = {name: value for name, value in self._plan.terms.items() if name != "waited_s"}
        attach = {
            **terms,
            "cards": list(effect.cards) or terms["cards"],
            "lease": effect.lease,
            "state": effect.state,
            "attempt": effect.attempt,
            "pids": self._living(),
            "scope": effect.scope,
            "started_s": effect.ran_for,
        }
        self._send("attach", attach)

    def _living(self) -> list[int]:
        if isinstance(self._run.phase, Running):
            return [self._child.pid]
        if isinstance(self._run.phase, Leftovers):
            return [process.pid for process in below_this_process()]
        return []

    def _start(self, effect: StartChild) -> None:
        scope = None
        if effect.lease is not None:
            scope = make_scope(effect.lease, self._child.pid, os.environ)
        self._terminal.hand_over(self._child.pid)
        self._child.start({**self._plan.environment, **effect.environment})
        failed = read_errors(self._child.errors)
        if failed is None:
            self._hear(ChildRuns(scope=scope))
        else:
            status, why = failed
            self._hear(ChildFailed(status=status, why=why))

    def _say(self, effect: Say) -> None:
        report = self._voice.report
        if report is not None:
            line = {"event": effect.kind, "text": effect.text, **effect.facts}
            with suppress(OSError):
                report.write(json.dumps(line) + "\n")
                report.flush()
        if effect.refusal or not self._voice.quiet:
            say(self._shown(effect))

    def _shown(self, effect: Say) -> str:
        """Return a line as it is written: over the last one, where that was a passing one."""
        over = "\r\x1b[K" if self._passing else ""
        self._passing = effect.passing and self._plan.options.on_terminal
        if not self._passing:
            return f"{over}berth: {effect.text}\n"
        return over + first_cells(f"berth: {effect.text}", _width() - 1)


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


_USUAL_WIDTH: Final = 80


def _noted_in_the_pipe(number: int, frame: FrameType | None) -> None:
    """Do nothing: the signal's number is in the wake-up pipe already."""
    del number, frame
