"""The watch over one card's driver worker (see `probes/core.py`)."""

import pytest

from berth.actors.card.messages import CardRead, CardUnread, SetPace
from berth.probes.core import FAST, SLOW, Looking
from berth.probes.messages import (
    KillWorker,
    PaceWorker,
    ProbeTick,
    StartWorker,
    WorkerEnded,
    WorkerSaw,
)
from berth.readings import Unknown, Unmeasured
from berth.units import Seconds, after
from tests.cores.playing_probe import PlayedProbe, looking, reading

LOST = Unmeasured(Unknown.LOST, "gone from the bus")


# --- looking --------------------------------------------------------------------------------------


def test_worker_is_started_with_the_first_tick() -> None:
    """B1: a card without a fresh reading grants nothing, so it is looked at from the start."""
    probe = PlayedProbe()
    assert probe.hear(ProbeTick()) == [StartWorker(worker=1, pace=2.0)]
    assert probe.hear(ProbeTick()) == []


def test_what_the_worker_sees_is_passed_to_the_card() -> None:
    """B1: a reading, or why there is none; never the last one again."""
    probe = PlayedProbe()
    probe.hear(ProbeTick())
    assert probe.sees() == [CardRead(reading=reading(probe.now))]
    assert probe.hear(WorkerSaw(worker=1, look=LOST)) == [CardUnread(why=LOST)]


def test_worker_that_looks_at_its_pace_is_left_alone() -> None:
    """H4: readings come every 2 s."""
    probe = looking()
    for _ in range(50):
        assert probe.later(2) == []
        probe.sees()
    assert probe.when(KillWorker) == []


# --- hung -----------------------------------------------------------------------------------------


def test_call_that_hangs_for_four_seconds_costs_its_worker() -> None:
    """B1: a driver call has 4 s beyond the pace, then its worker is killed; the card is unread."""
    probe = looking()
    assert probe.later(5.75) == []
    kill, unread = probe.later(0.25)
    assert kill == KillWorker(worker=1)
    assert isinstance(unread, CardUnread)
    assert unread.why.why is Unknown.HUNG


def test_first_look_has_fifteen_seconds() -> None:
    """3.9: a cold driver takes seconds; the deadline of the start does not fire early."""
    probe = PlayedProbe()
    probe.hear(ProbeTick())
    assert probe.later(14.75) == []
    assert KillWorker(worker=1) in probe.later(0.25)


def test_unreadable_card_is_looked_at_on() -> None:
    """B1: a worker that says why it sees nothing works; it does not hang."""
    probe = looking()
    for _ in range(5):
        probe.hear(WorkerSaw(worker=1, look=LOST))
        assert probe.later(2) == []


def test_late_word_of_a_worker_that_was_given_up_is_ignored() -> None:
    """B1: its reading is of the past, and its end was expected."""
    probe = looking()
    probe.later(6)
    assert probe.sees(1) == []
    assert probe.hear(WorkerEnded(worker=1, why="killed")) == []
    probe.later(1)
    assert probe.when(StartWorker) == [0.0, 7.0]
    assert probe.sees(1) == []
    assert probe.hear(WorkerEnded(worker=1, why="killed")) == []
    assert isinstance(probe.probe.phase, Looking)
    assert probe.sees(2) != []


# --- ended, and pauses ----------------------------------------------------------------------------


def test_worker_that_ends_is_replaced_after_a_second_and_the_card_is_unread() -> None:
    """B1: between two workers nothing is granted; 3.9: `start_at` does not fire early."""
    probe = looking()
    (unread,) = probe.hear(WorkerEnded(worker=1, why="SIGSEGV"))
    assert isinstance(unread, CardUnread)
    assert unread.why == Unmeasured(Unknown.FAILED, "its driver worker ended (SIGSEGV)")
    assert probe.later(0.75) == []
    assert probe.later(0.25) == [StartWorker(worker=2, pace=2.0)]


@pytest.mark.parametrize("way", ["ends", "hangs"])
def test_pauses_double_to_thirty_seconds_while_no_worker_gets_as_far_as_a_look(way: str) -> None:
    """3.7: a driver that is broken is not hammered, and is tried for ever."""
    probe = PlayedProbe()
    probe.hear(ProbeTick())
    pauses = []
    for worker in range(1, 9):
        if way == "ends":
            probe.hear(WorkerEnded(worker=worker, why="no driver"))
        else:
            probe.later(15)
        ended = probe.now
        assert probe.rests()
        while probe.rests():
            probe.later(0.25)
        pauses.append(probe.now - ended)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_look_makes_the_next_pause_short_again() -> None:
    """3.7: a driver that worked once is worth a quick second try."""
    probe = PlayedProbe()
    probe.hear(ProbeTick())
    for worker in range(1, 4):
        probe.hear(WorkerEnded(worker=worker, why="no driver"))
        probe.later(4)
    probe.sees(4)
    probe.hear(WorkerEnded(worker=4, why="no driver"))
    assert probe.later(1) == [StartWorker(worker=5, pace=2.0)]


# --- pace -----------------------------------------------------------------------------------------


def test_worker_is_told_a_new_pace_once() -> None:
    """H4: every 40 ms while a release or start is in flight, and 2 s again afterwards."""
    probe = looking()
    assert probe.hear(SetPace(fast=True)) == [PaceWorker(worker=1, pace=0.04)]
    assert probe.hear(SetPace(fast=True)) == []
    assert probe.hear(SetPace(fast=False)) == [PaceWorker(worker=1, pace=2.0)]


def test_next_worker_starts_at_the_pace_that_holds() -> None:
    """H4: a hand-off that began while no worker ran is not slower for it."""
    probe = PlayedProbe()
    assert probe.hear(SetPace(fast=True)) == []
    assert probe.hear(ProbeTick()) == [StartWorker(worker=1, pace=0.04)]
    probe.hear(WorkerEnded(worker=1, why="x"))
    probe.hear(SetPace(fast=False))
    assert probe.later(1) == [StartWorker(worker=2, pace=2.0)]


def test_fast_pace_leaves_a_call_its_four_seconds() -> None:
    """B1: 40 ms is how often, not how long a look may take."""
    probe = looking()
    probe.hear(SetPace(fast=True))
    probe.later(1)
    probe.sees()
    assert probe.later(4) == []
    assert KillWorker(worker=1) in probe.later(0.25)


@pytest.mark.parametrize("fast", [True, False])
def test_change_of_pace_never_shortens_the_time_of_a_call_under_way(fast: bool) -> None:
    """B1: the worker may be in a driver call that began under the old pace."""
    probe = looking()
    probe.hear(SetPace(fast=not fast))
    probe.sees()
    probe.later(1)
    probe.hear(SetPace(fast=fast))
    pace = FAST if fast else SLOW
    phase = probe.probe.phase
    assert isinstance(phase, Looking)
    assert phase.hear_by >= after(probe.now, Seconds(pace + 4.0))


def test_change_of_pace_does_not_cut_the_start_of_a_worker_short() -> None:
    """3.9: the first look keeps its fifteen seconds."""
    probe = PlayedProbe()
    probe.hear(ProbeTick())
    probe.hear(SetPace(fast=True))
    assert probe.later(14.75) == []
