"""Theory of operation of a wrapper (`berth run`).

The wrapper stands between berthd and one command. Its phases:

    Asking     the request is out; the child that will execute the command waits on a pipe
    Running    the command runs, and `drain` says how far it is on its way out, if it is:
                 NoDrain ─ order ─▶ ToBoundary ─ idle twice ─▶ Unloading ─▶ Stopping
    Leftovers  the command has ended, but processes of its tree are still there (R9)
    Leaving    the lease was given back; berthd has to hear it
    Over

Ending a drain, in this order (H1 to H3):

 1. `heard` is answered at once.
 2. Without a boundary, or when told `now`, the command is stopped. Else its boundary is read until
    it was idle twice, 0.25 s apart. A read that times out is busy. Unreadable for 10 s, or longer
    than --drain-wait: it is stopped, unless --fail-closed, which never cuts.
 3. Straight after the second idle read: `boundary` is told, the unload URL is called if there is
    one, and the command has its grace to end by itself.
 4. SIGTERM to its group. No boundary is read after a signal. When the grace is over, SIGKILL to
    everything below the wrapper.
 5. `released` is told when nothing is left.

`continue` ends a drain that has not passed its boundary. Whatever is lost on the way to berthd is
made good by `attach` when the connection is back: it carries the state and the latest order's
number.

berthd away (R4): a waiter that was heard goes on waiting, for as long as it wanted to wait, and
never turns unprotected. Before it was heard, the command runs unprotected after 10 s of trying (at
once when no berthd ran since boot), or is refused with --fail-closed. A running command is never
touched because berthd is away.
"""

from typing import Final, TypeAlias, assert_never

from msgspec.structs import replace

from berth.errors import Exit
from berth.run.asking import on_away_too_long, on_given, on_queued, on_refused, on_waited_in_vain
from berth.run.drain import Steps, on_boundary, on_order, on_passed, on_unloaded
from berth.run.ending import (
    SIGNAL_BASE,
    end,
    end_leftovers,
    on_exited,
    on_leftovers_passed,
    on_shown,
)
from berth.run.messages import (
    Attached,
    BoundaryRead,
    ChildExited,
    ChildFailed,
    ChildRuns,
    Connected,
    Disconnected,
    DropChild,
    LeaseGiven,
    LeaseGone,
    LeaseShown,
    NoChildren,
    Ordered,
    Passed,
    Queued,
    Refused,
    ReleaseHeard,
    RunEffect,
    RunEvent,
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
    UnloadAnswered,
)
from berth.run.state import (
    Asking,
    Drain,
    Leaving,
    Leftovers,
    NoDrain,
    Over,
    Run,
    Running,
    RunOptions,
    Stopping,
    ToBoundary,
    Unloading,
)
from berth.units import Instant, Seconds, after, since
from berth.wire import TRY_FOR

_INTERRUPT: Final = 2
_ENDS: Final = frozenset({1, 2, 3, 15})
"""The signals by which a person, a terminal or a service manager ends a program."""
_LOOK_AT_LEAST_EVERY: Final = Seconds(1.0)

_Decision: TypeAlias = tuple[Run, tuple[RunEffect, ...]]


def begin(options: RunOptions, now: Instant) -> Run:
    """Return a run that has not reached berthd yet."""
    return Run(options=options, phase=Asking(since=now), away_since=now)


def decide(run: Run, event: RunEvent, now: Instant) -> _Decision:
    """Return the run after `event`, and what to do."""
    steps = Steps(run, now)
    _take(steps, event)
    return steps.run, tuple(steps.effects)


def _take(steps: Steps, event: RunEvent) -> None:
    match event:
        case Connected():
            _on_connected(steps)
        case Disconnected():
            if steps.run.away_since is None:
                steps.run = replace(steps.run, away_since=steps.now)
        case Queued():
            on_queued(steps, event)
        case LeaseGiven():
            on_given(steps, event)
        case Refused():
            on_refused(steps, event)
        case Attached():
            _on_attached(steps, event)
        case LeaseGone():
            _attach_anew(steps)
        case ReleaseHeard():
            if isinstance(steps.run.phase, Leaving):
                steps.leave(steps.run.phase.status)
        case LeaseShown():
            on_shown(steps, event)
        case Ordered():
            _on_ordered(steps, event)
        case ChildRuns():
            _on_runs(steps, event)
        case ChildFailed():
            steps.say("failed", event.why, refusal=True)
            end(steps, event.status)
        case ChildExited():
            on_exited(steps, event)
        case NoChildren():
            if isinstance(steps.run.phase, Leftovers):
                end(steps, steps.run.phase.status)
        case BoundaryRead():
            on_boundary(steps, event)
        case UnloadAnswered():
            on_unloaded(steps, event)
        case Signalled():
            _on_signal(steps, event.number)
        case Passed():
            _on_passed(steps)
        case _:
            assert_never(event)


# --- berthd comes and goes ------------------------------------------------------------------------


def _on_connected(steps: Steps) -> None:
    steps.run = replace(steps.run, away_since=None)
    match steps.run.phase:
        case Asking(since=asked):
            steps.do(SendRequest(waited=since(asked, steps.now)))
        case Running() | Leftovers():
            attach(steps)
        case Leaving(lease=lease):
            steps.do(SendRelease(lease=lease))
        case Over():
            pass


