"""berthd is killed at every journal step of a grant, a drain and a re-attach: all of them walked.

One hand-over is played again and again, and berthd is killed once in each: before the n-th write of
its journal, or after it and before anything of it was told. It starts again 1 s later each time,
and in the end both engines have had the card, one after the other, and nothing was cut or lost.
"""

import pytest
from msgspec.structs import replace

from berth.ids import CardName, Key
from berth.lease import Terms
from berth.readings import CardIdentity
from berth.units import Seconds
from tests.sim.clients import Client
from tests.sim.invariants import look
from tests.sim.machine import Behaviour, Machine, SimCard
from tests.sim.world import World

LAST_STEP = 24
"""More writes than one hand-over takes; `test_every_step_was_walked` sees to that."""


def hand_over(kill_at: int, when: str) -> tuple[World, list[Client]]:
    """Play a hand-over in which berthd dies at that write, `before` or `after` it is on disk."""
    gpu0 = CardIdentity(name=CardName("gpu0"), index=0, uuid="GPU-0")
    world = World(Machine([SimCard(identity=gpu0, total=1000, baseline=0)]), seed=1)
    world.watch_step = look
    world.start_berthd()
    world.play(world.now + 3.0)
    writes = 0
    write = world.write

    def counted(effect: object) -> object:
        nonlocal writes
        writes += 1
        if writes != kill_at:
            return write(effect)
        if when == "after":
            write(effect)
        world.kill_berthd()
        world.later(1.0, world.start_berthd)
        return None

    world.write = counted  # type: ignore[method-assign]  # the kernel kills
    clients = [
        world.add_client(name, _behaviour(), _terms(name), ("gpu0",)) for name in ("one", "two")
    ]
    world.play(world.now + 400.0)
    world.steps_written = writes
    return world, clients


def _behaviour() -> Behaviour:
    return Behaviour(mib=800, boundary=True, load_s=2.0, reply_s=3.0, pause_s=2.0, life_s=60.0)


def _terms(name: str) -> Terms:
    return Terms(
        name=name, key=Key(f"key-{name}"), wait=Seconds(300.0), boundary=True, wrapped=True
    )


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", range(1, LAST_STEP + 1))
def test_hand_over_survives_a_kill_at_this_step(step: int, when: str) -> None:
    """S6: whatever a client has seen holds; what nobody has seen may be asked again."""
    world, clients = hand_over(step, when)
    assert [client.starts for client in clients] == [1, 1], "both had the card, once"
    assert [client.over for client in clients] == [True, True]
    assert clients[0].status in {0, 143}
    assert world.disk.leases == {}


def test_every_step_was_walked() -> None:
    """A hand-over that learns to write more must not have steps that nobody walks."""
    world, _ = hand_over(kill_at=0, when="never")
    assert 8 < world.steps_written <= LAST_STEP


def test_berthd_that_stays_away_for_an_hour_finds_everybody_as_they_were() -> None:
    """S6, R4: the holder runs on and comes back; the waiter waits as long as it wanted."""
    gpu0 = CardIdentity(name=CardName("gpu0"), index=0, uuid="GPU-0")
    world = World(Machine([SimCard(identity=gpu0, total=1000, baseline=0)]), seed=1)
    world.watch_step = look
    world.start_berthd()
    world.play(world.now + 3.0)
    long_life = Behaviour(
        mib=800, boundary=True, load_s=2.0, reply_s=3.0, pause_s=2.0, life_s=9000.0
    )
    pinned = replace(_terms("holder"), pinned=True)
    holder = world.add_client("holder", long_life, pinned, ("gpu0",))
    world.play(world.now + 10.0)
    waiter = world.add_client("waiter", _behaviour(), _terms("waiter"), ("gpu0",))
    world.play(world.now + 0.05)
    world.kill_berthd()
    world.play(world.now + 200.0)
    assert not waiter.over
    world.play(world.now + 3400.0)
    assert (waiter.starts, waiter.status) == (0, 75), "a waiter never turns unprotected"
    assert holder.engine is not None
    assert holder.engine.alive
    lease = holder.lease
    world.start_berthd()
    world.play(world.now + 30.0)
    assert holder.engine.alive
    assert holder.lease == lease
    held = [one.id for one in world.actors["card gpu0"].state.leases]
    assert held == [lease]
