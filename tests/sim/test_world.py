"""The whole broker in simulated worlds: whatever befalls them, nobody loses work."""

import pytest

from tests.sim.scenario import play

SEEDS = range(24)
STEPS = 12000


@pytest.mark.parametrize("seed", SEEDS)
def test_world_loses_nothing(seed: int) -> None:
    """No collision, no cut reply, no lost lease; by the end of the quiet everybody was served."""
    world = play(seed, STEPS)
    assert world.collisions == 0


def test_same_seed_plays_the_same_world() -> None:
    """A failure that cannot be played again cannot be understood."""
    one, other = play(3, 4000), play(3, 4000)
    assert list(one.story) == list(other.story)
    assert one.steps == other.steps
