"""Theory of operation of the supervisor.

It decides who is started again, when, and when that is no use any more. Every actor is a *child* of
a role; each start is an incarnation, and words of an earlier one are ignored.

    up        it must answer a ping within 10 s, or it hangs
    pausing   it died; it is started again at `start_at`
    starting  it was told to start; up within 10 s, or it counts as dead again
    closed    a limited child that died a 4th time in 60 s: its card is governed no more

A death is noticed in four ways: the actor tells (it crashed, or could not begin), a ping is not
answered (it hangs), or the sweep finds its thread gone (anything else).

A hung thread cannot be ended. Of a child without state it is left behind, and another started. One
that has state may still be changing it: berthd ends, and is started again by its service manager.

An event that has killed a child twice is poison: the next incarnation is told not to handle it.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from berth.actors.base import ActorDied, Pong, mark_of_event
from berth.actors.journal.messages import KeptRead
from berth.actors.supervisor.messages import (
    AbandonChild,
    Care,
    ChildStarted,
    CloseChild,
    GiveUp,
    PingChild,
    PrepareChild,
    Report,
    StandDown,
    StartChild,
    SupervisorEffect,
    SupervisorInbox,
    SupervisorTick,
)
from berth.units import Instant, Seconds, after, since

PING_EVERY: Final = Seconds(5.0)
ANSWER_WITHIN: Final = Seconds(10.0)
START_WITHIN: Final = Seconds(10.0)
FIRST_PAUSE: Final = Seconds(1.0)
LONGEST_PAUSE: Final = Seconds(30.0)
CALM_AFTER: Final = Seconds(60.0)
DEATHS_ALLOWED: Final = 3


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """It runs, since `up_since`. `answer_by` is set while a ping is out."""

    up_since: Instant
    ping_at: Instant
    answer_by: Instant | None = None


class Pausing(msgspec.Struct, frozen=True, kw_only=True):
    """It died and is started again at `start_at`."""

    start_at: Instant


class Starting(msgspec.Struct, frozen=True, kw_only=True):
    """It was told to start."""

    start_by: Instant


class Closed(msgspec.Struct, frozen=True):
    """It is not started any more."""


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """One role, and how its actor fares.

    `deaths` are those of the last minute; `failures` counts those without a calm minute between.
    `killers` are the events that killed it once, `poison` those that did it twice.
    """

    role: str
    care: Care
    phase: Up | Pausing | Starting | Closed
    incarnation: int = 0
    deaths: tuple[Instant, ...] = ()
    failures: int = 0
    killers: frozenset[str] = frozenset()
    poison: frozenset[str] = frozenset()


class Supervision(msgspec.Struct, frozen=True, kw_only=True):
    """All children."""

    children: Mapping[str, Child] = msgspec.field(default_factory=dict)
    standing_down: bool = False


_Decision: TypeAlias = tuple[Supervision, tuple[SupervisorEffect, ...]]


def supervise(cares: Mapping[str, Care], now: Instant) -> Supervision:
    """Return the supervision of children that have just been started."""
    up = Up(up_since=now, ping_at=after(now, PING_EVERY))
    return Supervision(
        children={role: Child(role=role, care=care, phase=up) for role, care in cares.items()}
    )


def decide(state: Supervision, event: SupervisorInbox, now: Instant) -> _Decision:
    """Return the supervision after `event`, and what to do."""
    match event:
        case ActorDied():
            child = state.children.get(event.role)
            if child is None or child.incarnation != event.incarnation or state.standing_down:
                return state, (Report(died=event),)
            child = _note_killer(child, mark_of_event(event.event))
            state, effects = _dead(state, child, event.cause.strip().rpartition("\n")[2], now)
            return state, (Report(died=event), *effects)
        case Pong():
            return _answered(state, event, now), ()
        case ChildStarted():
            child = state.children[event.role]
            if child.incarnation != event.incarnation or not isinstance(child.phase, Starting):
                return state, ()
            up = Up(up_since=now, ping_at=after(now, PING_EVERY))
            return _with(state, replace(child, phase=up)), ()
        case KeptRead():
            return _prepared(state, event)
        case SupervisorTick():
            return _tick(state, event, now)
        case StandDown():
            return replace(state, standing_down=True), ()
        case _:
            assert_never(event)


def _with(state: Supervision, child: Child) -> Supervision:
    return replace(state, children={**state.children, child.role: child})


def _note_killer(child: Child, mark: str) -> Child:
    """Note which event killed a child. One that comes again and kills again is set aside."""
    if not mark:
        return child
    if mark in child.killers:
        return replace(child, poison=child.poison | {mark})
    return replace(child, killers=child.killers | {mark})


def _dead(state: Supervision, child: Child, why: str, now: Instant) -> _Decision:
    if isinstance(child.phase, Pausing | Closed):
        return state, ()
    deaths = tuple(at for at in child.deaths if since(at, now) < CALM_AFTER)
    calm = isinstance(child.phase, Up) and since(child.phase.up_since, now) >= CALM_AFTER
    failures = 1 if calm else child.failures + 1
    child = replace(child, deaths=(*deaths, now), failures=failures)
    match child.care:
        case Care.VITAL:
            return state, (GiveUp(why=f"{child.role} failed: {why}"),)
        case Care.LIMITED if len(child.deaths) > DEATHS_ALLOWED:
            closed = _with(state, replace(child, phase=Closed()))
            return closed, (CloseChild(role=child.role, why=why),)
        case Care.LIMITED:
            pause = Seconds(0.0)
        case Care.ALWAYS:
            doubled = FIRST_PAUSE * 2.0 ** min(child.failures - 1, 10)
            pause = Seconds(min(doubled, LONGEST_PAUSE))
        case _:
            assert_never(child.care)
    return _with(state, replace(child, phase=Pausing(start_at=after(now, pause)))), ()


def _answered(state: Supervision, pong: Pong, now: Instant) -> Supervision:
    child = state.children.get(pong.role)
    if child is None or child.incarnation != pong.incarnation or not isinstance(child.phase, Up):
        return state
    up = Up(up_since=child.phase.up_since, ping_at=after(now, PING_EVERY))
    return _with(state, replace(child, phase=up))


def _prepared(state: Supervision, event: KeptRead) -> _Decision:
    child = state.children.get(event.role)
    if state.standing_down or child is None or not isinstance(child.phase, Starting):
        return state, ()
    if child.incarnation != event.incarnation:
        return state, ()
    start = StartChild(
        role=event.role,
        incarnation=event.incarnation,
        kept=event.kept,
        set_aside=child.poison,
    )
    return state, (start,)


def _tick(state: Supervision, tick: SupervisorTick, now: Instant) -> _Decision:
    if state.standing_down:
        return state, ()
    effects: list[SupervisorEffect] = []
    for role in state.children:
        state, said = _look_at(state, state.children[role], role in tick.dead, now)
        effects += said
    return state, tuple(effects)


def _look_at(state: Supervision, child: Child, is_dead: bool, now: Instant) -> _Decision:  # noqa: FBT001
    match child.phase:
        case Up() if is_dead:
            return _dead(state, child, "its thread is gone", now)
        case Up(answer_by=by) if by is not None and now >= by:
            return _hung(state, child, now)
        case Up(ping_at=at, answer_by=None) if now >= at:
            pinged = replace(child.phase, answer_by=after(now, ANSWER_WITHIN))
            return _with(state, replace(child, phase=pinged)), (PingChild(role=child.role),)
        case Pausing(start_at=at) if now >= at:
            child = replace(
                child,
                incarnation=child.incarnation + 1,
                phase=Starting(start_by=after(now, START_WITHIN)),
            )
            prepare = PrepareChild(role=child.role, incarnation=child.incarnation)
            return _with(state, child), (prepare,)
        case Starting(start_by=by) if now >= by:
            return _dead(state, child, "it did not start", now)
        case _:
            return state, ()


def _hung(state: Supervision, child: Child, now: Instant) -> _Decision:
    why = f"{child.role} has not handled a message for {ANSWER_WITHIN:.0f}s"
    if child.care is not Care.ALWAYS:
        return state, (GiveUp(why=why),)
    state, effects = _dead(state, child, why, now)
    return state, (AbandonChild(role=child.role), *effects)
