"""How a command is unloaded, stopped and killed, or told to run on (H1, H3, H6, Q3)."""

from typing import Any

import pytest

from berth.run.messages import (
    BoundaryRead,
    DropChild,
    PostUnload,
    Seen,
    SendWord,
    SignalTree,
)
from berth.run.state import NoDrain, Stopping, ToBoundary
from tests.cores.playing_run import (
    KILL,
    STOPPED,
    TERM,
    PlayedRun,
    drain_of,
    ordered_away,
    running,
    unprotected,
)

# --- 3: the unload call ---------------------------------------------------------------------------


def at_unload(**changes: Any) -> PlayedRun:
    """Return a run that has come to its boundary and calls its unload URL."""
    run = ordered_away(engine=Seen.IDLE, unload=True, **changes)
    run.later(0.25)
    assert run.did(PostUnload)
    return run


def test_unload_is_called_straight_after_the_second_idle_read() -> None:
    """H1, H2: boundary, then unload; no signal yet."""
    run = ordered_away(unload=True)
    run.answers(Seen.IDLE)
    run.later(0.25)
    said = run.answers(Seen.IDLE)
    assert said == [SendWord(lease="L1", attempt=1, word="boundary"), PostUnload()]
    assert run.signals() == []


def test_command_that_was_unloaded_has_its_grace_to_end_by_itself() -> None:
    """H1: counted from the answer; the word itself counts for nothing."""
    run = at_unload()
    run.later(4)
    run.unloaded()
    run.later(7.875)
    assert run.signals() == []
    run.later(0.125)
    assert run.signals() == STOPPED


def test_unload_that_fails_stops_the_command_at_once() -> None:
    """H2: there is nothing to wait for any more."""
    run = at_unload()
    run.unloaded(ok=False)
    assert run.signals() == STOPPED


def test_unload_that_is_never_answered_stops_the_command_after_its_grace() -> None:
    """3.9: the deadline of the call itself; it does not fire early."""
    run = at_unload()
    run.later(7.875)
    assert run.signals() == []
    run.later(0.125)
    assert run.signals() == STOPPED


def test_engine_that_lies_about_its_unload_is_killed_in_the_end() -> None:
    """H1: no word of an engine replaces its end: grace, SIGTERM, grace, SIGKILL."""
    run = at_unload()
    run.unloaded()
    run.later(16)
    assert run.signals() == [*STOPPED, ("tree", KILL)]


def test_late_answer_of_an_unload_changes_nothing() -> None:
    """It is being stopped already; the grace to SIGKILL is not prolonged."""
    run = at_unload()
    run.later(8)
    assert run.unloaded() == run.unloaded(ok=False) == []
    run.later(8)
    assert run.signals() == [*STOPPED, ("tree", KILL)]


def test_stop_now_does_not_wait_for_an_unload() -> None:
    """H6: `berth stop --now` skips what is left of the way."""
    run = at_unload()
    run.ordered("stop", attempt=2, at_once=True)
    assert run.signals() == STOPPED


# --- 4, 5: stopped, killed, released --------------------------------------------------------------


def test_tree_is_killed_when_the_grace_is_over() -> None:
    """H3: SIGTERM, --grace, SIGKILL to the whole tree, once; not before the grace is over."""
    run = running()
    run.ordered()
    run.later(7.875)
    assert run.signals() == STOPPED
    run.later(0.125)
    assert run.signals() == [*STOPPED, ("tree", KILL)]
    run.later(100)
    assert len(run.did(SignalTree)) == 1


def test_released_is_told_when_nothing_is_left_and_not_before() -> None:
    """H1: the wrapper's word comes after the end of the whole tree."""
    run = running()
    run.ordered(attempt=5)
    run.exits(signal=TERM)
    assert "released" not in run.words()
    run.nothing_left()
    assert run.did(SendWord)[-1] == SendWord(lease="L1", attempt=5, word="released")


@pytest.mark.parametrize("order", ["drain", "stop"])
@pytest.mark.parametrize("at_once", [True, False])
def test_order_to_a_command_that_is_being_stopped_is_only_heard(order: str, at_once: bool) -> None:
    """H6: it is on its way; a second SIGTERM would make some programs abort their clean-up."""
    run = running()
    run.ordered()
    said = run.ordered(order, attempt=2, at_once=at_once)
    assert said == [SendWord(lease="L1", attempt=2, word="heard")]
    run.later(8)
    assert run.signals() == [*STOPPED, ("tree", KILL)]


