"""The card's queue: whom to ask, who passes, who waits and why (Q2 to Q11)."""

import pytest

from berth.actors.card import core
from berth.actors.node.inbox import RequestStands
from berth.errors import Code
from berth.lease import Draining, Keeping, Running
from tests.cores.playing import Played


def test_higher_priority_comes_first_whenever_it_arrives() -> None:
    """Q1: the queue is in order of priority, then of arrival."""
    card = Played(total=1000)
    card.runs("a", None, pinned=True)
    card.asks("low", 100, priority="batch")
    card.asks("first", 100, priority="foreground")
    card.asks("second", 100, priority="foreground")
    assert [w.terms.name for w in card.card.queue] == ["first", "second", "low"]


def test_who_asked_again_after_a_restart_keeps_its_place() -> None:
    """S6: what a client had waited before counts."""
    card = Played(total=1000)
    card.runs("a", None, pinned=True)
    card.asks("new", 100)
    card.asks("old", 100, waited=50.0)
    assert [w.terms.name for w in card.card.queue] == ["old", "new"]


def test_crowd_that_comes_and_goes_is_settled_with_the_next_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands that leave at once must not have the card tell all the others each time."""
    monkeypatch.setattr(core, "CROWD", 20)
    card = Played(total=1000)
    card.runs("a", None, pinned=True)
    for number in range(22):
        card.asks(f"w{number}", 100)
    card.later(0.5)
    card.said.clear()
    card.withdraws("w0")
    card.asks("late", 100, priority="foreground")
    assert [one for one in card.to_node() if isinstance(one, RequestStands)] == []
    card.later(0.5)
    assert [one for one in card.to_node() if isinstance(one, RequestStands)] != []
    assert card.waits("late")
    assert not card.waits("w0")


def test_of_several_sets_the_lowest_priority_is_asked() -> None:
    """Q6: the highest priority touched decides before the number of members."""
    card = Played(total=1000)
    card.runs("big", 400, priority="interactive")
    card.runs("small", 300, priority="batch")
    card.runs("tiny", 300, priority="batch")
    card.later(5)
    card.asks("new", 500, priority="foreground")
    assert card.orders("big") == []
    assert card.orders("small") == card.orders("tiny") == ["drain"]


def test_nobody_is_asked_who_could_be_left_out() -> None:
    """Q6: a set with a superfluous member is no candidate."""
    card = Played(total=1000)
    card.runs("a", 200)
    card.runs("b", 300)
    card.runs("c", 500)
    card.later(5)
    card.asks("new", 450)
    assert (card.orders("a"), card.orders("b"), card.orders("c")) == ([], [], ["drain"])


def test_many_candidates_are_asked_without_a_superfluous_one() -> None:
    """Q6: beyond eight candidates a set is built; it still has no member that could be left out."""
    card = Played(total=2000)
    for number in range(12):
        card.runs(f"e{number}", 100 + number)
    card.later(5)
    free = 2000 - sum(100 + number for number in range(12))
    card.asks("new", free + 300)
    asked = [name for name in card.engines if card.orders(name)]
    gains = [100 + int(name[1:]) for name in asked]
    assert sum(gains) >= 300 > sum(gains) - min(gains)


def test_nobody_is_drained_when_even_all_of_them_would_not_do() -> None:
    """Q6: a drain that does not make room only costs somebody their engine."""
    card = Played(total=1000)
    card.runs("pinned", 600, pinned=True)
    card.runs("other", 300)
    card.later(5)
    card.asks("new", 500)
    assert card.orders("other") == []
    assert card.blockers("new") == [("pinned", "pinned")]


def test_engines_that_fit_together_are_left_together() -> None:
    """Q6 (HS05): nobody is asked while there is room beside."""
    card = Played(total=1000)
    card.runs("plan", 400)
    card.runs("act", 300)
    card.later(60)
    card.asks("third", 300)
    assert card.granted("third")
    assert card.orders("plan") == card.orders("act") == []


def test_two_waiters_share_one_drain_when_it_makes_room_for_both() -> None:
    """Q6: the second waiter asks only for what the first one's drain does not bring."""
    card = Played(total=1000)
    card.runs("big", 800)
    card.runs("small", 200)
    card.later(5)
    card.asks("one", 400)
    card.asks("two", 400)
    assert card.orders("big") == ["drain"]
    assert card.orders("small") == []


