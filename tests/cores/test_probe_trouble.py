"""A probe whose worker cannot be killed, whose library is old, whose card sleeps or throws Xids."""

from itertools import pairwise

from berth.actors.card.messages import CardRead, CardUnread, SetPace, XidThrown
from berth.probes.core import FORGET_AFTER, Ending, Idle
from berth.probes.messages import (
    KillWorker,
    PaceWorker,
    ProbeEffect,
    ProbeTick,
    StartWorker,
    WorkerEnded,
    WorkerSaw,
)
from berth.probes.xids import meaning
from berth.readings import Unknown, Unmeasured
from tests.cores.playing_probe import PlayedProbe, looking, reading

MISMATCH = Unmeasured(Unknown.DRIVER_MISMATCH, "reboot")
ASLEEP = Unmeasured(Unknown.ASLEEP, "it sleeps")


# --- a worker that SIGKILL does not end -----------------------------------------------------------


def test_no_other_worker_is_started_beside_one_that_does_not_end() -> None:
    """A call stuck in the kernel outlives SIGKILL; one more process a minute would be a leak."""
    probe = looking()
    probe.killable = False
    assert KillWorker(worker=1) in probe.later(6)
    assert isinstance(probe.probe.phase, Ending)
    assert probe.later(600, step=1) == []
    assert probe.hear(WorkerEnded(worker=1, why="at last")) == []
    assert probe.hear(ProbeTick()) == [StartWorker(worker=2, pace=2.0)]


def test_worker_that_never_ends_is_left_behind_after_an_hour() -> None:
    """The deadline of that wait: the driver may have come back for everybody else."""
    probe = looking()
    probe.killable = False
    probe.later(6)
    assert probe.later(FORGET_AFTER - 1, step=0.5) == []
    assert probe.later(1) == [StartWorker(worker=2, pace=2.0)]
    assert probe.hear(WorkerEnded(worker=1, why="much later")) == []


def test_pause_of_a_hung_worker_stands_though_it_ends_at_once() -> None:
    """A driver that hangs is not asked again in the same moment."""
    probe = looking()
    probe.later(6)
    assert isinstance(probe.probe.phase, Idle)
    assert probe.later(0.75) == []
    assert probe.later(0.25) == [StartWorker(worker=2, pace=2.0)]


# --- a library that no longer matches the driver --------------------------------------------------


def stale(probe: PlayedProbe, worker: int) -> list[ProbeEffect]:
    return probe.hear(WorkerSaw(worker=worker, look=MISMATCH, stale=True))


def test_worker_with_an_old_library_is_replaced() -> None:
    """HP07: only a new process can load the new library. The card hears why it is unread, once."""
    probe = looking()
    assert stale(probe, 1) == [CardUnread(why=MISMATCH), KillWorker(worker=1)]
    assert probe.later(1) == [StartWorker(worker=2, pace=2.0)]
    (read,) = probe.sees(2)
    assert isinstance(read, CardRead)


def test_mismatch_that_stays_is_looked_at_more_and_more_slowly() -> None:
    """Until the reboot no worker helps: a process a second would be a load on the machine."""
    probe = looking()
    for worker in range(1, 8):
        stale(probe, worker)
        while probe.rests():
            probe.later(0.25)
    starts = probe.when(StartWorker)[1:]
    pauses = [later - one for one, later in pairwise(starts)]
    assert pauses == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


# --- a card that sleeps ---------------------------------------------------------------------------


def test_worker_is_told_to_wake_the_card_at_once() -> None:
    """B1: a request wakes it; the worker looks as soon as it hears."""
    probe = looking()
    probe.hear(WorkerSaw(worker=1, look=ASLEEP))
    waking = probe.hear(SetPace(fast=False, wake=True))
    assert waking == [PaceWorker(worker=1, pace=2.0, wake=True)]
    assert probe.hear(SetPace(fast=False, wake=True)) == []
    assert probe.hear(SetPace(fast=False)) == [PaceWorker(worker=1, pace=2.0)]


def test_next_worker_wakes_the_card_as_well() -> None:
    """B1: the wish outlives the worker that was told of it."""
    probe = PlayedProbe()
    probe.hear(SetPace(fast=False, wake=True))
    assert probe.hear(ProbeTick()) == [StartWorker(worker=1, pace=2.0, wake=True)]


def test_card_that_wakes_has_the_time_of_a_cold_start() -> None:
    """A laptop's card takes seconds to wake; 4 s are for calls into one that is awake."""
    probe = looking()
    probe.hear(WorkerSaw(worker=1, look=ASLEEP))
    probe.hear(SetPace(fast=False, wake=True))
    assert probe.later(14.75) == []
    assert KillWorker(worker=1) in probe.later(0.25)


def test_card_that_is_awake_has_no_longer_than_any_other_call() -> None:
    """B1: a request on a card that is awake is no excuse for a hung driver."""
    probe = looking()
    probe.hear(SetPace(fast=False, wake=True))
    assert KillWorker(worker=1) in probe.later(6)


# --- Xids -----------------------------------------------------------------------------------------


def throws(probe: PlayedProbe, *xids: int) -> list[XidThrown]:
    said = probe.hear(WorkerSaw(worker=1, look=reading(probe.now), xids=xids))
    return [effect for effect in said if isinstance(effect, XidThrown)]


def test_xid_is_told_at_once_and_counted() -> None:
    """A fault that comes three times between two looks is one fault, three times."""
    probe = looking()
    told = throws(probe, 31, 79, 31, 31)
    assert told == [XidThrown(xid=31, times=3), XidThrown(xid=79, times=1)]


def test_xid_that_keeps_coming_is_told_once_a_minute() -> None:
    """A card can throw the same one for days; the events are for people."""
    probe = looking()
    assert throws(probe, 31) == [XidThrown(xid=31, times=1)]
    for _ in range(28):
        probe.later(2)
        assert throws(probe, 31, 31) == []
    assert probe.later(3.75) == []
    assert probe.later(0.25) == [XidThrown(xid=31, times=56)]
    assert throws(probe, 79) == [XidThrown(xid=79, times=1)]


def test_xid_after_a_quiet_minute_is_news_again() -> None:
    """Nothing is left of one that came once, and nothing is told of it twice."""
    probe = looking()
    throws(probe, 31)
    for _ in range(30):
        probe.later(2)
        assert throws(probe) == []
    assert probe.probe.xids == {}
    assert throws(probe, 31) == [XidThrown(xid=31, times=1)]


def test_xids_of_a_worker_that_was_given_up_are_not_told() -> None:
    """It is of the past, and its successor hears what comes."""
    probe = looking()
    probe.later(7)
    assert throws(probe, 31) == []


def test_unknown_xid_has_a_sentence_too() -> None:
    """Nobody should read a bare number."""
    assert meaning(79) == "Xid 79: the card fell off the bus"
    assert "Xid 999" in meaning(999)
