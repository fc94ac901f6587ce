"""Who is started again, when, and when that is no use any more (see `supervisor/core.py`)."""

from dataclasses import dataclass, field

import pytest

from berth.actors.base import ActorDied, Pong
from berth.actors.journal.messages import Kept, KeptRead
from berth.actors.supervisor.core import Closed, Supervision, Up, decide, supervise
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
from berth.units import Instant, Seconds, after

CARES = {"journal": Care.VITAL, "card gpu0": Care.LIMITED, "probe gpu0": Care.ALWAYS}
KEPT = Kept(last_seq=5)
CARD, PROBE, JOURNAL = "card gpu0", "probe gpu0", "journal"


@dataclass
class Played:
    """A supervisor under play: children answer pings, and start when told to, unless listed."""

    now: Instant = Instant(1000.0)
    silent: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    slow_journal: bool = False
    never_up: bool = False
    said: list[tuple[float, SupervisorEffect]] = field(default_factory=list)
    state: Supervision = field(init=False)

    def __post_init__(self) -> None:
        self.state = supervise(CARES, self.now)

    def hear(self, event: SupervisorInbox) -> list[SupervisorEffect]:
        """Let it hear an event; play shell, journal and children to what it says."""
        self.state, effects = decide(self.state, event, self.now)
        for effect in effects:
            self.said.append((self.now - 1000.0, effect))
            match effect:
                case PingChild(role=role) if role not in self.silent:
                    self.hear(Pong(role, self.incarnation(role)))
                case PrepareChild(role=role, incarnation=number) if not self.slow_journal:
                    self.hear(KeptRead(role=role, incarnation=number, kept=KEPT))
                case StartChild(role=role, incarnation=number) if not self.never_up:
                    self.hear(ChildStarted(role=role, incarnation=number))
                case _:
                    pass
        return list(effects)

    def dies(self, role: str, incarnation: int | None = None) -> list[SupervisorEffect]:
        number = self.incarnation(role) if incarnation is None else incarnation
        return self.hear(ActorDied(role, number, "Traceback …\nKeyError: 'x'\n", None, ()))

    def later(self, seconds: float, step: float = 0.5) -> None:
        ends = after(self.now, Seconds(seconds))
        while self.now < ends:
            self.now = after(self.now, Seconds(min(step, ends - self.now)))
            self.hear(SupervisorTick(dead=frozenset(self.dead)))

    # --- what is seen -----------------------------------------------------------------------

    def incarnation(self, role: str) -> int:
        return self.state.children[role].incarnation

    def is_up(self, role: str) -> bool:
        return isinstance(self.state.children[role].phase, Up)

    def when(self, kind: type[SupervisorEffect], role: str = "") -> list[float]:
        """Return when effects of a kind (about a role) were said, in seconds from the start."""
        return [
            at
            for at, effect in self.said
            if isinstance(effect, kind) and role in {"", getattr(effect, "role", "")}
        ]

    def why(self) -> list[str]:
        """Return why berthd was given up."""
        return [effect.why for _, effect in self.said if isinstance(effect, GiveUp)]


# --- up -------------------------------------------------------------------------------------------


def test_children_are_pinged_every_five_seconds() -> None:
    """3.9: the deadline of `ping_at`; it fires at 5 s after the start or the last answer."""
    played = Played()
    played.later(4.5)
    assert played.when(PingChild) == []
    played.later(11)
    assert played.when(PingChild, CARD) == [5.0, 10.0, 15.0]


def test_child_is_not_pinged_again_before_it_has_answered() -> None:
    """One ping is out at a time: a slow actor is not buried under pings."""
    played = Played(silent={CARD})
    played.later(12)
    assert played.when(PingChild, CARD) == [5.0]


def test_child_that_answers_late_but_in_time_is_pinged_on() -> None:
    """3.9: the deadline of `answer_by` does not fire early, and an answer takes it away."""
    played = Played(silent={CARD})
    played.later(14.5)
    assert played.why() == []
    played.hear(Pong(CARD, 0))
    played.silent.clear()
    played.later(10)
    assert played.why() == []
    assert played.when(PingChild, CARD) == [5.0, 19.5, 24.5]


