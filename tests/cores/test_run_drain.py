"""How a command is brought to its boundary: ready, heard, idle twice (H2, H6, Q11)."""

import pytest

from berth.run.messages import (
    BoundaryRead,
    Ordered,
    ReadBoundary,
    Say,
    Seen,
    SendWord,
)
from tests.cores.playing_run import (
    STOPPED,
    PlayedRun,
    asking,
    ordered_away,
    quiet,
    running,
)

# --- ready, and served ----------------------------------------------------------------------------


def started() -> PlayedRun:
    run = asking(boundary=True)
    run.granted()
    run.said.clear()
    return run


def test_engine_is_ready_when_its_boundary_can_be_read() -> None:
    """Q11: until then it starts; each half second it is looked at again."""
    run = started()
    run.engine = Seen.UNREADABLE
    run.later(1.25)
    assert (run.reads(), run.words()) == ([0.125, 0.625, 1.125], [])
    run.engine = Seen.IDLE
    run.later(0.5)
    assert run.words() == ["ready"]


def test_read_that_times_out_is_no_sign_of_readiness() -> None:
    """H2: it is busy; while loading a server answers nothing."""
    run = started()
    run.passes()
    run.answers(Seen.TIMED_OUT)
    assert run.words() == []


def test_engine_that_has_answered_is_told_once_and_not_read_any_more() -> None:
    """Q11: it has answered a request; nobody needs to look before an order comes."""
    run = started()
    run.engine, run.served = Seen.BUSY, True
    run.later(10)
    assert (run.words(), len(run.reads())) == (["ready", "served"], 1)


def test_engine_that_nobody_asks_is_watched_for_three_seconds() -> None:
    """Q11: ready without a request, it may be asked after 3 s; then nothing is read any more."""
    run = started()
    run.engine = Seen.IDLE
    run.later(10)
    assert run.words() == ["ready"]
    assert len(run.reads()) == 7
    assert run.reads()[-1] - run.reads()[0] == 3.0


def test_job_without_a_boundary_is_never_read() -> None:
    """H2: there is nothing to read."""
    run = running()
    run.later(10)
    assert run.said == []


# --- 1, 2: heard, then the boundary ---------------------------------------------------------------


@pytest.mark.parametrize("order", ["drain", "stop"])
def test_order_is_heard_at_once(order: str) -> None:
    """H6: `heard` within 5 s; before anything is read or signalled, with the order's number."""
    run = running(boundary=True)
    said = quiet(run.ordered(order, attempt=3))
    assert said[0] == SendWord(lease="L1", attempt=3, word="heard")
    assert said[1:] == [ReadBoundary()]


def test_person_is_told_what_was_asked() -> None:
    """R1: one line for each drain, not for each order."""
    run = ordered_away()
    run.ordered("stop", attempt=2)
    assert run.told() == ["asked"]
    job = running()
    job.ordered()
    (told,) = job.did(Say)
    assert isinstance(told, Say)
    assert told.text == "asked to stop for b; 8s grace"


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("for b", "asked to stop for b; 8s grace"),
        ("stopped by a person", "asked to stop (stopped by a person); 8s grace"),
        ("it was not started in time", "asked to stop (it was not started in time); 8s grace"),
        ("", "asked to stop; 8s grace"),
    ],
)
def test_order_reads_as_a_sentence_whatever_its_why(why: str, words: str) -> None:
    """R1: for whom, or what somebody did; it once read "asked to stop stopped by a person"."""
    job = running()
    job.hear(Ordered(order="stop", attempt=1, why=why, at_once=True))
    (told,) = job.did(Say)
    assert isinstance(told, Say)
    assert told.text == words


def test_idle_twice_a_quarter_second_apart_is_the_boundary() -> None:
    """H2: the second read is straight before the signal, and no sooner than 250 ms."""
    run = ordered_away()
    run.answers(Seen.IDLE)
    run.later(0.125)
    assert len(run.reads()) == 1
    run.later(0.125)
    assert len(run.reads()) == 2
    assert run.signals() == []
    said = quiet(run.answers(Seen.IDLE))
    assert said[0] == SendWord(lease="L1", attempt=1, word="boundary")
    assert run.signals() == STOPPED


def test_busy_engine_is_read_again_each_half_second() -> None:
    """H2: its boundary is waited for."""
    run = ordered_away(engine=Seen.BUSY)
    run.later(2)
    assert run.reads() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert run.signals() == []


