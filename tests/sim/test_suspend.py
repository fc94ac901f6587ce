"""The machine is suspended for ten hours at every second of a hand-over."""

import pytest

from berth.ids import CardName, Key
from berth.lease import Terms
from berth.readings import CardIdentity
from berth.units import Seconds
from tests.sim.clients import Client
from tests.sim.invariants import look, look_at_decision
from tests.sim.machine import Behaviour, Machine, SimCard
from tests.sim.world import World

TEN_HOURS = 36000.0
HOLDER_ASKS_AT = 3.0
LASTS = 32


def hand_over(suspended_at: float, wait: float = 300.0) -> tuple[World, Client, Client]:
    """Play a hand-over: a holder with replies in flight, a waiter 10 s later, one suspend."""
    gpu0 = CardIdentity(name=CardName("gpu0"), index=0, uuid="GPU-0")
    world = World(Machine([SimCard(identity=gpu0, total=1000, baseline=0)]), seed=1)
    world.watch_step, world.watch_decision = look, look_at_decision
    world.start_berthd()
    world.later(suspended_at, lambda: world.suspend(TEN_HOURS))
    world.play(world.now + HOLDER_ASKS_AT)
    one = world.add_client("one", _behaviour(), _terms("one", wait), ("gpu0",))
    world.play(world.now + 10.0)
    two = world.add_client("two", _behaviour(), _terms("two", wait), ("gpu0",))
    return world, one, two


def _behaviour() -> Behaviour:
    return Behaviour(
        mib=800, boundary=True, load_s=2.0, reply_s=6.0, pause_s=2.0, life_s=100.0, lingers_s=3.0
    )


def _terms(name: str, wait: float) -> Terms:
    return Terms(name=name, key=Key(f"key-{name}"), wait=Seconds(wait), boundary=True, wrapped=True)


@pytest.mark.parametrize("second", range(LASTS))
def test_hand_over_survives_a_suspend_at_this_second(second: int) -> None:
    """S8: readings are stale, what is in flight starts whole, the wait goes on; nothing is cut."""
    world, one, two = hand_over(second + 0.25)
    world.play(world.now + 40.0)
    assert (one.starts, two.starts) == (1, 1)
    assert one.status == 143, "it was asked, and ended at its boundary"
    assert two.engine is not None
    assert two.engine.alive
    assert world.wall() > world.now + TEN_HOURS - 1.0


def test_hand_over_is_in_flight_all_the_time() -> None:
    """The seconds above must cover it: it begins after the first and ends before the last."""
    world, one, two = hand_over(1e6)
    world.play(world.now - 0.1 + LASTS - HOLDER_ASKS_AT - 10.0)
    assert one.over
    assert two.starts == 1


def test_wait_that_is_slept_through_has_what_was_left_of_it() -> None:
    """S8: ten hours asleep are no wait; 20 s awake are."""
    world, one, two = hand_over(18.0, wait=20.0)
    one.behaviour.reply_s = 1000.0  # it stays busy: the waiter waits in vain
    world.play(world.now + 15.0)
    assert not two.over
    world.play(world.now + 10.0)
    assert (two.status, two.starts) == (75, 0)