# --- hangs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [JOURNAL, CARD])
def test_hung_child_with_state_ends_berthd(role: str) -> None:
    """3.7: it may still be changing its state; the service manager starts berthd again."""
    played = Played(silent={role})
    played.later(14.5)
    assert played.why() == []
    played.later(0.5)
    assert played.why() == [f"{role} has not handled a message for 10s"]
    assert played.when(AbandonChild) == []


def test_hung_child_without_state_is_left_behind_and_started_anew() -> None:
    """3.7: a thread cannot be ended; its slot gets another one."""
    played = Played(silent={PROBE})
    played.later(15)
    assert played.when(AbandonChild, PROBE) == [15.0]
    played.silent.clear()
    played.later(1)
    assert played.when(StartChild, PROBE) == [16.0]
    assert (played.is_up(PROBE), played.incarnation(PROBE), played.why()) == (True, 1, [])


def test_words_of_an_earlier_incarnation_are_ignored() -> None:
    """3.5: a thread that was left behind may wake up and talk; it is not the child any more."""
    played = Played()
    played.dies(PROBE)
    played.later(1)
    before = played.state
    assert [type(effect) for effect in played.dies(PROBE, incarnation=0)] == [Report]
    assert played.hear(Pong(PROBE, 0)) == []
    assert played.hear(ChildStarted(role=PROBE, incarnation=0)) == []
    assert played.hear(KeptRead(role=PROBE, incarnation=0, kept=KEPT)) == []
    assert played.state == before


# --- dies -----------------------------------------------------------------------------------------


def test_death_is_reported_whoever_dies() -> None:
    """3.8: a crash report is written for each, also for a role that nobody knows."""
    played = Played()
    for role in (CARD, "stranger"):
        died = ActorDied(role, 0, "KeyError", None, ())
        assert played.hear(died)[0] == Report(died=died)


def test_death_of_a_vital_child_ends_berthd() -> None:
    """3.7: without its journal berthd must not go on."""
    played = Played()
    played.dies(JOURNAL)
    assert played.why() == ["journal failed: KeyError: 'x'"]
    assert played.when(PrepareChild) == []


def test_limited_child_is_started_again_at_once_from_what_the_journal_kept() -> None:
    """3.7: restart alone, its state replayed; nobody else notices."""
    played = Played()
    played.dies(CARD)
    played.later(0.5)
    (start,) = [effect for _, effect in played.said if isinstance(effect, StartChild)]
    assert (start.role, start.incarnation, start.kept) == (CARD, 1, KEPT)
    assert played.is_up(CARD)


def test_limited_child_is_closed_at_its_fourth_death_within_a_minute() -> None:
    """3.7: a replay that crashes closes the card instead of looping."""
    played = Played()
    for _ in range(3):
        played.dies(CARD)
        played.later(10)
        assert played.is_up(CARD)
    played.dies(CARD)
    assert played.when(CloseChild, CARD) == [30.0]
    assert played.state.children[CARD].phase == Closed()
    played.later(100)
    assert len(played.when(StartChild, CARD)) == 3


def test_limited_child_whose_deaths_are_spread_is_never_closed() -> None:
    """3.7: three in 60 s; what is older than that is forgiven."""
    played = Played()
    for _ in range(12):
        played.dies(CARD)
        played.later(20.5)
    assert played.when(CloseChild) == []
    assert played.is_up(CARD)


def test_deaths_of_one_child_are_not_counted_for_another() -> None:
    """Q8: a card that is closed takes no other along."""
    played = Played()
    for role in (CARD, PROBE, CARD, PROBE, CARD):
        played.dies(role)
        played.later(2.5)
    assert played.when(CloseChild) == []


def pauses(played: Played, deaths: int) -> list[float]:
    """Let a child die whenever it is up; return how long it took each time to be up again."""
    took = []
    for _ in range(deaths):
        died = played.now
        played.dies(PROBE)
        while not played.is_up(PROBE):
            played.later(0.5)
        took.append(played.now - died)
    return took


