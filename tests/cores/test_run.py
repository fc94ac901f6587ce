"""A wrapper from asking to running, with berthd or without it (R1, R4, R6, M3)."""

from typing import Any

import pytest

from berth.errors import Exit
from berth.run.messages import (
    Attached,
    Card,
    DropChild,
    LeaseGiven,
    LeaseGone,
    Leave,
    Queued,
    Say,
    Seen,
    SendAttach,
    SendRelease,
    SendRequest,
    SendStarted,
    SendWithdraw,
    StartChild,
)
from berth.run.state import Asking
from berth.units import Seconds, after
from tests.cores.playing_run import GPU0, PlayedRun, asking, options, running, unprotected

SIGINT, SIGTERM, SIGHUP, SIGKILL = 2, 15, 1, 9
MARK = {"BERTH_RUN": "mark-of-the-run"}

# --- asking ---------------------------------------------------------------------------------------


def test_request_goes_out_as_soon_as_berthd_is_there() -> None:
    """R1: it queues; how long it has tried so far counts as waited (S6)."""
    run = PlayedRun()
    run.later(3)
    assert run.connects() == [SendRequest(waited=Seconds(3.0))]


def test_person_is_told_why_it_waits_when_that_changes() -> None:
    """R1: what it asks for, then one line for each reason, none for each heartbeat."""
    run = PlayedRun(options(asks="16.0 GiB", priority="foreground"))
    run.connects()
    run.queued("")
    assert run.told() == []
    run.queued("images is pinned")
    run.queued("images is pinned")
    run.queued("images was asked to finish", reason="images draining")
    assert run.told() == ["asks", "queued", "queued"]
    (ask, first, second) = said(run)
    assert ask.text == "chat asks 16.0 GiB of gpu0 (foreground, waits up to 2m)"
    assert first.text == "images is pinned"
    assert (first.facts["request"], first.facts["position"]) == ("r1", 1)
    assert first.passing
    assert second.text == "images was asked to finish"


def said(run: PlayedRun) -> list[Say]:
    return [effect for effect in run.did(Say) if isinstance(effect, Say)]


def test_in_a_log_a_line_stands_for_each_reason_and_each_half_minute() -> None:
    """Figures that run down are no news in a log; that it still waits is, twice a minute."""
    run = PlayedRun()
    run.connects()
    for left in range(60, 0, -5):
        run.queued(f"images keeps its turn for {left}s", reason="images in_turn")
        run.later(5)
    assert [line.text for line in said(run)] == [
        "images keeps its turn for 60s",
        "images keeps its turn for 30s",
    ]


def test_on_a_terminal_every_change_is_shown_for_the_line_is_written_over() -> None:
    """The seconds run down before one's eyes."""
    run = PlayedRun(options(on_terminal=True))
    run.connects()
    for left in (15, 10, 10, 5):
        run.queued(f"images keeps its turn for {left}s", reason="images in_turn")
    assert [line.text[-3:] for line in said(run)] == ["15s", "10s", " 5s"]
    assert all(line.passing for line in said(run))


def test_line_says_when_and_which_in_line() -> None:
    """An expectation where there is one; the place where there are others."""
    run = PlayedRun()
    run.connects()
    run.hear(Queued(request="r1", why="a is stopping", position=1, waiting=2, eta=Seconds(19.8)))
    (line,) = said(run)
    assert line.text == "a is stopping; ~20s [1 of 2]"


def test_names_of_others_cannot_act_on_the_terminal() -> None:
    """The reason carries names that somebody else chose."""
    run = PlayedRun()
    run.connects()
    run.queued("\x1b[2Jevil is pinned")
    run.refused()
    assert all(line.text.isprintable() for line in said(run))


def test_grant_starts_the_command_and_berthd_is_told() -> None:
    """R1, H1: grant, start; every process of the run carries its mark (R5)."""
    run = asking()
    run.later(41)
    said = run.granted()
    assert [effect for effect in said if not isinstance(effect, Say)] == [
        StartChild(lease="L1", environment=MARK),
        SendStarted(lease="L1", scope=None),
    ]
    (told,) = (effect for effect in said if isinstance(effect, Say))
    assert told.text == "granted after 41s; starting"


