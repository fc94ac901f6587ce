"""How a run ends: leftovers, leaving, and when the wrapper has to wake up (R9)."""

from collections.abc import Callable
from typing import Any

import pytest

from berth.run.core import decide, wake_at
from berth.run.messages import (
    AskShown,
    Leave,
    Passed,
    ReleaseHeard,
    Say,
    Seen,
    SendRelease,
    SendWord,
)
from berth.run.state import SETTLE_WITHIN, Leaving, Leftovers, Over
from berth.units import Seconds, after
from tests.cores.playing_run import (
    KILL,
    TERM,
    PlayedRun,
    asking,
    options,
    ordered_away,
    running,
    unprotected,
)


def leftovers(status: int = 0, *, ran_for: float = 0.0, **changes: Any) -> PlayedRun:
    """Return a run whose command has ended and left processes behind."""
    run = running(**changes)
    if ran_for:
        run.later(ran_for)
    run.exits(status)
    return run


# --- R9: what a command leaves behind -------------------------------------------------------------


def test_command_that_leaves_nothing_gives_its_lease_back_at_once() -> None:
    """R9: the lease ends when nothing of its tree is left."""
    run = leftovers()
    assert run.nothing_left() == [SendRelease(lease="L1")]
    assert isinstance(run.run.phase, Leaving)
    assert run.status is None


def test_leftovers_of_a_good_end_are_looked_at_each_second() -> None:
    """R9: the wrapper stays until nothing of the tree holds card memory."""
    run = leftovers()
    run.later(3)
    assert run.when(AskShown) == [0.125, 1.125, 2.125]
    assert run.signals() == []


@pytest.mark.parametrize(
    ("used", "age", "ends"),
    [(0, 0.5, True), (100, 0.5, False), (None, 0.5, False), (0, 2.0, False), (0, 99.0, False)],
)
def test_lease_ends_when_a_reading_since_the_end_shows_no_memory(
    used: int | None, age: float, ends: bool
) -> None:
    """R9, B3: the reading must be of after the command's end; unmeasured is not nothing."""
    run = leftovers(ran_for=60)
    run.later(2)
    run.shown(used, age)
    assert isinstance(run.run.phase, Leaving) is ends
    assert (run.did(SendRelease) != []) is ends


def test_leftovers_that_hold_no_memory_are_left_alone() -> None:
    """R9: after a good end nothing is signalled: a daemon that it started may live on."""
    run = leftovers(ran_for=60)
    run.later(2)
    run.shown(0)
    run.hear(ReleaseHeard())
    assert (run.signals(), run.status) == ([], 0)


def test_leftovers_of_a_young_command_may_be_about_to_load() -> None:
    """R9: a server that its start command put behind itself has no memory yet, and will."""
    run = leftovers(ran_for=1)
    run.later(SETTLE_WITHIN - 2)
    run.shown(0)
    assert isinstance(run.run.phase, Leftovers)
    run.later(1.5)
    run.shown(0)
    assert isinstance(run.run.phase, Leaving)


def test_nobody_is_asked_while_berthd_is_away() -> None:
    """R4: the leftovers wait with the wrapper; the question goes out when it is back."""
    run = leftovers()
    run.loses_berthd()
    run.later(5)
    assert run.did(AskShown) == []
    run.connects()
    run.later(1)
    assert run.did(AskShown) == [AskShown(lease="L1")]


def test_leftovers_without_a_lease_hold_nobody_up() -> None:
    """R4: nothing was leased, so there is nothing to wait for."""
    run = unprotected()
    run.exits(0)
    assert run.status is None
    run.passes()
    assert run.status == 0


@pytest.mark.parametrize("why", ["failed", "drained", "stopped"])
def test_leftovers_of_a_bad_end_are_stopped_like_the_command(why: str) -> None:
    """R9: after a failure of CMD, a drain or a stop the leftovers get H3: TERM, grace, KILL."""
    run = running(engine=Seen.BUSY, boundary=True)
    match why:
        case "failed":
            run.exits(1)
        case "drained":
            run.ordered("drain")
            run.exits(0)
        case _:
            run.ordered("stop")
            run.exits(0)
    assert run.signals() == [("tree", TERM)]
    run.later(7.875)
    assert len(run.signals()) == 1
    run.later(0.125)
    assert run.signals() == [("tree", TERM), ("tree", KILL)]


