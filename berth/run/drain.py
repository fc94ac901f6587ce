"""How a command is brought to its boundary and stopped; the steps are those of `core.py`."""

import signal
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.run.messages import (
    BoundaryRead,
    Leave,
    Ordered,
    PostUnload,
    ReadBoundary,
    RunEffect,
    Say,
    Seen,
    SendWord,
    SignalGroup,
    SignalTree,
    UnloadAnswered,
)
from berth.run.state import (
    IDLE_APART,
    KILL,
    READ_AGAIN,
    TERM,
    UNREADABLE_FOR,
    WATCH_ANSWER_FOR,
    Drain,
    NoDrain,
    Over,
    Run,
    Running,
    Stopping,
    ToBoundary,
    Unloading,
)
from berth.units import Instant, after, show_duration, since
from berth.words import plain

_CONTINUE: Final = int(signal.SIGCONT)


class Steps(msgspec.Struct):
    """Collects what one event changes and does."""

    run: Run
    now: Instant
    effects: list[RunEffect] = msgspec.field(default_factory=list)

    def do(self, effect: RunEffect) -> None:
        """Do something."""
        self.effects.append(effect)

    def say(
        self,
        kind: str,
        text: str,
        *,
        refusal: bool = False,
        passing: bool = False,
        **facts: object,
    ) -> None:
        """Tell the person at the terminal."""
        self.do(Say(kind=kind, text=text, facts=facts, refusal=refusal, passing=passing))

    def leave(self, status: int) -> None:
        """End the wrapper."""
        self.run = replace(self.run, phase=Over())
        self.do(Leave(status=int(status)))

    def word(self, phase: Running, word: str, why: str = "", in_flight: int | None = None) -> None:
        """Tell berthd something about the lease, if there is one."""
        if phase.lease is not None:
            self.do(
                SendWord(
                    lease=phase.lease,
                    attempt=phase.attempt,
                    word=word,
                    why=why,
                    in_flight=in_flight,
                )
            )

    def set_drain(self, drain: Drain) -> None:
        """Go on to the next step of a drain."""
        if isinstance(self.run.phase, Running):
            self.run = replace(self.run, phase=replace(self.run.phase, drain=drain))


def read(steps: Steps) -> None:
    """Read the boundary, unless a read is under way."""
    phase = steps.run.phase
    if isinstance(phase, Running) and not phase.reading:
        steps.run = replace(steps.run, phase=replace(phase, reading=True))
        steps.do(ReadBoundary())


def on_order(steps: Steps, phase: Running, event: Ordered) -> None:
    """Take an order about a running command."""
    phase = replace(phase, attempt=event.attempt)
    steps.run = replace(steps.run, phase=phase)
    if event.order == "continue":
        _run_on(steps, phase)
        return
    steps.word(phase, "heard")
    if isinstance(phase.drain, NoDrain):
        steps.say("asked", _asked(steps, event), order=event.order, why=event.why)
    if isinstance(phase.drain, Stopping):
        return
    if event.at_once or not steps.run.options.boundary:
        stop(steps)
    elif isinstance(phase.drain, NoDrain):
        steps.set_drain(ToBoundary(order=event.order, asked=steps.now, read_at=None))
        read(steps)
    elif isinstance(phase.drain, ToBoundary):
        steps.set_drain(replace(phase.drain, order=event.order))


def _asked(steps: Steps, event: Ordered) -> str:
    """Return an order in words. Its why is for whom (`for train`), or what somebody has done."""
    why = plain(event.why)
    if why:
        why = f" {why}" if why.startswith("for ") else f" ({why})"
    if event.at_once or not steps.run.options.boundary:
        grace = show_duration(steps.run.options.grace)
        return f"asked to stop{why}; {grace} grace"
    return f"asked to finish{why}"


def _run_on(steps: Steps, phase: Running) -> None:
    """Nobody waits any more: run on, unless the boundary is passed already."""
    if isinstance(phase.drain, ToBoundary) and phase.drain.order == "drain":
        steps.set_drain(NoDrain(ready_at=steps.now, served=True))
        steps.say("kept", "nobody waits any more; running on")
        steps.word(phase, "heard")
    elif isinstance(phase.drain, NoDrain):
        steps.word(phase, "heard")
    else:
        steps.word(phase, "boundary")


def stop(steps: Steps) -> None:
    """SIGTERM to the group; a stopped one is continued, so that it can act on it (H3)."""
    phase = steps.run.phase
    if not isinstance(phase, Running):
        return
    steps.word(phase, "boundary")
    steps.run = replace(steps.run, signalled_by_berth=True)
    steps.set_drain(Stopping(kill_at=after(steps.now, steps.run.options.grace)))
    steps.do(SignalGroup(number=TERM))
    steps.do(SignalGroup(number=_CONTINUE))