def test_grant_at_once_is_no_news() -> None:
    """R1: who did not have to wait reads nothing about waiting."""
    run = PlayedRun()
    run.connects()
    run.queued("")
    run.granted()
    assert run.told() == []
    assert run.did(StartChild)


@pytest.mark.parametrize(("left", "starts"), [(1.125, True), (1.0, False), (-5.0, False)])
def test_grant_that_was_slept_through_is_not_started(left: float, starts: bool) -> None:
    """S6: not started within 30 s it is taken back, and may be somebody else's by now."""
    run = asking()
    start_by = after(run.now, Seconds(left))
    run.hear(LeaseGiven(lease="L1", name="chat", cards=(GPU0,), start_by=start_by))
    assert bool(run.did(StartChild)) is starts
    assert (run.status, bool(run.did(DropChild))) == (
        (None, False) if starts else (Exit.NOT_IN_TIME, True)
    )


@pytest.mark.parametrize(
    ("waited_out", "status"), [(True, Exit.NOT_IN_TIME), (False, Exit.REFUSED)]
)
def test_refusal_ends_the_child_that_waits_and_the_wrapper(waited_out: bool, status: int) -> None:
    """R6: 75 not granted in time, 76 refused; the reason is told even with --quiet."""
    run = asking()
    said = run.refused(waited_out=waited_out, hint="berth status says more")
    assert said[-2:] == [DropChild(), Leave(status=status)]
    told = [effect for effect in said if isinstance(effect, Say)]
    assert [effect.text for effect in told] == [
        "refused: images is pinned (pinned)",
        f"  berth status says more{'  (--wait says how long)' if waited_out else ''}",
    ]
    assert all(effect.refusal for effect in told)


@pytest.mark.parametrize(("number", "status"), [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)])
def test_signal_while_queued_withdraws(number: int, status: int) -> None:
    """R1, R6: Ctrl-C while queued withdraws (130); nothing was executed."""
    run = asking()
    said = [effect for effect in run.signalled(number) if not isinstance(effect, Say)]
    assert said == [SendWithdraw(request="r1"), DropChild(), Leave(status=status)]


def test_signal_before_berthd_was_reached_leaves_nothing_to_withdraw() -> None:
    """R1: no request is out, so there is none to take back."""
    run = PlayedRun()
    run.signalled(SIGINT)
    assert run.did(SendWithdraw) == []
    assert run.status == 130


def test_waiting_child_that_was_killed_ends_the_wrapper() -> None:
    """R5: there is nothing left that could execute the command."""
    run = asking()
    assert run.exits(signal=SIGKILL) == [SendWithdraw(request="r1"), Leave(status=128 + SIGKILL)]


@pytest.mark.parametrize("status", [Exit.NOT_THERE, Exit.NOT_EXECUTABLE])
def test_command_that_cannot_be_executed_gives_its_lease_back(status: int) -> None:
    """R6: 127 not there, 126 not executable; the card is free again at once."""
    run = asking()
    run.missing = status
    run.granted()
    assert run.did(SendRelease) == [SendRelease(lease="L1")]
    assert "failed" in run.told()
    run.refused()
    assert run.status == status


# --- R6: the status -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exited", "status"),
    [
        ({"status": 0}, 0),
        ({"status": 3}, 3),
        ({"status": 143}, 143),
        ({"signal": 11}, 139),
        ({"signal": SIGTERM}, 143),
    ],
)
def test_wrapper_exits_with_its_commands_status(exited: dict[str, Any], status: int) -> None:
    """R6: CMD's own, 128 + n when another's signal ended it."""
    run = running()
    run.exits(**exited)
    run.nothing_left()
    run.refused()
    assert run.status == status


