"""Theory of operation of a probe.

A probe owns the worker process that looks at one card, and the pace. Its states:

    idle       no worker; one is started at `start_at`
    looking    a worker runs; it must be heard again by `hear_by`, or it is hung

A worker that is silent too long is killed and replaced, and its card is unmeasured meanwhile; a
call into a driver has 4 s. One that ends by itself is replaced too, after a pause that doubles from
1 s to 30 s while workers do not get as far as a look. What a worker that was given up says late is
ignored: it has another number.
"""

from typing import Final, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from berth.actors.card.messages import CardRead, CardUnread, SetPace
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
from berth.readings import Reading, Unknown, Unmeasured
from berth.units import Instant, Seconds, after

SLOW: Final = Seconds(2.0)
FAST: Final = Seconds(0.04)
CALL_WITHIN: Final = Seconds(4.0)
"""How long one look may take (B1)."""
START_WITHIN: Final = Seconds(15.0)
"""How long a worker may take from its start to its first look; a cold driver takes seconds."""
FIRST_PAUSE: Final = Seconds(1.0)
LONGEST_PAUSE: Final = Seconds(30.0)


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """No worker runs."""

    start_at: Instant


class Looking(msgspec.Struct, frozen=True, kw_only=True):
    """A worker runs."""

    hear_by: Instant


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The watch over one card. `worker` numbers the workers so far, `pause` is the next pause."""

    pace: Seconds = SLOW
    worker: int = 0
    pause: Seconds = FIRST_PAUSE
    phase: Idle | Looking = Idle(start_at=Instant(0.0))


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
    if event.worker != probe.worker or isinstance(probe.phase, Idle):
        return probe, ()
    hear_by = after(now, Seconds(probe.pace + CALL_WITHIN))
    probe = replace(probe, phase=Looking(hear_by=hear_by), pause=FIRST_PAUSE)
    if isinstance(event.look, Reading):
        return probe, (CardRead(reading=event.look),)
    return probe, (CardUnread(why=event.look),)


def _ended(probe: Probe, event: WorkerEnded, now: Instant) -> _Decision:
    if event.worker != probe.worker or isinstance(probe.phase, Idle):
        return probe, ()
    why = Unmeasured(Unknown.FAILED, f"its driver worker ended ({event.why})")
    return _rest(probe, now), (CardUnread(why=why),)


def _rest(probe: Probe, now: Instant) -> Probe:
    longer = Seconds(min(probe.pause * 2, LONGEST_PAUSE))
    return replace(probe, phase=Idle(start_at=after(now, probe.pause)), pause=longer)


def _pace(probe: Probe, event: SetPace, now: Instant) -> _Decision:
    pace = FAST if event.fast else SLOW
    if pace == probe.pace:
        return probe, ()
    probe = replace(probe, pace=pace)
    if isinstance(probe.phase, Idle):
        return probe, ()
    hear_by = max(probe.phase.hear_by, after(now, Seconds(pace + CALL_WITHIN)))
    probe = replace(probe, phase=Looking(hear_by=hear_by))
    return probe, (PaceWorker(worker=probe.worker, pace=pace),)


def _tick(probe: Probe, now: Instant) -> _Decision:
    match probe.phase:
        case Idle(start_at=start_at) if now >= start_at:
            hear_by = after(now, START_WITHIN)
            probe = replace(probe, worker=probe.worker + 1, phase=Looking(hear_by=hear_by))
            return probe, (StartWorker(worker=probe.worker, pace=probe.pace),)
        case Looking(hear_by=hear_by) if now >= hear_by:
            why = Unmeasured(Unknown.HUNG, "a call into the driver hangs; it was abandoned")
            given_up = probe.worker
            return _rest(probe, now), (KillWorker(worker=given_up), CardUnread(why=why))
        case _:
            return probe, ()