def test_job_takes_a_card_from_an_engine_of_its_priority_but_not_back() -> None:
    """Q2: a job has no boundary, so nobody of its own priority ends it."""
    card = Played(total=1000)
    card.runs("chat", 800)
    card.later(5)
    card.asks("train", 800, boundary=False)
    assert card.orders("chat") == ["drain"]
    card.says("chat", "released")
    card.later(1)
    card.started("train")
    card.asks("chat2", 800)
    assert card.orders("train") == []
    assert card.blockers("chat2") == [("train", "busy")]


def test_fail_closed_job_is_drained_by_nobody_not_even_a_hold() -> None:
    """Q2: only `berth stop` ends a job that was started with --fail-closed."""
    card = Played(total=1000)
    card.runs("train", 800, boundary=False, fail_closed=True, priority="batch")
    card.asks("me", None, priority="hold")
    assert card.orders("train") == []
    card.stop("train")
    assert card.orders("train") == ["stop"]


def test_turn_protects_from_everybody_but_a_hold() -> None:
    """Q4: until the turn ends only a hold drains the holder."""
    card = Played(total=1000)
    card.runs("a", 800, min_turn=60.0)
    card.later(5)
    card.asks("urgent", 800, priority="foreground", wait=500)
    assert card.blockers("urgent") == [("a", "in_turn")]
    card.later(56)
    assert card.orders("a") == ["drain"]


def test_hold_drains_within_a_turn() -> None:
    """Q4: a person comes before a turn."""
    card = Played(total=1000)
    card.runs("a", 800, min_turn=60.0, pinned=True)
    card.asks("me", None, priority="hold")
    assert card.orders("a") == ["drain"]


def test_engine_that_has_not_answered_is_asked_after_three_seconds() -> None:
    """Q11: ready without a request, it is left alone for 3 s."""
    card = Played(total=1000)
    card.asks("a", 800)
    card.started("a")
    card.uses("a", 800)
    card.says("a", "ready")
    card.asks("b", 800)
    assert card.blockers("b") == [("a", "starting")]
    card.later(2.5)
    assert card.orders("a") == []
    card.later(1.0)
    assert card.orders("a") == ["drain"]


def test_drain_for_who_has_left_is_not_taken_over_before_the_engine_has_answered() -> None:
    """Q11: who may not have it asked may not have it asked through somebody of higher priority."""
    card = Played(total=1000)
    card.asks("a", 800)
    card.started("a")
    card.uses("a", 800)
    card.says("a", "ready")
    card.asks("equal", 800)
    card.asks("passing", 800, priority="foreground", wait=0.0)
    assert not card.waits("passing")
    assert card.orders("a")[-1] == "continue"
    card.later(4.0)
    assert card.orders("a")[-1] == "drain"


def test_start_limit_ends_the_protection_of_a_start() -> None:
    """Q11: an engine that never gets ready may be asked after its start limit."""
    card = Played(total=1000)
    card.asks("a", 800, start_limit=60.0)
    card.started("a")
    card.asks("b", 800, wait=500)
    card.later(59)
    assert card.orders("a") == []
    card.later(5)
    assert card.orders("a") == ["drain"]


def test_small_waiter_does_not_pass_when_the_big_one_would_fit_later() -> None:
    """Q7: what is free now is kept for who is first, unless it would be left over."""
    card = Played(total=1000)
    card.runs("a", 600, pinned=True)
    card.asks("big", 800)
    card.asks("small", 201)
    assert card.blockers("small") == [("big", "first_in_line")]
    card.asks("tiny", 200)
    assert card.granted("tiny")


def test_passers_together_do_not_delay_the_first() -> None:
    """Q7: what one passer took is not there for the next."""
    card = Played(total=1000)
    card.runs("a", 600, pinned=True)
    card.asks("big", 800)
    card.asks("one", 150)
    card.asks("two", 150)
    assert card.granted("one")
    assert card.blockers("two") == [("big", "first_in_line")]


