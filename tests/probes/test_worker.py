"""The driver worker: what it is told and what it tells, over its pipe."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from berth.probes.simulated import simulated_cards
from berth.probes.source import CardSpec, Pace, Sight
from berth.probes.worker import watch_card
from berth.readings import Reading, Unknown, Unmeasured
from tests.nvml_stub import Nvml, StubCard, StubDriver
from tests.probes.machines import FakeMachine, spec_of

Install = Callable[..., StubDriver]

_SPAWN = multiprocessing.get_context("spawn")


@contextmanager
def worker(spec: CardSpec, pace: Pace) -> Iterator["Connection[Pace, Sight]"]:
    """Run a worker; what it sees comes out of the pipe."""
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=watch_card, args=(spec, there, pace), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        process.kill()
        process.join(timeout=10.0)
        here.close()


def hear(pipe: "Connection[Pace, Sight]") -> Sight:
    assert pipe.poll(20.0), "the worker says nothing"
    sight: Sight = pipe.recv()
    return sight


def why(sight: Sight) -> Unknown:
    assert isinstance(sight.look, Unmeasured), sight
    return sight.look.why


def test_suspended_card_is_read_as_soon_as_it_is_asked_for(tmp_path: Path) -> None:
    """B1: the next look comes with the wish, not with the next turn of the pace."""
    (tmp_path / "cards.toml").write_text(
        '[[card]]\ntotal_mib = 1000\nruntime_status = "suspended"\n'
    )
    (spec,) = simulated_cards(tmp_path)
    with worker(spec, Pace(3600.0)) as pipe:
        assert why(hear(pipe)) is Unknown.ASLEEP
        pipe.send(Pace(3600.0, wake=True))
        assert isinstance(hear(pipe).look, Reading)
        pipe.send(Pace(3600.0))
        assert why(hear(pipe)) is Unknown.ASLEEP


def test_xids_come_with_the_look_after_them(install: Install, machine: FakeMachine) -> None:
    """W3: each once; what was thrown before Berth looked is no news."""
    driver = install(StubCard())
    driver.throw_xid(0, 13)
    with worker(spec_of(machine, 0), Pace(3600.0)) as pipe:
        assert hear(pipe).xids == ()
        driver.throw_xid(0, 31)
        driver.throw_xid(0, 79)
        pipe.send(Pace(3600.0))
        assert hear(pipe).xids == (31, 79)
        pipe.send(Pace(3600.0))
        assert hear(pipe).xids == ()


def test_worker_whose_library_is_old_says_so(install: Install, machine: FakeMachine) -> None:
    """HP07: berthd replaces it."""
    driver = install(StubCard())
    driver.fail_init(Nvml.MISMATCH)
    with worker(spec_of(machine, 0), Pace(3600.0)) as pipe:
        sight = hear(pipe)
        assert (why(sight), sight.stale) == (Unknown.DRIVER_MISMATCH, True)