def test_killed_leftovers_that_do_not_go_are_left_to_the_reading() -> None:
    """H4: five seconds after SIGKILL the wrapper leaves; what is held shows as stuck."""
    run = leftovers(status=3)
    run.later(8)
    run.later(4.875)
    assert isinstance(run.run.phase, Leftovers)
    run.later(0.125)
    assert run.did(SendRelease) == [SendRelease(lease="L1")]
    run.hear(ReleaseHeard())
    assert (run.status, len(run.signals())) == (3, 2)


@pytest.mark.parametrize("when", [0.0, 4.0, 8.0, 10.0])
def test_bad_end_is_over_as_soon_as_nothing_is_left(when: float) -> None:
    """R9: no grace is waited out for nobody."""
    run = leftovers(status=3)
    run.later(when)
    run.nothing_left()
    assert run.did(SendRelease) == [SendRelease(lease="L1")]


@pytest.mark.parametrize("order", ["drain", "stop"])
def test_order_to_leftovers_is_heard_and_stops_them(order: str) -> None:
    """R9, H6: whoever waits for the card waits for the leftovers too."""
    run = leftovers()
    assert run.ordered(order, attempt=4)[0] == SendWord(lease="L1", attempt=4, word="heard")
    assert run.signals() == [("tree", TERM)]
    run.ordered(order, attempt=5)
    assert run.signals() == [("tree", TERM)]
    run.nothing_left()
    assert run.did(SendWord)[-1] == SendWord(lease="L1", attempt=5, word="released")


def test_continue_comes_too_late_for_a_command_that_has_ended() -> None:
    """Q3: its boundary is behind it."""
    run = leftovers()
    said = run.ordered("continue", attempt=2)
    assert said == [SendWord(lease="L1", attempt=2, word="boundary")]
    assert run.signals() == []


def test_shown_memory_does_not_end_leftovers_that_are_being_stopped() -> None:
    """R9: they get their grace; the wrapper stays until they are gone."""
    run = leftovers(status=1)
    run.later(2)
    run.shown(0)
    assert isinstance(run.run.phase, Leftovers)


def test_signal_reaches_leftovers_as_it_reached_the_command() -> None:
    """R1: signals are passed through to what is there."""
    run = leftovers()
    run.signalled(10)
    assert run.signals() == [("tree", 10)]
    run.later(60)
    assert run.signals() == [("tree", 10)]


@pytest.mark.parametrize("number", [1, 2, 3, 15])
def test_signal_that_ends_a_program_ends_its_leftovers(number: int) -> None:
    """A shell's background process ignores Ctrl-C; its person has no other way to reach it."""
    run = leftovers()
    run.signalled(number)
    assert run.signals() == [("tree", number), ("tree", TERM)]
    run.later(11)
    assert run.signals()[2:] == [("tree", KILL)]


def test_person_is_told_once_that_what_is_left_holds_the_card() -> None:
    """A prompt that does not come back says why, and how to get it back."""
    run = leftovers()
    run.later(2)
    said = [effect for effect in run.shown(100) if isinstance(effect, Say)]
    assert [one.kind for one in said] == ["leftovers"]
    assert "Ctrl-C" in said[0].text
    run.later(1)
    assert [effect for effect in run.shown(100) if isinstance(effect, Say)] == []


def test_command_that_ends_twice_ends_once() -> None:
    """One exit is one status."""
    run = leftovers(status=0)
    assert run.exits(9) == []
    run.nothing_left()
    run.hear(ReleaseHeard())
    assert run.status == 0


# --- leaving --------------------------------------------------------------------------------------


def leaving(status: int = 0) -> PlayedRun:
    run = leftovers(status)
    run.nothing_left()
    return run


def test_wrapper_leaves_once_berthd_has_heard() -> None:
    """R9: the next in the queue need not wait for the end of a process to be noticed."""
    run = leaving(3)
    assert run.status is None
    assert run.hear(ReleaseHeard()) == [Leave(status=3)]
    assert run.run.phase == Over()


def test_lease_that_nobody_knows_is_given_back_too() -> None:
    """S6: berthd has freed it already, and says `not_found`."""
    run = leaving(3)
    assert run.refused() == [Leave(status=3)]


def test_wrapper_leaves_after_five_seconds_all_the_same() -> None:
    """3.9: the deadline of leaving: its exit tells berthd too. It does not fire early."""
    run = leaving(3)
    run.later(4.875)
    assert run.status is None
    run.later(0.125)
    assert run.status == 3


