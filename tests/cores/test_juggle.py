"""The juggle guard: engines that take a card from each other have to work in between (Q5)."""

import pytest
from msgspec.structs import replace

from berth.actors.card.obstacles import obstacle
from berth.errors import Code
from berth.units import Seconds
from tests.cores.playing import Played

LOADS_S = 20.0


def take(card: Played, name: str, from_: str, *, works: float) -> None:
    """Let `name` take the card from `from_`: it asks, waits for its turn, loads for 20 s, works."""
    card.asks(name, 900, wait=10000.0)
    card.later(1)
    assert card.orders(from_)[-1:] == ["drain"], f"{from_} keeps its turn"
    card.gives_back(from_)
    card.uses(from_, None)
    card.later(1)
    assert card.granted(name)
    start(card, name, works)


def start(card: Played, name: str, works: float) -> None:
    card.started(name)
    card.uses(name, 900)
    card.later(LOADS_S - 2.0)
    card.says(name, "ready")
    card.says(name, "served")
    card.later(works)


def fought(card: Played, takes: int, works: float = 10.0) -> str:
    """Let `a` and `b` take the card from each other so many times; return who has it."""
    card.asks("a", 900)
    start(card, "a", works)
    for number in range(takes):
        taker, giver = ("b", "a") if number % 2 == 0 else ("a", "b")
        take(card, taker, giver, works=works)
    return "b" if takes % 2 else "a"


def test_third_switch_within_ten_minutes_starts_the_guard() -> None:
    """Q5: 3 times in 10 minutes; the next taker waits, and is told for how long."""
    card = Played(total=1000)
    holder = fought(card, 3)
    card.asks("a", 900, wait=10000.0)
    assert card.orders(holder)[-1:] != ["drain"]
    assert card.blockers("a") == [(holder, "juggle")]
    (row,) = [one for one in card.shown().waiting if one.name == "a"]
    assert row.code == "outranked"
    assert row.blockers[0].left_s is not None


def test_two_switches_are_no_quarrel() -> None:
    """Q5: the last switch wins as long as it does not go on and on."""
    card = Played(total=1000)
    holder = fought(card, 2)
    card.asks("b", 900)
    assert card.orders(holder)[-1:] == ["drain"]


def test_guarded_turn_is_work_for_four_times_a_switch_and_pays_back() -> None:
    """Q5: at least 4 x 20 s of work; three early switches are made up for, up to twice as long."""
    card = Played(total=1000)
    holder = fought(card, 3, works=10.0)
    card.asks("a", 900, wait=10000.0)
    waited = 0.0
    while card.orders(holder)[-1:] != ["drain"]:
        card.later(2)
        waited += 2
        assert waited < 300
    worked = waited + 10.0
    assert 2 * 4 * 19 <= worked <= 2 * 4 * 21


def test_the_longer_of_guard_and_turn_is_what_is_told() -> None:
    """Q4, Q5: the end of the shorter lets no order go out, so it is no time to reckon with."""
    card = Played(total=1000)
    holder = fought(card, 3)
    card.asks("a", 900, wait=10000.0)
    lease = card.lease(holder)
    assert lease is not None
    for turn, how in ((60.0, "juggle"), (400.0, "in_turn")):
        terms = replace(lease.terms, min_turn=Seconds(turn))
        kept = replace(lease, held=replace(lease.held, terms=terms))
        told = obstacle(card.card.with_change(lease, kept), card.card.queue[0], kept, card.now)
        assert told is not None
        assert told.how == how
        assert (told.left or 0.0) > 60.0


def test_guard_refuses_as_outranked_when_the_wait_runs_out() -> None:
    """Q5: with that code."""
    card = Played(total=1000)
    fought(card, 3)
    card.asks("a", 900, wait=5.0)
    card.later(6)
    assert card.refusal("a") is Code.OUTRANKED


@pytest.mark.parametrize("priority", ["foreground", "hold"])
def test_guard_is_for_equals_only(priority: str) -> None:
    """Q5: a higher priority and a person take the card at once."""
    card = Played(total=1000)
    holder = fought(card, 3)
    card.asks("a", 900, priority=priority)
    assert card.orders(holder)[-1:] == ["drain"]


def test_third_engine_is_not_made_to_wait_for_their_quarrel() -> None:
    """Q5: it is between the two."""
    card = Played(total=1000)
    holder = fought(card, 3)
    card.asks("c", 900)
    assert card.orders(holder)[-1:] == ["drain"]


def test_quarrel_is_forgotten_after_ten_minutes() -> None:
    """Q5: the window."""
    card = Played(total=1000)
    holder = fought(card, 3)
    card.later(601, step=2.0)
    assert card.card.switches == ()
    card.asks("a", 900)
    assert card.orders(holder)[-1:] == ["drain"]


def test_who_left_before_its_grant_took_nothing_from_anybody() -> None:
    """Q5: a switch is a grant, not an order."""
    card = Played(total=1000)
    card.asks("a", 900)
    start(card, "a", 10.0)
    card.asks("b", 900)
    card.gives_back("a")
    card.withdraws("b")
    card.later(2)
    assert (card.card.given, card.card.switches) == ({}, ())


def test_ten_minutes_of_fight_are_work_for_four_fifths() -> None:
    """Q5: a switch of 20 s; neither waits for more than twice its share."""
    card = Played(total=1000)
    card.asks("a", 900, wait=10000.0)
    start(card, "a", 0.0)
    begun, holder, switching, longest = card.now, "a", 0.0, 0.0
    while card.now < begun + 600.0:
        taker = "b" if holder == "a" else "a"
        card.asks(taker, 900, wait=10000.0)
        asked = card.now
        while card.orders(holder)[-1:] != ["drain"]:
            card.later(2)
            assert card.now < asked + 300.0
        ordered = card.now
        card.gives_back(holder)
        card.uses(holder, None)
        card.later(2)
        start(card, taker, 3.0)
        switching += max(0.0, min(LOADS_S, begun + 600.0 - ordered))
        longest = max(longest, ordered - asked)
        holder = taker
    assert 1 - switching / 600.0 >= 0.8
    assert longest <= 2 * 5 * LOADS_S
