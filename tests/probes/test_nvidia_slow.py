"""NVIDIA cards that sleep, answer late, or never answer."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from berth.probes.nvidia import NvidiaSource
from berth.probes.sleep import LEFT_ALONE, QUIET_FOR
from berth.readings import Look, Unknown, Unmeasured
from tests.nvml_stub import FOREVER, GIB, Row, StubCard, StubDriver
from tests.probes.machines import FakeMachine, ManualClock, address, as_reading, spec_of

Install = Callable[..., StubDriver]
Watch = Callable[..., NvidiaSource]

_LOOK_ONCE = """
import sys
from berth.ids import CardName
from berth.probes.nvidia import NvidiaSource
from berth.probes.source import NvidiaCard
from berth.readings import CardIdentity
identity = CardIdentity(name=CardName("gpu0"), index=0, pci=sys.argv[1])
print(NvidiaSource(NvidiaCard(identity=identity)).read().total)
"""


def asleep(look: Look) -> bool:
    return isinstance(look, Unmeasured) and look.why is Unknown.ASLEEP


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait, at most ten seconds."""
    deadline = time.monotonic() + 10
    pause = threading.Event()
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        pause.wait(0.005)


def test_sleeping_card_is_not_woken(install: Install, watch: Watch, machine: FakeMachine) -> None:
    """B1: a look at a laptop's card would cost its battery; the driver is not even opened."""
    driver = install(StubCard())
    machine.card(address(0), status="suspended")
    assert asleep(watch().read())
    assert driver.calls() == 0


def test_sleeping_card_that_is_asked_for_is_woken(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """B1: a request wakes the card, and its grant waits for the reading."""
    install(StubCard(total=8 * GIB))
    machine.card(address(0), status="suspended")
    assert as_reading(watch().read(wake=True)).total == 8192


def test_card_that_wakes_by_itself_is_read(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """Somebody else may have woken it: a game, a screen."""
    install(StubCard())
    machine.card(address(0), status="suspending")
    source = watch()
    assert asleep(source.read())
    machine.card(address(0), status="active")
    as_reading(source.read())


def test_unused_card_is_let_go_so_that_it_can_sleep(
    install: Install, watch: Watch, machine: FakeMachine, clock: ManualClock
) -> None:
    """An open session keeps a laptop's card awake for ever, even one that only reads."""
    driver = install(StubCard())
    machine.power_saving(address(0), "Enabled (fine-grained)")
    source = watch()
    as_reading(source.read())
    clock.later(QUIET_FOR)
    assert asleep(source.read())
    assert driver.calls("nvmlShutdown") == 1
    clock.later(LEFT_ALONE / 2)
    assert asleep(source.read())
    as_reading(source.read(wake=True))
    clock.later(LEFT_ALONE / 2)
    as_reading(source.read())


def test_card_that_something_else_keeps_awake_is_let_go_ever_more_rarely(
    install: Install, watch: Watch, machine: FakeMachine, clock: ManualClock
) -> None:
    """A screen on it keeps it awake: half the time unread, for nothing, would be worse."""
    machine.power_saving(address(0), "Enabled (fine-grained)")
    machine.card(address(0))
    install(StubCard())
    source = watch()
    unread = []
    for _ in range(1000):
        if asleep(source.read()):
            unread.append(clock.now - 1000)
        clock.later(2.0)
    assert len(unread) < 0.1 * 1000
    last = unread[-1]
    machine.card(address(0), status="suspended")
    assert asleep(source.read())
    machine.card(address(0))
    as_reading(source.read())
    clock.later(QUIET_FOR)
    assert asleep(source.read()), f"once it slept it is given its chance again ({last})"


def test_used_card_is_never_let_go(
    install: Install, watch: Watch, machine: FakeMachine, clock: ManualClock
) -> None:
    """A card with a process on it is awake anyway."""
    machine.process(12, "engine")
    machine.power_saving(address(0), "Enabled (coarse-grained)")
    install(StubCard(rows=(Row(12, GIB),)))
    source = watch()
    for _ in range(4):
        as_reading(source.read())
        clock.later(QUIET_FOR)


def test_card_that_never_sleeps_is_never_let_go(
    install: Install, watch: Watch, machine: FakeMachine, clock: ManualClock
) -> None:
    """A workstation's idle card is read every 2 s, or nothing could be granted at once."""
    machine.power_saving(address(0), "Disabled by default")
    install(StubCard())
    source = watch()
    for _ in range(4):
        as_reading(source.read())
        clock.later(QUIET_FOR)


def test_reading_is_as_old_as_its_first_call(install: Install, machine: FakeMachine) -> None:
    """H1: memory freed while a slow driver answers may still be in the figures it gives."""
    driver = install(StubCard(delay_ms=1))
    source = NvidiaSource(spec_of(machine, 0), clock=lambda: float(driver.calls()))
    readings = [as_reading(source.read()) for _ in range(2)]
    source.close()
    opening = driver.trace().index("nvmlDeviceGetMemoryInfo_v2") + 1
    first, second = (int(reading.taken) for reading in readings)
    assert first == 0 < opening < second
    assert driver.trace()[second] == "nvmlEventSetWait_v2"


def test_call_that_never_ends_ends_with_its_process(install: Install, watch: Watch) -> None:
    """B1: a hung call costs one worker; the other card is read meanwhile, and so is this later."""
    driver = install(StubCard(delay_ms=FOREVER), StubCard(total=8 * GIB))
    worker = subprocess.Popen(
        [sys.executable, "-c", _LOOK_ONCE, address(0)], env=os.environ, stdout=subprocess.PIPE
    )
    try:
        wait_until(lambda: driver.calls("nvmlDeviceGetHandleByPciBusId_v2") > 0)
        assert as_reading(watch(1).read()).total == 8192
        assert worker.poll() is None
    finally:
        worker.kill()
        said, _ = worker.communicate(timeout=10)
    assert said == b""
    driver.change(0, delay_ms=0)
    as_reading(watch(0).read())