def test_stop_now_skips_the_boundary_of_a_fail_closed_engine_too() -> None:
    """H6: a terminal was asked first."""
    run = ordered_away(engine=Seen.BUSY, fail_closed=True)
    run.later(5)
    run.ordered("stop", attempt=2, at_once=True)
    assert run.signals() == STOPPED


def test_stop_without_now_waits_for_the_boundary() -> None:
    """H6: `berth stop` is at the boundary, like a drain."""
    run = running(engine=Seen.BUSY, boundary=True)
    run.ordered("stop")
    run.later(5)
    assert run.signals() == []


def test_command_without_a_lease_is_told_nothing_and_stops_all_the_same() -> None:
    """R4: an order can reach a run that has not heard of its lease yet."""
    run = unprotected()
    run.ordered("stop", at_once=True)
    assert (run.words(), run.signals()) == ([], STOPPED)


# --- continue -------------------------------------------------------------------------------------


def test_continue_before_the_boundary_lets_it_run_on() -> None:
    """Q3: told `continue` and runs on: nothing is read, signalled or unloaded any more."""
    run = ordered_away(engine=Seen.BUSY)
    run.later(2)
    run.ordered("continue", attempt=2)
    assert (run.words(), run.told()[-1]) == (["heard", "heard"], "kept")
    before = len(run.reads())
    run.engine = Seen.IDLE
    run.later(60)
    assert run.signals() == []
    assert len(run.reads()) == before
    assert run.did(PostUnload) == []


def test_read_under_way_at_a_continue_brings_no_boundary() -> None:
    """Q3: its answer belongs to a drain that is over."""
    run = ordered_away()
    run.answers(Seen.IDLE)
    run.later(0.25)
    run.ordered("continue", attempt=2)
    run.answers(Seen.IDLE)
    assert run.signals() == []
    assert isinstance(drain_of(run), NoDrain)


def test_command_that_runs_on_can_be_asked_again() -> None:
    """Q3: with a whole drain-wait, and two new idle reads."""
    run = ordered_away(engine=Seen.BUSY)
    run.later(25)
    run.ordered("continue", attempt=2)
    run.ordered("drain", attempt=3)
    run.later(25)
    assert run.signals() == []
    assert isinstance(drain_of(run), ToBoundary)
    run.engine = Seen.IDLE
    run.later(1)
    assert run.signals() == STOPPED


@pytest.mark.parametrize("step", ["unloading", "stopping"])
def test_continue_after_the_boundary_comes_too_late(step: str) -> None:
    """Q3: past it the drain completes; berthd is told so."""
    run = at_unload()
    if step == "stopping":
        run.unloaded(ok=False)
    said = run.ordered("continue", attempt=2)
    assert said == [SendWord(lease="L1", attempt=2, word="boundary")]
    run.later(20)
    assert run.signals() == [*STOPPED, ("tree", KILL)]


def test_continue_does_not_call_off_a_persons_stop() -> None:
    """Q3, H6: a drain is called off when nobody waits; a stop waits for nobody."""
    run = running(engine=Seen.BUSY, boundary=True)
    run.ordered("stop")
    run.ordered("continue", attempt=2)
    run.engine = Seen.IDLE
    run.later(1)
    assert run.signals() == STOPPED


def test_stop_takes_over_a_drain() -> None:
    """H6: who was asked for somebody, and is then stopped by a person, runs on for nobody."""
    run = ordered_away(engine=Seen.BUSY)
    run.ordered("stop", attempt=2)
    run.ordered("continue", attempt=3)
    assert isinstance(drain_of(run), ToBoundary)


def test_continue_without_a_drain_is_only_heard() -> None:
    """H6: the drain was never heard, and is not wanted any more."""
    run = running(boundary=True)
    assert run.ordered("continue", attempt=2) == [SendWord(lease="L1", attempt=2, word="heard")]


# --- what comes late ------------------------------------------------------------------------------


def test_what_an_engine_says_after_its_end_is_dropped() -> None:
    """A call that was under way comes back when the command is gone."""
    run = at_unload()
    run.exits()
    assert run.hear(BoundaryRead(seen=Seen.IDLE)) == run.unloaded() == []
    run.nothing_left()
    run.refused()
    assert run.hear(BoundaryRead(seen=Seen.IDLE)) == run.unloaded() == []


def test_stopped_command_is_not_dropped_like_one_that_waits() -> None:
    """R5: `DropChild` is for a child that never executed anything."""
    run = running()
    run.ordered()
    run.later(20)
    assert run.did(DropChild) == []
    assert drain_of(run) == Stopping(kill_at=None)
