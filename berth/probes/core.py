"""Theory of operation of a probe.

A probe owns the worker process that looks at one card, and the pace. Its states:

    idle       no worker; one is started at `start_at`
    looking    a worker runs; it must be heard again by `hear_by`, or it is hung
    ending     a worker was killed and has not ended; at `forget_at` it is left behind

A worker that is silent too long is killed and replaced, and its card is unmeasured meanwhile; a
call into a driver has 4 s. One that ends by itself is replaced too, after a pause that doubles from
1 s to 30 s while workers do not get as far as a look. What a worker that was given up says late is
ignored: it has another number.

A call that hangs in the kernel outlives SIGKILL, so no other worker is started until the killed one
has ended: each would hang like it, and there would be more of them every minute. After an hour one
more is tried beside it.

A worker whose library no longer matches the driver is replaced as well, for only a new process can
load the new library. Where that does not help (it needs a reboot) the pauses grow likewise.
"""

from typing import Final, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from berth.actors.card.messages import CardRead, CardUnread, SetPace, XidThrown
from berth.probes.messages import (
    KillWorker,
    PaceWorker,
    ProbeEffect,
    ProbeInbox,
    ProbeTick,
    StartWorker,
    WorkerEnded,
    WorkerSaw,
)
from berth.probes.xids import Xids, hear
from berth.readings import Look, Reading, Unknown, Unmeasured
from berth.units import Instant, Seconds, after

SLOW: Final = Seconds(2.0)
FAST: Final = Seconds(0.04)
CALL_WITHIN: Final = Seconds(4.0)
"""How long one look may take (B1)."""
START_WITHIN: Final = Seconds(15.0)
"""How long a worker may take from its start to its first look; a cold driver takes seconds."""
FORGET_AFTER: Final = Seconds(3600.0)
"""How long a worker that SIGKILL does not end is waited for."""
HANGS: Final = (
    "a call into the driver hangs, so it was given up and is tried again; if it stays so, look at"
    " dmesg and reboot"
)
FIRST_PAUSE: Final = Seconds(1.0)
LONGEST_PAUSE: Final = Seconds(30.0)


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """No worker runs."""

    start_at: Instant


class Looking(msgspec.Struct, frozen=True, kw_only=True):
    """A worker runs."""

    hear_by: Instant


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A worker was killed and has not ended yet. The next one is started at `start_at`, if it has.

    Still there at `forget_at`, it is left behind.
    """

    start_at: Instant
    forget_at: Instant


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The watch over one card. `worker` numbers the workers so far, `pause` is the next pause.

    `wake`: a sleeping card is woken to be read; `asleep`: it slept at the last look.
    """

    pace: Seconds = SLOW
    wake: bool = False
    asleep: bool = False
    worker: int = 0
    pause: Seconds = FIRST_PAUSE
    phase: Idle | Looking | Ending = Idle(start_at=Instant(0.0))
    xids: Xids = msgspec.field(default_factory=dict)


_Decision: TypeAlias = tuple[Probe, tuple[ProbeEffect, ...]]


def decide(probe: Probe, event: ProbeInbox, now: Instant) -> _Decision:
    """Return the probe after `event`, and what to do."""
    match event:
        case WorkerSaw():
            return _saw(probe, event, now)
        case WorkerEnded():
            return _ended(probe, event, now)
        case SetPace():
            return _pace(probe, event, now)
        case ProbeTick():
            return _tick(probe, now)
        case _:
            assert_never(event)


def _saw(probe: Probe, event: WorkerSaw, now: Instant) -> _Decision:
    if event.worker != probe.worker or not isinstance(probe.phase, Looking):
        return probe, ()
    xids, thrown = hear(probe.xids, event.xids, now)
    asleep = isinstance(event.look, Unmeasured) and event.look.why is Unknown.ASLEEP
    probe = replace(probe, xids=xids, asleep=asleep)
    seen = _passed_on(event.look)
    if event.stale:
        return _give_up(probe, now), (*thrown, seen, KillWorker(worker=event.worker))
    hear_by = after(now, Seconds(probe.pace + CALL_WITHIN))
    return replace(probe, phase=Looking(hear_by=hear_by), pause=FIRST_PAUSE), (*thrown, seen)


def _passed_on(look: Look) -> CardRead | CardUnread:
    return CardRead(reading=look) if isinstance(look, Reading) else CardUnread(why=look)


def _ended(probe: Probe, event: WorkerEnded, now: Instant) -> _Decision:
    if event.worker != probe.worker:
        return probe, ()
    match probe.phase:
        case Idle():
            return probe, ()
        case Ending(start_at=start_at):
            return replace(probe, phase=Idle(start_at=start_at)), ()
        case Looking():
            why = Unmeasured(Unknown.FAILED, f"its driver worker ended ({event.why})")
            start_at = after(now, probe.pause)
            return _longer(replace(probe, phase=Idle(start_at=start_at))), (CardUnread(why=why),)


def _give_up(probe: Probe, now: Instant) -> Probe:
    """Return the probe once its worker is killed."""
    ending = Ending(start_at=after(now, probe.pause), forget_at=after(now, FORGET_AFTER))
    return _longer(replace(probe, phase=ending))


def _longer(probe: Probe) -> Probe:
    return replace(probe, pause=Seconds(min(probe.pause * 2, LONGEST_PAUSE)))


def _pace(probe: Probe, event: SetPace, now: Instant) -> _Decision:
    pace = FAST if event.fast else SLOW
    if (pace, event.wake) == (probe.pace, probe.wake):
        return probe, ()
    wakes = event.wake and not probe.wake and probe.asleep
    probe = replace(probe, pace=pace, wake=event.wake)
    if not isinstance(probe.phase, Looking):
        return probe, ()
    within = START_WITHIN if wakes else Seconds(pace + CALL_WITHIN)
    hear_by = max(probe.phase.hear_by, after(now, within))
    probe = replace(probe, phase=Looking(hear_by=hear_by))
    return probe, (PaceWorker(worker=probe.worker, pace=pace, wake=probe.wake),)


def _tick(probe: Probe, now: Instant) -> _Decision:
    xids, thrown = hear(probe.xids, (), now)
    if xids != probe.xids:
        probe = replace(probe, xids=xids)
    match probe.phase:
        case Idle(start_at=start_at) if now >= start_at:
            return _start(probe, now, thrown)
        case Ending(forget_at=forget_at) if now >= forget_at:
            return _start(probe, now, thrown)
        case Looking(hear_by=hear_by) if now >= hear_by:
            why = Unmeasured(Unknown.HUNG, HANGS)
            given_up = KillWorker(worker=probe.worker)
            return _give_up(probe, now), (*thrown, given_up, CardUnread(why=why))
        case _:
            return probe, thrown


def _start(probe: Probe, now: Instant, thrown: tuple[XidThrown, ...]) -> _Decision:
    looking = Looking(hear_by=after(now, START_WITHIN))
    probe = replace(probe, worker=probe.worker + 1, phase=looking)
    start = StartWorker(worker=probe.worker, pace=probe.pace, wake=probe.wake)
    return probe, (*thrown, start)