def test_what_is_in_flight_is_told_when_it_changes() -> None:
    """Who waits for this engine sees the replies that it still gives, counted down."""
    run = ordered_away(engine=Seen.BUSY)
    run.engine = None
    for in_flight in (2, 2, 1):
        run.later(1)
        run.hear(BoundaryRead(seen=Seen.BUSY, in_flight=in_flight))
    told = [effect for _, effect in run.said if isinstance(effect, SendWord)]
    assert [word.in_flight for word in told if word.in_flight is not None] == [2, 1]
    assert {word.word for word in told} == {"heard"}


@pytest.mark.parametrize("between", [Seen.BUSY, Seen.TIMED_OUT, Seen.UNREADABLE])
def test_two_idle_reads_with_another_between_are_no_boundary(between: Seen) -> None:
    """H2: idle twice in a row; a request that came in between is in flight."""
    run = ordered_away()
    for seen in (Seen.IDLE, between, Seen.IDLE):
        run.answers(seen)
        run.later(0.5)
    assert run.signals() == []
    run.answers(Seen.IDLE)
    assert run.signals() == STOPPED


def test_read_under_way_when_the_order_comes_is_the_first_of_two() -> None:
    """H2: never two reads at once; what it shows was true a moment ago, so another follows."""
    run = started()
    run.passes()
    run.said.clear()
    run.ordered()
    assert run.reads() == []
    run.answers(Seen.IDLE)
    assert run.signals() == []
    run.later(0.25)
    run.answers(Seen.IDLE)
    assert run.signals() == STOPPED


def test_no_boundary_is_read_after_a_signal() -> None:
    """H2: no read after a signal; one that comes back late changes nothing."""
    run = ordered_away()
    run.ordered("stop", attempt=2, at_once=True)
    before = len(run.reads())
    assert run.answers(Seen.IDLE) == []
    run.later(30)
    assert len(run.reads()) == before


def test_job_is_stopped_at_once() -> None:
    """H2: a job without a boundary is stopped at once (H3)."""
    run = running()
    said = quiet(run.ordered(attempt=2))
    words = [effect.word for effect in said if isinstance(effect, SendWord)]
    assert (words, run.signals()) == (["heard", "boundary"], STOPPED)


# --- 2: what ends the waiting ---------------------------------------------------------------------


def test_engine_that_stays_busy_is_stopped_when_its_drain_wait_is_over() -> None:
    """H2: --drain-wait; the deadline does not fire early."""
    run = ordered_away(engine=Seen.BUSY)
    run.later(29.875)
    assert run.signals() == []
    run.later(0.125)
    assert (run.signals(), run.told()[-1]) == (STOPPED, "cut")


def test_drain_wait_is_over_even_while_a_read_is_under_way() -> None:
    """H2: an engine that answers nothing at all is no reason to wait longer."""
    run = ordered_away()
    run.later(30)
    assert run.signals() == STOPPED


def test_engine_whose_boundary_times_out_is_busy() -> None:
    """H2: a read that times out (5 s) is busy: llama-server answers between two batches."""
    run = ordered_away()
    for _ in range(4):
        run.later(5)
        run.answers(Seen.TIMED_OUT)
        run.later(0.5)
    assert run.signals() == []
    assert "cut" not in run.told()


def test_engine_whose_boundary_cannot_be_read_for_ten_seconds_is_stopped() -> None:
    """H2: refused, an error or no JSON; from the first such read on, not before 10 s."""
    run = ordered_away(engine=Seen.UNREADABLE)
    run.later(9.875)
    assert run.signals() == []
    run.later(0.5)
    assert (run.signals(), run.told()[-1]) == (STOPPED, "cut")


def test_boundary_that_can_be_read_again_begins_its_ten_seconds_anew() -> None:
    """H2: it is ten seconds without a break."""
    run = ordered_away(engine=Seen.UNREADABLE)
    run.later(9)
    run.engine = Seen.BUSY
    run.later(0.5)
    run.engine = Seen.UNREADABLE
    run.later(9)
    assert run.signals() == []
    run.later(2)
    assert run.signals() == STOPPED


@pytest.mark.parametrize("engine", [Seen.BUSY, Seen.UNREADABLE, Seen.TIMED_OUT])
def test_fail_closed_engine_is_never_cut(engine: Seen) -> None:
    """H2: unless --fail-closed, which never cuts; its boundary is waited for without end."""
    run = ordered_away(engine=engine, fail_closed=True)
    run.later(200)
    assert run.signals() == []
    run.engine = Seen.IDLE
    run.later(1)
    assert run.signals() == STOPPED
