"""How a run ends: the command has exited, its leftovers go, the lease is given back (R6, R9)."""

from typing import Final

from msgspec.structs import replace

from berth.errors import Exit
from berth.run.drain import Steps
from berth.run.messages import (
    AskShown,
    ChildExited,
    LeaseShown,
    SendRelease,
    SendWithdraw,
    SendWord,
    SignalTree,
)
from berth.run.state import (
    DIE_WITHIN,
    KILL,
    LEAVE_WITHIN,
    LOOK_AT_LEFTOVERS,
    SETTLE_WITHIN,
    TERM,
    Asking,
    Leaving,
    Leftovers,
    NoDrain,
    Run,
    Running,
)
from berth.units import after, show_duration, since
from berth.words import plain

SIGNAL_BASE: Final = 128
"""What a shell adds to the number of the signal that ended a command."""


def on_exited(steps: Steps, event: ChildExited) -> None:
    """The command has ended: see to what it left behind."""
    phase = steps.run.phase
    status = _status(steps.run, event)
    if isinstance(phase, Asking):
        # Somebody killed the child that waited: there is nothing left to run.
        if phase.request:
            steps.do(SendWithdraw(request=phase.request))
        steps.leave(status)
        return
    if not isinstance(phase, Running):
        return
    if steps.run.signalled_by_berth:
        ran = show_duration(since(phase.started, steps.now))
        steps.say("stopped", f"{plain(steps.run.options.name)} stopped after {ran}")
    ending = status != 0 or not isinstance(phase.drain, NoDrain)
    steps.run = replace(
        steps.run,
        phase=Leftovers(
            lease=phase.lease,
            status=status,
            ended=steps.now,
            attempt=phase.attempt,
            scope=phase.scope,
            look_at=steps.now,
            settled=after(phase.started, SETTLE_WITHIN),
        ),
    )
    if ending:
        end_leftovers(steps)


def _status(run: Run, event: ChildExited) -> int:
    """Return what the wrapper exits with (R6)."""
    if run.signalled_by_berth:
        return Exit.STOPPED_BY_BERTH
    if event.signal is not None:
        return SIGNAL_BASE + event.signal
    return event.status or 0


def end_leftovers(steps: Steps) -> None:
    """What a failed or ordered-away command left is stopped like the command itself (H3)."""
    phase = steps.run.phase
    if isinstance(phase, Leftovers) and phase.kill_at is None and not phase.killed:
        kill_at = after(steps.now, steps.run.options.grace)
        steps.run = replace(steps.run, phase=replace(phase, kill_at=kill_at))
        steps.do(SignalTree(number=TERM))


def on_shown(steps: Steps, event: LeaseShown) -> None:
    """What is left of a command that ended well keeps its lease while it holds card memory.

    It keeps it as long, too, as it may be about to take some.
    """
    phase = steps.run.phase
    if not isinstance(phase, Leftovers) or phase.kill_at is not None:
        return
    if event.used_mib and not phase.told:
        name = plain(steps.run.options.name)
        text = f"{name} has ended; what it left behind holds the card. Ctrl-C or berth stop ends it"
        steps.say("leftovers", text, mib=event.used_mib)
        steps.run = replace(steps.run, phase=replace(phase, told=True))
    seen_since = event.reading_age < since(phase.ended, steps.now)
    if event.used_mib == 0 and seen_since and steps.now >= phase.settled:
        end(steps, phase.status)


def end(steps: Steps, status: int) -> None:
    """Nothing is left to hold the card for: give it back, and leave once berthd has heard."""
    phase = steps.run.phase
    lease = phase.lease if isinstance(phase, Running | Leftovers) else None
    if lease is None or steps.run.away_since is not None:
        steps.leave(status)
        return
    attempt = phase.attempt if isinstance(phase, Running | Leftovers) else 0
    leave_by = after(steps.now, LEAVE_WITHIN)
    steps.run = replace(steps.run, phase=Leaving(lease=lease, status=status, leave_by=leave_by))
    if attempt:
        steps.do(SendWord(lease=lease, attempt=attempt, word="released"))
    steps.do(SendRelease(lease=lease))


def on_leftovers_passed(steps: Steps, phase: Leftovers) -> None:
    """Look at the deadlines of leftovers."""
    if phase.kill_at is not None and steps.now >= phase.kill_at:
        gone_by = after(steps.now, DIE_WITHIN)
        doomed = replace(phase, kill_at=None, killed=True, look_at=gone_by)
        steps.run = replace(steps.run, phase=doomed)
        steps.do(SignalTree(number=KILL))
    elif phase.killed and steps.now >= phase.look_at:
        end(steps, phase.status)
    elif phase.kill_at is None and not phase.killed and steps.now >= phase.look_at:
        later = after(steps.now, LOOK_AT_LEFTOVERS)
        steps.run = replace(steps.run, phase=replace(phase, look_at=later))
        if phase.lease is None:
            steps.leave(phase.status)
        elif steps.run.away_since is None:
            steps.do(AskShown(lease=phase.lease))