def test_wrapper_does_not_wait_for_a_berthd_that_is_away() -> None:
    """R4: the next berthd finds its pid gone (S6)."""
    run = leftovers(2)
    run.loses_berthd()
    run.nothing_left()
    assert run.status == 2
    assert run.did(SendRelease) == []


def test_release_that_is_heard_early_ends_nothing() -> None:
    """Only a run that leaves waits for this word."""
    run = running()
    assert run.hear(ReleaseHeard()) == []


@pytest.mark.parametrize("number", [2, TERM])
def test_signal_while_leaving_changes_no_status(number: int) -> None:
    """R6: the command's status is what counts."""
    run = leaving(3)
    assert run.signalled(number) == []
    run.hear(ReleaseHeard())
    assert run.status == 3


# --- waking up ------------------------------------------------------------------------------------


def between_idle_reads() -> PlayedRun:
    run = ordered_away()
    run.answers(Seen.IDLE)
    return run


def watched() -> PlayedRun:
    run = asking(boundary=True)
    run.granted()
    run.engine = Seen.IDLE
    run.passes()
    return run


def stopping() -> PlayedRun:
    run = running()
    run.ordered()
    return run


def unloading() -> PlayedRun:
    run = ordered_away(Seen.IDLE, unload=True)
    run.later(0.25)
    return run


def killed() -> PlayedRun:
    run = leftovers(1)
    run.later(8)
    return run


def heard_and_alone() -> PlayedRun:
    run = asking()
    run.loses_berthd()
    return run


def later_by(seconds: float, make: Callable[[], PlayedRun]) -> Callable[[], PlayedRun]:
    def made() -> PlayedRun:
        run = make()
        run.later(seconds)
        return run

    return made


def fail_closed() -> PlayedRun:
    return ordered_away(Seen.BUSY, fail_closed=True)


AT_ONCE = "with no berthd since boot the deadline is now, but wake_at reckons with TRY_FOR"
SPINS = "a deadline that is past and does nothing any more is still reckoned with: 1000 rounds/s"
STATES = {
    "trying": PlayedRun,
    "trying for a while": later_by(5, PlayedRun),
    "asking": asking,
    "watched": watched,
    "running": running,
    "busy": lambda: ordered_away(Seen.BUSY),
    "reading": ordered_away,
    "reading for long": later_by(29.5, ordered_away),
    "idle once": between_idle_reads,
    "unreadable": later_by(9.75, lambda: ordered_away(Seen.UNREADABLE)),
    "unloading": unloading,
    "stopping": stopping,
    "killed": later_by(8, stopping),
    "leftovers": leftovers,
    "leftovers looked at": later_by(0.5, leftovers),
    "leftovers stopped": later_by(7.5, lambda: leftovers(1)),
    "leftovers killed": killed,
    "leaving": later_by(4.5, leaving),
}
CASES: list[Any] = [pytest.param(make, id=name) for name, make in STATES.items()]


def no_berthd_since_boot() -> PlayedRun:
    return PlayedRun(options(berthd_seen_this_boot=False))


@pytest.mark.parametrize(
    "make",
    [
        *CASES,
        pytest.param(no_berthd_since_boot, id="no berthd since boot"),
    ],
)
def test_wrapper_wakes_up_no_later_than_its_next_deadline(make: Callable[[], PlayedRun]) -> None:
    """3.9: whatever a passing of time would do is done when it is due, not a poll later."""
    run = make()
    woken = wake_at(run.run, run.now)
    for step in range(200):
        at = after(run.now, Seconds(step / 64))
        after_it, effects = decide(run.run, Passed(), at)
        if effects or after_it != run.run:
            assert woken <= at
            return


@pytest.mark.parametrize(
    "make",
    [
        *CASES,
        pytest.param(later_by(9, heard_and_alone), id="heard, berthd away"),
        pytest.param(later_by(11, heard_and_alone), id="heard, berthd long away"),
        pytest.param(later_by(31, fail_closed), id="fail-closed beyond its drain-wait"),
    ],
)
def test_wrapper_sleeps_once_it_has_done_what_was_due(make: Callable[[], PlayedRun]) -> None:
    """Spec 15: a run that waits costs nothing."""
    run = make()
    run.passes()
    run.passes()
    assert run.now < wake_at(run.run, run.now) <= run.now + 1.0