def test_child_without_state_is_started_again_after_pauses_that_double() -> None:
    """3.7: 1-2-4…30 s."""
    assert pauses(Played(), 6) == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


def test_pause_does_not_shrink_while_the_child_goes_on_dying() -> None:
    """3.7: 30 s is where it stays, for ever: a driver may come back tomorrow."""
    assert pauses(Played(), 10)[5:] == [30.0] * 5


def test_pause_is_short_again_after_a_calm_minute() -> None:
    """3.7: `deaths` are those of the last minute."""
    played = Played()
    played.dies(PROBE)
    played.later(61)
    died = played.now - 1000.0
    played.dies(PROBE)
    played.later(0.5)
    assert len(played.when(StartChild, PROBE)) == 1
    played.later(0.5)
    assert played.when(StartChild, PROBE)[-1] - died == 1.0


def test_thread_that_is_gone_without_a_word_counts_as_dead() -> None:
    """3.7: the sweep finds what neither a crash notice nor a ping tells."""
    played = Played(dead={PROBE})
    played.later(0.5)
    played.dead.clear()
    played.later(1)
    assert played.is_up(PROBE)
    assert played.incarnation(PROBE) == 1


def test_death_that_is_noticed_twice_counts_once() -> None:
    """3.7: a crash notice and the sweep speak of the same death."""
    played = Played()
    played.dies(CARD)
    played.dies(CARD)
    played.hear(SupervisorTick(dead=frozenset({CARD})))
    assert len(played.state.children[CARD].deaths) == 1


# --- starting -------------------------------------------------------------------------------------


def test_start_that_does_not_come_up_counts_as_a_death() -> None:
    """3.9: the deadline of `start_by`: up within 10 s, or it is tried again."""
    played = Played(never_up=True)
    played.dies(CARD)
    played.later(0.5)
    assert played.when(PrepareChild, CARD) == [0.5]
    played.later(9.5)
    assert played.when(PrepareChild, CARD) == [0.5]
    played.never_up = False
    played.later(1.5)
    assert played.when(PrepareChild, CARD) == [0.5, 11.0]
    assert (played.is_up(CARD), played.incarnation(CARD)) == (True, 2)


def test_start_that_never_comes_up_closes_a_limited_child() -> None:
    """3.7: a card whose replay hangs is closed like one whose replay crashes."""
    played = Played(never_up=True)
    played.dies(CARD)
    played.later(60)
    assert len(played.when(CloseChild, CARD)) == 1


def test_child_is_not_started_before_the_journal_has_spoken() -> None:
    """S6: it would start without the leases it holds."""
    played = Played(slow_journal=True)
    played.dies(CARD)
    played.later(5)
    assert played.when(StartChild) == []
    played.hear(KeptRead(role=CARD, incarnation=1, kept=KEPT))
    assert played.is_up(CARD)


def test_what_was_kept_for_a_stranger_is_ignored() -> None:
    """A role that is not there is not started."""
    assert Played().hear(KeptRead(role="stranger", incarnation=0, kept=KEPT)) == []


def test_closed_child_is_not_started_by_a_late_word_of_the_journal() -> None:
    """3.7: closed is for good: its neighbours have been told."""
    played = Played(slow_journal=True)
    played.dies(CARD)
    played.later(60)
    assert played.state.children[CARD].phase == Closed()
    played.hear(KeptRead(role=CARD, incarnation=played.incarnation(CARD), kept=KEPT))
    assert played.when(StartChild) == []


# --- standing down --------------------------------------------------------------------------------


def test_nothing_is_started_any_more_when_berthd_stops() -> None:
    """S3: stopping ends actors on purpose; that is no death."""
    played = Played(dead={PROBE}, slow_journal=True)
    played.dies(CARD)
    played.later(0.5)
    played.hear(StandDown())
    assert [type(effect) for effect in played.dies(JOURNAL)] == [Report]
    assert played.hear(KeptRead(role=CARD, incarnation=1, kept=KEPT)) == []
    said = len(played.said)
    played.later(60)
    assert len(played.said) == said
    assert played.why() == []
