"""The whole broker in simulated worlds: whatever befalls them, nobody loses work."""

import random

import pytest

from tests.sim.scenario import MANY_CARDS, Scenario, play

SEEDS = range(24)
STEPS = 12000


@pytest.mark.parametrize("seed", SEEDS)
def test_world_loses_nothing(seed: int) -> None:
    """No collision, no cut reply, no lost lease; by the end of the quiet everybody was served."""
    world = play(seed, STEPS)
    assert world.collisions == 0


@pytest.mark.parametrize("seed", range(8))
def test_several_cards_are_granted_all_or_none(seed: int) -> None:
    """M2: no deadlock, no half grant, nobody starves, whichever actor dies in the middle."""
    world = play(seed, STEPS, MANY_CARDS)
    assert world.collisions == 0
    assert world.granted_on_several > 0


def test_same_seed_plays_the_same_world() -> None:
    """A failure that cannot be played again cannot be understood."""
    one, other = play(3, 4000), play(3, 4000)
    assert list(one.story) == list(other.story)
    assert one.steps == other.steps


def test_clock_on_the_wall_changes_nothing_but_what_people_read() -> None:
    """S8: set forward, set back, by years, at every single event: not one decision is another."""
    steady, jumping = Scenario(5), Scenario(5)
    wall = random.Random(1)
    jumping.world.wall = lambda: wall.uniform(0.0, 4e9)
    for scenario in (steady, jumping):
        scenario.play(6000)
    assert list(jumping.world.story) == list(steady.world.story)
    assert jumping.world.steps == steady.world.steps
    assert jumping.world.disk.leases == steady.world.disk.leases