def attach(steps: Steps) -> None:
    """Tell berthd what this run holds, and how far it is."""
    phase = steps.run.phase
    if isinstance(phase, Running):
        draining = not isinstance(phase.drain, NoDrain)
        steps.do(
            SendAttach(
                lease=phase.lease,
                cards=steps.run.cards,
                state="draining" if draining else _work_state(steps.run, phase),
                attempt=phase.attempt,
                scope=phase.scope,
                ran_for=since(phase.started, steps.now),
            )
        )
    elif isinstance(phase, Leftovers):
        steps.do(
            SendAttach(
                lease=phase.lease,
                cards=steps.run.cards,
                state="draining" if phase.killed or phase.kill_at is not None else "running",
                attempt=phase.attempt,
                scope=phase.scope,
                ran_for=since(phase.ended, steps.now),
            )
        )


def _attach_anew(steps: Steps) -> None:
    """Ask for another lease in place of one that is gone: what the command uses must be counted."""
    phase = steps.run.phase
    if isinstance(phase, Running | Leftovers) and phase.lease is not None:
        steps.run = replace(steps.run, phase=replace(phase, lease=None))
        attach(steps)


def _work_state(run: Run, phase: Running) -> str:
    drain = phase.drain
    loading = run.options.boundary and isinstance(drain, NoDrain) and drain.ready_at is None
    return "starting" if loading else "running"


def _on_attached(steps: Steps, event: Attached) -> None:
    phase = steps.run.phase
    if not isinstance(phase, Running | Leftovers):
        return
    if phase.lease is None:
        steps.say("attached", f"attached as {event.lease}", lease=event.lease)
    steps.run = replace(steps.run, phase=replace(phase, lease=event.lease))


def _on_runs(steps: Steps, event: ChildRuns) -> None:
    phase = steps.run.phase
    if not isinstance(phase, Running):
        return
    drain = phase.drain
    if steps.run.options.boundary and isinstance(drain, NoDrain):
        drain = replace(drain, read_at=steps.now)
    running = replace(phase, executed=True, scope=event.scope, drain=drain)
    steps.run = replace(steps.run, phase=running)
    if phase.lease is not None:
        steps.do(SendStarted(lease=phase.lease, scope=event.scope))


# --- orders, signals, time ------------------------------------------------------------------------


def _on_ordered(steps: Steps, event: Ordered) -> None:
    phase = steps.run.phase
    if event.order == "ping":
        if isinstance(phase, Running | Leftovers) and phase.lease is not None:
            steps.do(SendPong(lease=phase.lease))
    elif event.order == "attach":
        attach(steps)
    elif isinstance(phase, Running):
        on_order(steps, phase, event)
    elif isinstance(phase, Leftovers) and phase.lease is not None:
        steps.run = replace(steps.run, phase=replace(phase, attempt=event.attempt))
        word = "boundary" if event.order == "continue" else "heard"
        steps.do(SendWord(lease=phase.lease, attempt=event.attempt, word=word))
        if event.order != "continue":
            end_leftovers(steps)


def _on_signal(steps: Steps, number: int) -> None:
    match steps.run.phase:
        case Asking(request=request):
            if request:
                steps.do(SendWithdraw(request=request))
            steps.say("withdrawn", "withdrawn")
            steps.do(DropChild())
            steps.leave(Exit.WITHDRAWN if number == _INTERRUPT else SIGNAL_BASE + number)
        case Running():
            steps.do(SignalGroup(number=number))
        case Leftovers():
            steps.do(SignalTree(number=number))
            if number in _ENDS:  # a shell has what it put behind itself ignore a Ctrl-C
                end_leftovers(steps)
        case Leaving() | Over():
            pass


def _on_passed(steps: Steps) -> None:
    phase = steps.run.phase
    match phase:
        case Asking():
            away = steps.run.away_since
            allowed = _try_for(steps.run.options)
            if away is not None and not phase.request and since(away, steps.now) >= allowed:
                on_away_too_long(steps)
            elif away is not None and steps.now >= after(phase.since, steps.run.options.wait):
                on_waited_in_vain(steps)
        case Running():
            on_passed(steps, phase)
        case Leftovers():
            on_leftovers_passed(steps, phase)
        case Leaving():
            if steps.now >= phase.leave_by:
                steps.leave(phase.status)
        case Over():
            pass


def _try_for(options: RunOptions) -> Seconds:
    """Return how long a berthd that was never heard is tried (R4)."""
    return TRY_FOR if options.berthd_seen_this_boot else Seconds(0.0)


def wake_at(run: Run, now: Instant) -> Instant:
    """Return when the run must look at its deadlines next."""
    latest = after(now, _LOOK_AT_LEAST_EVERY)
    deadlines: list[Instant]
    match run.phase:
        case Asking(request=""):
            allowed = _try_for(run.options)
            deadlines = [] if run.away_since is None else [after(run.away_since, allowed)]
        case Asking(since=asked):
            deadlines = [] if run.away_since is None else [after(asked, run.options.wait)]
        case Running(drain=drain):
            deadlines = [at for at in _drain_deadlines(run, drain) if at is not None]
        case Leftovers(look_at=look_at, kill_at=kill_at):
            deadlines = [look_at if kill_at is None else kill_at]
        case Leaving(leave_by=leave_by):
            deadlines = [leave_by]
        case Over():
            deadlines = []
    return min([latest, *deadlines])


def _drain_deadlines(run: Run, drain: Drain) -> tuple[Instant | None, ...]:
    match drain:
        case NoDrain(read_at=at):
            return (at,)
        case ToBoundary(asked=asked, read_at=at):
            # One that is never cut has no end to its wait.
            never_cut = run.options.fail_closed
            return (at, None if never_cut else after(asked, run.options.drain_wait))
        case Unloading(stop_at=at):
            return (at,)
        case Stopping(kill_at=at):
            return (at,)