def test_nobody_passes_a_waiter_for_the_whole_card() -> None:
    """Q7: beside a whole-card lease nothing fits."""
    card = Played(total=1000)
    card.runs("a", 100, pinned=True)
    card.asks("whole", None)
    card.asks("tiny", 10)
    assert card.blockers("tiny") == [("whole", "first_in_line")]


def test_namesake_in_the_queue_holds_nobody_up() -> None:
    """R10: who waits for its own name's end is no reason for others to wait."""
    card = Played(total=1000)
    card.runs("a", 600)
    card.asks("a2", 600, behind="L1")
    card.asks("other", 300)
    assert card.granted("other")
    assert card.orders("a") == []


def test_refusal_says_pinned_when_a_pinned_holder_stood_there_to_the_end() -> None:
    """Q3: waited for like any other, but the code says why nothing could come of it."""
    card = Played(total=1000)
    card.runs("a", 800, pinned=True)
    card.asks("b", 500, wait=10)
    card.later(11)
    assert card.refusal("b") is Code.PINNED


def test_refusal_of_who_stands_behind_another_names_what_that_one_waits_for() -> None:
    """Q3: who is told only that another comes first looks in the wrong place."""
    card = Played(total=1000)
    card.runs("train", 800, boundary=False, fail_closed=True)
    card.asks("big", 900, wait=10)
    card.asks("small", 500, wait=10)
    card.later(11)
    for name, words in (("big", "train is a job"), ("small", "big comes first, and waits itself")):
        refused = card.refused(name)
        assert refused is not None
        assert words in refused.message
        assert refused.message.endswith("train is a job and runs to its end")
        assert "--" not in refused.hint, "a script has no flags"


def test_wait_of_zero_is_granted_or_refused_at_once() -> None:
    """Q3: a client may ask not to wait at all."""
    card = Played(total=1000)
    card.asks("a", 800, wait=0)
    card.asks("b", 800, wait=0)
    assert card.granted("a")
    assert card.refusal("b") is Code.WAIT_EXPIRED


def test_drain_that_another_waiter_needs_too_goes_on() -> None:
    """Q3: only a drain that nobody needs any more is called off."""
    card = Played(total=1000)
    card.runs("a", 900)
    card.later(5)
    card.asks("one", 500)
    card.asks("two", 400)
    card.withdraws("one")
    lease = card.lease("a")
    assert isinstance(lease, Draining)
    assert lease.wanted_by == card.engines["two"].request
    card.withdraws("two")
    assert isinstance(card.lease("a"), Keeping)
    assert card.orders("a") == ["drain", "continue"]


def test_holder_told_to_run_on_can_be_asked_again_at_once() -> None:
    """Q3: the next waiter need not wait until the holder has heard."""
    card = Played(total=1000)
    card.runs("a", 900)
    card.later(5)
    card.asks("one", 500)
    card.withdraws("one")
    card.asks("two", 500)
    assert card.orders("a") == ["drain", "continue", "drain"]
    card.says("a", "heard", attempt=2)
    assert isinstance(card.lease("a"), Draining)


def test_unheard_continue_counts_as_running_again() -> None:
    """Q3: the deadline of Keeping; a later drain will find out what became of the holder."""
    card = Played(total=1000)
    card.runs("a", 900)
    card.later(5)
    card.asks("one", 500)
    card.withdraws("one")
    card.later(6)
    assert isinstance(card.lease("a"), Running)


def test_order_is_answered_by_its_own_attempt_only() -> None:
    """H6: a late word to an order that was overtaken moves nothing."""
    card = Played(total=1000)
    card.runs("a", 900, drain_wait=10.0)
    card.later(5)
    card.asks("one", 500)
    card.says("a", "heard", attempt=0)
    lease = card.lease("a")
    assert isinstance(lease, Draining)
    assert lease.phase.value == "asked"


def test_closing_card_refuses_who_waits_and_who_comes() -> None:
    """A daemon that stops ends every wait, and leaves holders alone."""
    from berth.actors.card.messages import CloseCard  # noqa: PLC0415

    card = Played(total=1000)
    card.runs("a", 900)
    card.asks("b", 900)
    card.hear(CloseCard())
    card.asks("c", 10)
    assert card.refusal("b") is card.refusal("c") is Code.SHUTTING_DOWN
    assert "stop" not in card.orders("a")