def on_boundary(steps: Steps, event: BoundaryRead) -> None:
    """Take one read of the boundary."""
    phase = steps.run.phase
    if not isinstance(phase, Running):
        return
    phase = replace(phase, reading=False)
    steps.run = replace(steps.run, phase=phase)
    match phase.drain:
        case NoDrain():
            _on_work_read(steps, phase, phase.drain, event)
        case ToBoundary():
            _on_drain_read(steps, phase, phase.drain, event)
        case Unloading() | Stopping():
            pass


def _on_work_read(steps: Steps, phase: Running, drain: NoDrain, event: BoundaryRead) -> None:
    """Find out when the engine is ready, and whether it has answered a request (Q11)."""
    if event.seen in {Seen.UNREADABLE, Seen.TIMED_OUT}:
        steps.set_drain(replace(drain, read_at=after(steps.now, READ_AGAIN)))
        return
    ready_at = steps.now if drain.ready_at is None else drain.ready_at
    if drain.ready_at is None:
        steps.word(phase, "ready")
    if event.served and not drain.served:
        steps.word(phase, "served")
    watched_enough = event.served or since(ready_at, steps.now) >= WATCH_ANSWER_FOR
    read_at = None if watched_enough else after(steps.now, READ_AGAIN)
    steps.set_drain(
        NoDrain(ready_at=ready_at, served=drain.served or event.served, read_at=read_at)
    )


def _on_drain_read(steps: Steps, phase: Running, drain: ToBoundary, event: BoundaryRead) -> None:
    if event.in_flight and event.in_flight != drain.told_in_flight:
        # Heard again, with how much is still to be answered: what the waiter is waiting for.
        steps.word(phase, "heard", in_flight=event.in_flight)
        drain = replace(drain, told_in_flight=event.in_flight)
    match event.seen:
        case Seen.IDLE if drain.idle_once:
            _at_boundary(steps)
        case Seen.IDLE:
            read_at = after(steps.now, IDLE_APART)
            steps.set_drain(replace(drain, idle_once=True, read_at=read_at, unreadable_since=None))
        case Seen.BUSY | Seen.TIMED_OUT:
            read_at = after(steps.now, READ_AGAIN)
            steps.set_drain(replace(drain, idle_once=False, read_at=read_at, unreadable_since=None))
        case Seen.UNREADABLE:
            since_when = drain.unreadable_since or steps.now
            read_at = after(steps.now, READ_AGAIN)
            steps.set_drain(
                replace(drain, idle_once=False, read_at=read_at, unreadable_since=since_when)
            )
            if since(since_when, steps.now) >= UNREADABLE_FOR:
                _give_up_waiting(steps, f"its boundary cannot be read ({event.detail})")


def _at_boundary(steps: Steps) -> None:
    """Idle twice: unload or stop it now, before anything new comes in."""
    phase = steps.run.phase
    if not steps.run.options.unload:
        stop(steps)
        return
    if isinstance(phase, Running):
        steps.word(phase, "boundary")
    steps.set_drain(Unloading(stop_at=after(steps.now, steps.run.options.grace)))
    steps.do(PostUnload())


def on_unloaded(steps: Steps, event: UnloadAnswered) -> None:
    """The unload call came back. Its word counts for nothing: the command has to end."""
    phase = steps.run.phase
    if not isinstance(phase, Running) or not isinstance(phase.drain, Unloading):
        return
    if not event.ok:
        steps.say("unload", f"the unload call failed ({event.detail}); stopping it")
        stop(steps)
        return
    steps.set_drain(Unloading(stop_at=after(steps.now, steps.run.options.grace)))


def _give_up_waiting(steps: Steps, why: str) -> None:
    """The boundary does not come. Stop it, unless it is never to be cut (H2)."""
    if steps.run.options.fail_closed:
        return
    steps.say("cut", f"{why}; stopping it")
    stop(steps)


def on_passed(steps: Steps, phase: Running) -> None:
    """Look at the deadlines of a running command."""
    options = steps.run.options
    match phase.drain:
        case NoDrain(read_at=at) if at is not None and steps.now >= at:
            steps.set_drain(replace(phase.drain, read_at=None))
            read(steps)
        case ToBoundary(asked=asked) if since(asked, steps.now) >= options.drain_wait:
            if not options.fail_closed:
                waited = show_duration(options.drain_wait)
                _give_up_waiting(steps, f"still busy after {waited}")
            else:
                _read_if_due(steps, phase.drain)
        case ToBoundary():
            _read_if_due(steps, phase.drain)
        case Unloading(stop_at=at) if steps.now >= at:
            steps.say("unload", "it was unloaded and still runs; stopping it")
            stop(steps)
        case Stopping(kill_at=at) if at is not None and steps.now >= at:
            steps.set_drain(Stopping(kill_at=None))
            steps.do(SignalTree(number=KILL))
        case _:
            pass


def _read_if_due(steps: Steps, drain: ToBoundary) -> None:
    if drain.read_at is not None and steps.now >= drain.read_at:
        steps.set_drain(replace(drain, read_at=None))
        read(steps)
