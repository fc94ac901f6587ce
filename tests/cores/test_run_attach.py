"""What a wrapper says again when its line to berthd is back (S5, S6)."""

import pytest

from berth.run.messages import (
    Seen,
    SendAttach,
    SendPong,
    SendRelease,
    SendRequest,
)
from berth.run.state import Leaving, Running
from berth.units import Seconds
from tests.cores.playing_run import asking, running


def test_waiter_asks_again_with_what_it_has_waited() -> None:
    """S6: sent again with the same key it finds its place; its wait does not begin anew."""
    run = asking()
    run.later(5)
    run.loses_berthd()
    run.later(2)
    assert run.connects() == [SendRequest(waited=Seconds(7.0))]


@pytest.mark.parametrize(
    ("boundary", "ready", "state"),
    [(True, False, "starting"), (True, True, "running"), (False, False, "running")],
)
def test_running_command_attaches_with_its_state(boundary: bool, ready: bool, state: str) -> None:
    """S6: the wrapper is right about its engine: it loads, or it works."""
    run = asking(boundary=boundary)
    run.granted()
    run.passes()
    if boundary:
        run.answers(Seen.BUSY if ready else Seen.UNREADABLE)
    run.loses_berthd()
    run.later(4)
    (attach,) = (effect for effect in run.connects() if isinstance(effect, SendAttach))
    assert (attach.lease, attach.state, attach.attempt) == ("L1", state, 0)
    assert attach.ran_for == 4.0


@pytest.mark.parametrize("step", ["to the boundary", "unloading", "stopping"])
def test_draining_command_attaches_as_draining_with_the_latest_order(step: str) -> None:
    """S6: the order's number tells berthd what it has heard, and what must be said again."""
    run = running(engine=None, boundary=True, unload=True)
    run.ordered(attempt=6)
    if step == "unloading":
        run.answers(Seen.IDLE)
        run.later(0.25)
        run.answers(Seen.IDLE)
    elif step == "stopping":
        run.ordered("stop", attempt=6, at_once=True)
    run.loses_berthd()
    (attach,) = run.connects()
    assert isinstance(attach, SendAttach)
    assert (attach.lease, attach.state, attach.attempt) == ("L1", "draining", 6)


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        ("well", "running"),
        ("badly", "draining"),
        pytest.param("killed", "draining"),
    ],
)
def test_leftovers_attach_with_what_becomes_of_them(ended: str, state: str) -> None:
    """S6, R9: what is being ended must not count as running again."""
    run = running()
    run.exits(0 if ended == "well" else 1)
    run.later(8 if ended == "killed" else 1)
    run.loses_berthd()
    (attach,) = run.connects()
    assert isinstance(attach, SendAttach)
    assert (attach.lease, attach.state) == ("L1", state)


def test_leaving_run_gives_its_lease_back_again() -> None:
    """S6: berthd must hear the release; the word that was lost with the connection is repeated."""
    run = running()
    run.exits()
    run.nothing_left()
    assert isinstance(run.run.phase, Leaving)
    run.loses_berthd()
    assert run.connects() == [SendRelease(lease="L1")]


def test_order_to_attach_is_answered_like_a_new_connection() -> None:
    """3.7: the card was started again and asks what its holders hold."""
    run = running()
    (attach,) = run.ordered("attach", attempt=0)
    assert isinstance(attach, SendAttach)
    assert (attach.lease, attach.attempt) == ("L1", 0)
    assert isinstance(run.run.phase, Running)


def test_ping_is_answered_by_who_holds_a_lease() -> None:
    """S5: `ping` is answered by `pong`; a waiter has nothing to answer for."""
    run = asking()
    assert run.ordered("ping", attempt=0) == []
    run.granted()
    assert run.ordered("ping", attempt=0) == [SendPong(lease="L1")]
    run.exits()
    assert run.ordered("ping", attempt=0) == [SendPong(lease="L1")]


def test_late_word_about_the_request_changes_nothing_once_it_runs() -> None:
    """3.12: the request has had its end."""
    run = running()
    assert run.queued() == run.granted() == run.refused() == []


def test_run_that_has_left_says_nothing_any_more() -> None:
    """R9: its lease was given back; whatever still comes over the line is for nobody."""
    run = running()
    run.exits()
    run.nothing_left()
    run.refused()
    assert run.status == 0
    assert run.connects() == run.ordered() == run.ordered("attach") == run.ordered("ping") == []