@pytest.mark.parametrize("exited", [{"status": 0}, {"signal": SIGTERM}, {"signal": SIGKILL}])
def test_command_that_berth_signalled_exits_with_143(exited: dict[str, Any]) -> None:
    """R6: 143 when Berth's signal did, whatever the command made of it."""
    run = running()
    run.ordered()
    run.exits(**exited)
    run.nothing_left()
    run.refused()
    assert run.status == Exit.STOPPED_BY_BERTH


@pytest.mark.parametrize("seen", [Seen.BUSY, Seen.IDLE])
def test_command_that_ends_by_itself_in_a_drain_keeps_its_status(seen: Seen) -> None:
    """R6: before its boundary, or unloading at it: no signal of Berth's was sent."""
    run = running(engine=seen, boundary=True, unload=True)
    run.ordered()
    run.later(2)
    run.exits(7)
    run.nothing_left()
    run.refused()
    assert run.status == 7


def test_signals_are_passed_through_to_the_command() -> None:
    """R1: signals reach CMD untouched, and its status tells what came of it."""
    run = running()
    for number in (SIGHUP, SIGTERM, SIGINT):
        run.signalled(number)
    assert run.signals() == [("group", SIGHUP), ("group", SIGTERM), ("group", SIGINT)]
    run.exits(signal=SIGINT)
    run.nothing_left()
    run.refused()
    assert run.status == 130


# --- R4: no berthd --------------------------------------------------------------------------------


def test_without_a_berthd_since_boot_the_command_runs_at_once() -> None:
    """R4: with none since boot at once; the person is warned."""
    run = PlayedRun(options(berthd_seen_this_boot=False))
    run.passes()
    assert run.did(StartChild) == [StartChild(lease=None, environment=MARK)]
    assert run.told() == ["unprotected"]
    assert run.did(SendStarted) == []


def test_with_a_berthd_since_boot_it_is_tried_for_ten_seconds() -> None:
    """R4: a restart of berthd must not start an engine beside a holder; not before 10 s."""
    run = PlayedRun()
    run.later(9.875)
    assert run.did(StartChild) == []
    run.later(0.125)
    assert run.did(StartChild) == [StartChild(lease=None, environment=MARK)]


@pytest.mark.parametrize(("seen", "tried_for"), [(True, 10.0), (False, 0.0)])
def test_fail_closed_runs_nothing_without_berthd(seen: bool, tried_for: float) -> None:
    """R4, R6: refused with 69, when an unprotected run would have begun."""
    run = PlayedRun(options(fail_closed=True, berthd_seen_this_boot=seen))
    run.passes()
    run.later(tried_for)
    assert run.did(StartChild) == []
    assert run.when(DropChild) == [tried_for]
    assert (run.status, run.told()) == (Exit.UNAVAILABLE, ["refused"])


def test_ten_seconds_are_those_since_berthd_was_last_there() -> None:
    """R4: a connection that came and went begins the trying anew."""
    run = PlayedRun()
    run.later(9)
    run.connects()
    run.loses_berthd()
    run.later(9.875)
    assert run.did(StartChild) == []
    run.loses_berthd()
    run.later(0.125)
    assert len(run.did(StartChild)) == 1


@pytest.mark.parametrize("fail_closed", [True, False])
def test_waiter_that_was_heard_never_turns_unprotected(fail_closed: bool) -> None:
    """R4: it has its place in the queue, and berthd will be back."""
    run = asking(fail_closed=fail_closed)
    run.loses_berthd()
    run.later(100, step=1.0)
    assert isinstance(run.run.phase, Asking)
    assert run.connects() == [SendRequest(waited=Seconds(100.0))]


def test_waiter_whose_wait_is_over_while_berthd_is_away_gives_up() -> None:
    """Q3: nobody else can tell it; it waited as long as it wanted, and runs nothing."""
    run = asking(fail_closed=False)
    run.loses_berthd()
    run.later(121, step=1.0)
    assert run.status == 75


