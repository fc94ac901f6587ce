"""What happens in the demo comes of the seed alone."""

from itertools import islice

import pytest

from berth.demo.crew import BASELINE_MIB, BROWSER, CHAT, CODER, ENGINES, GIANT, IMAGES, TOTAL_MIB
from berth.demo.play import CYCLE_S, PEOPLE, Act, chats_of, plan_cues

ROOM = TOTAL_MIB - BASELINE_MIB


def test_same_seed_is_same_load() -> None:
    """`--without` measures the load of the same seed: it has to be the same load."""
    assert plan_cues(7, 60.0) == plan_cues(7, 60.0)
    for person in PEOPLE:
        first, second = (list(islice(chats_of(person, 7), 50)) for _ in range(2))
        assert first == second


def test_another_seed_is_another_load() -> None:
    """Else --seed would be a flag that does nothing."""
    assert plan_cues(1, 30.0) != plan_cues(2, 30.0)
    assert list(islice(chats_of(PEOPLE[0], 1), 9)) != list(islice(chats_of(PEOPLE[0], 2), 9))


def test_no_two_people_say_the_same() -> None:
    """In step they would never meet a card at different times."""
    said = {tuple(islice(chats_of(person, 1), 20)) for person in PEOPLE}
    assert len(said) == len(PEOPLE)


@pytest.mark.parametrize("seconds", [10.0, 30.0])
def test_even_a_short_play_has_every_guest(seconds: float) -> None:
    """Whoever looks for ten seconds only is to see all of it."""
    assert {cue.act for cue in plan_cues(1, seconds)} == set(Act)


def test_guests_come_again_in_a_long_play() -> None:
    """A long play that goes quiet after half a minute shows nothing."""
    cues = plan_cues(1, 3 * CYCLE_S)
    for cycle in range(3):
        begins, ends = cycle * CYCLE_S, (cycle + 1) * CYCLE_S
        assert {cue.act for cue in cues if begins <= cue.at < ends} == set(Act), cycle


def test_cues_are_in_order_and_within_the_time() -> None:
    """They are worked off from the front."""
    for seed in range(50):
        times = [cue.at for cue in plan_cues(seed, 45.0)]
        assert times == sorted(times)
        assert all(0.0 <= at < 45.0 for at in times)


def test_crew_is_in_each_others_way() -> None:
    """A crew that fits beside each other would show no hand-off, one that never fits no play."""
    assert CHAT.mib + CODER.mib > ROOM
    assert CHAT.mib + IMAGES.mib <= ROOM < CODER.mib + IMAGES.mib
    assert all(role.mib <= ROOM - BROWSER.mib for role in ENGINES)
    assert len(GIANT.cards) == 2