def test_running_command_is_never_touched_because_berthd_is_away() -> None:
    """R4: berthd restarting mid-run never touches the engine."""
    run = running()
    run.loses_berthd()
    run.later(500, step=1.0)
    assert run.said == []


def test_unprotected_run_attaches_as_soon_as_berthd_answers() -> None:
    """R4: from then on it has a lease, and everything goes by it."""
    run = unprotected(boundary=True)
    run.answers(Seen.IDLE, served=True)
    assert run.words() == []
    run.later(5)
    (attach,) = run.connects()
    assert isinstance(attach, SendAttach)
    assert (attach.lease, attach.state, attach.ran_for) == (None, "running", 5.0)
    run.hear(Attached(lease="L4"))
    assert "attached" in run.told()
    run.ordered(attempt=2)
    assert run.words() == ["heard"]
    run.exits()
    run.nothing_left()
    assert run.did(SendRelease) == [SendRelease(lease="L4")]


def test_unprotected_run_that_is_never_attached_just_ends() -> None:
    """R4, R9: there is no lease to give back."""
    run = unprotected()
    run.exits(3)
    run.nothing_left()
    assert run.status == 3
    assert run.did(SendRelease) == []


def test_signal_ends_an_unprotected_command_like_any_other() -> None:
    """R1: passing signals through needs no berthd."""
    run = unprotected()
    run.signalled(SIGTERM)
    assert run.signals() == [("group", SIGTERM)]


# --- M3: what the command is shown ----------------------------------------------------------------

NVIDIA = (
    Card(name="gpu1", uuid="GPU-b", vendor="nvidia"),
    Card(name="gpu0", uuid="GPU-a", vendor="nvidia"),
)
AMD = (Card(name="gpu0", uuid="GPU-c", vendor="amd"),)
NAMELESS = (Card(name="gpu0", uuid="", vendor="nvidia"),)


@pytest.mark.parametrize(
    ("cards", "changes", "shown"),
    [
        (NVIDIA, {"names_cards": True}, {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}),
        (AMD, {"names_cards": True}, {"ROCR_VISIBLE_DEVICES": "GPU-c"}),
        (NVIDIA, {"names_cards": False}, {}),
        (NAMELESS, {"names_cards": True}, {}),
        (
            NVIDIA,
            {"names_cards": True, "environment_names": frozenset({"CUDA_VISIBLE_DEVICES"})},
            {},
        ),
        (
            NVIDIA,
            {"names_cards": True, "environment_names": frozenset({"ROCR_VISIBLE_DEVICES"})},
            {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"},
        ),
        (AMD, {"names_cards": True, "environment_names": frozenset({"ROCR_VISIBLE_DEVICES"})}, {}),
    ],
)
def test_command_is_shown_its_cards(
    cards: tuple[Card, ...], changes: dict[str, Any], shown: dict[str, str]
) -> None:
    """M3: UUIDs in the order named, when cards were named, never over the environment."""
    run = asking(**changes)
    run.granted(*cards)
    assert run.did(StartChild) == [StartChild(lease="L1", environment=MARK | shown)]


def test_start_that_berthd_does_not_know_of_is_attached() -> None:
    """S6: the command runs all the same, and must be counted."""
    run = running()
    (attach,) = run.hear(LeaseGone())
    assert isinstance(attach, SendAttach)
    assert attach.lease is None


def test_run_whose_lease_is_anothers_now_attaches_once_without_it() -> None:
    """A berthd that lost its journal gave its number away; refused again, it lets it be."""
    run = running()
    run.loses_berthd()
    (first,) = run.connects()
    assert isinstance(first, SendAttach)
    assert first.lease == "L1"
    (second,) = run.hear(LeaseGone())
    assert isinstance(second, SendAttach)
    assert second.lease is None
    assert run.hear(LeaseGone()) == []
    run.hear(Attached(lease="L2"))
    (third,) = run.ordered("attach", attempt=0)
    assert isinstance(third, SendAttach)
    assert third.lease == "L2"
