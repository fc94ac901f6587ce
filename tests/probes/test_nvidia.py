"""A reading of an NVIDIA card: its memory, its health, in which order they are asked (B1)."""

from collections.abc import Callable

import pynvml
import pytest

from berth.probes.nvidia import NvidiaSource
from berth.readings import UNTOLD, Health, Unknown, Unmeasured
from tests.nvml_stub import GIB, MIB, Nvml, Row, StubCard, StubDriver
from tests.probes.machines import (
    CASES,
    FakeMachine,
    ManualClock,
    as_reading,
    spec_of,
    told_by,
)

Install = Callable[..., StubDriver]
Watch = Callable[..., NvidiaSource]


def test_used_is_everything_that_is_not_free(install: Install, watch: Watch) -> None:
    """What the driver keeps for itself is no room for a lease, so it counts as used and by name."""
    install(StubCard(total=24564 * MIB, reserved=420 * MIB, used=8203 * MIB))
    reading = as_reading(watch().read())
    assert (reading.total, reading.used, reading.reserved) == (24564, 8623, 420)
    assert reading.free == 15941


def test_rounding_never_makes_room(install: Install, watch: Watch) -> None:
    """Half a MiB of room is none, and half a MiB in use is one."""
    install(StubCard(total=100 * MIB + 5, reserved=1, used=1))
    reading = as_reading(watch().read())
    assert (reading.total, reading.used, reading.reserved) == (100, 1, 1)


def test_more_free_than_there_is_is_all_free(install: Install, watch: Watch) -> None:
    """A driver whose figures do not add up must not make a negative one (B5)."""
    install(StubCard(total=GIB, free=2 * GIB))
    assert as_reading(watch().read()).used == 0


def test_health_comes_in_units_for_people(install: Install, watch: Watch) -> None:
    """NVML speaks of milliwatts; a person reads watts."""
    install(StubCard())
    assert as_reading(watch().read()).health == Health(
        utilisation_pct=7.0, temperature_c=41.0, power_w=31.25, power_limit_w=350.0, fan_pct=30.0
    )


def test_figure_a_card_does_not_tell_is_unmeasured_and_not_asked_again(
    install: Install, watch: Watch, clock: ManualClock
) -> None:
    """A card without a fan has no fan at 0 %, and need not be asked 25 times a second."""
    driver = install(StubCard(fan=None, power_mw=None))
    source = watch()
    for _ in range(3):
        health = as_reading(source.read()).health
        assert (health.fan_pct, health.power_w) == (UNTOLD, UNTOLD)
        clock.later(2.0)
    assert driver.calls("nvmlDeviceGetFanSpeed") == 1


def test_health_is_asked_once_a_second(install: Install, watch: Watch, clock: ManualClock) -> None:
    """Readings come every 40 ms while a card changes hands; heat does not change that fast."""
    driver = install(StubCard(temperature=50))
    source = watch()
    for _ in range(10):
        source.read()
        clock.later(0.04)
    assert driver.calls("nvmlDeviceGetTemperature") == 1
    driver.change(0, temperature=60)
    clock.later(1.0)
    assert as_reading(source.read()).health.temperature_c == 60.0


def test_odd_trouble_with_one_figure_costs_that_figure_only(install: Install, watch: Watch) -> None:
    """A fan that cannot be read is no reason to stop governing the card."""
    driver = install(StubCard())
    driver.refuse("nvmlDeviceGetFanSpeed", Nvml.UNKNOWN)
    fan = as_reading(watch().read()).health.fan_pct
    assert isinstance(fan, Unmeasured)
    assert fan.why is Unknown.FAILED


def test_card_lost_while_its_heat_is_asked_is_lost(install: Install, watch: Watch) -> None:
    """The memory figures of a moment ago are those of a card that is gone."""
    driver = install(StubCard())
    driver.refuse("nvmlDeviceGetUtilizationRates", Nvml.LOST)
    look = watch().read()
    assert isinstance(look, Unmeasured)
    assert look.why is Unknown.LOST


def test_processes_are_asked_for_before_the_memory(install: Install, watch: Watch) -> None:
    """Memory that is freed between the two calls counts twice; the other way round not at all."""
    driver = install(StubCard())
    source = watch()
    source.read()
    since = len(driver.trace())
    source.read()
    asked = driver.trace(since)
    last = max(at for at, name in enumerate(asked) if name.endswith("RunningProcesses_v3"))
    assert last < asked.index("nvmlDeviceGetMemoryInfo_v2")


def test_one_session_for_the_life_of_the_worker(
    install: Install, watch: Watch, clock: ManualClock
) -> None:
    """A new session costs a driver up to 1.5 s on a machine without persistence."""
    driver = install(StubCard())
    source = watch()
    for _ in range(5):
        as_reading(source.read())
        clock.later(2.0)
    source.close()
    assert driver.calls("nvmlInitWithFlags") == driver.calls("nvmlShutdown") == 1


@pytest.mark.parametrize("code", [Nvml.FUNCTION_NOT_FOUND, Nvml.WRONG_VERSION])
def test_older_driver_is_read_by_older_calls(install: Install, watch: Watch, code: Nvml) -> None:
    """Version 1 has the reserved memory inside used, so the reading stays the same."""
    card = StubCard(total=GIB, reserved=100 * MIB, used=200 * MIB, rows=(Row(11, 50 * MIB),))
    driver = install(card)
    driver.refuse("nvmlDeviceGetMemoryInfo_v2", code)
    driver.refuse("nvmlDeviceGetComputeRunningProcesses_v3", code)
    source = watch()
    reading = as_reading(source.read())
    assert (reading.total, reading.used, reading.reserved) == (1024, 300, 0)
    source.read()
    assert driver.calls("nvmlDeviceGetComputeRunningProcesses_v2") == 2
    assert driver.calls("nvmlDeviceGetMemoryInfo_v2") == 1


@pytest.mark.skipif(
    not hasattr(pynvml, "nvmlDeviceGetTemperatureV"), reason="this nvidia-ml-py has one call only"
)
def test_newer_driver_is_asked_for_its_heat_in_the_newer_way(
    install: Install, watch: Watch
) -> None:
    """NVIDIA has deprecated the older call, so one day it is not there."""
    install(StubCard()).refuse("nvmlDeviceGetTemperature", Nvml.FUNCTION_NOT_FOUND)
    assert as_reading(watch().read()).health.temperature_c == 41.0


def test_wsl_without_rows_and_events_is_read(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """Windows names no processes and throws no Xids; the card's own figures are still right."""
    machine.write("proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n")
    driver = install(StubCard(total=8 * GIB, reserved=0, used=3 * GIB))
    for kind in ("Compute", "Graphics", "MPSCompute"):
        driver.refuse(f"nvmlDeviceGet{kind}RunningProcesses_v3", Nvml.NOT_SUPPORTED)
        driver.refuse(f"nvmlDeviceGet{kind}RunningProcesses_v2", Nvml.NOT_SUPPORTED)
    driver.refuse("nvmlEventSetCreate", Nvml.NOT_SUPPORTED)
    source = watch()
    reading = as_reading(source.read())
    assert (reading.used, reading.processes, source.xids) == (3072, (), [])


def test_unified_memory_is_the_machines(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """HP02: NVML knows no size for a GB10; /proc/meminfo does (HP02b)."""
    machine.write("proc/meminfo", (CASES / "HP02b-meminfo.txt").read_text())
    install(*told_by("HP02-unified-memory-na.csv"))
    reading = as_reading(watch(spec=spec_of(machine, 0, pci="000f:01:00.0")).read())
    assert (reading.total, reading.used, reading.reserved) == (124610, 8823, 0)


@pytest.mark.parametrize("meminfo", [None, "MemTotal:       127600748 kB\n", "MemTotal: lots\n"])
def test_unified_memory_that_cannot_be_told_is_refused_by_name(
    install: Install, watch: Watch, machine: FakeMachine, meminfo: str | None
) -> None:
    """HP02: a card of unknown size is not a card of 0 MiB."""
    if meminfo is not None:
        machine.write("proc/meminfo", meminfo)
    install(StubCard(memory_error=Nvml.NOT_SUPPORTED))
    assert watch().read() == Unmeasured(
        Unknown.NO_MEMORY_SIZE, "the driver tells no memory size for RTX"
    )


def test_card_with_its_own_memory_never_turns_into_one_without(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """A hiccup of the driver must not make the machine's RAM grantable as the card's memory."""
    machine.write("proc/meminfo", (CASES / "HP02b-meminfo.txt").read_text())
    driver = install(StubCard(total=8 * GIB))
    source = watch()
    as_reading(source.read())
    driver.change(0, memory_error=Nvml.NOT_SUPPORTED)
    look = source.read()
    assert isinstance(look, Unmeasured)
    assert look.why is Unknown.NO_MEMORY_SIZE


def test_memory_that_may_not_be_read_is_not_the_machines(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """Only a card that has no memory of its own shares the machine's."""
    machine.write("proc/meminfo", (CASES / "HP02b-meminfo.txt").read_text())
    install(StubCard(memory_error=Nvml.NO_PERMISSION))
    look = watch().read()
    assert isinstance(look, Unmeasured)
    assert look.why is Unknown.FAILED


def test_size_of_nothing_is_no_size(install: Install, watch: Watch) -> None:
    """A card of 0 MiB is one whose size is not known."""
    install(StubCard(total=0, reserved=0))
    look = watch().read()
    assert isinstance(look, Unmeasured)
    assert look.why is Unknown.NO_MEMORY_SIZE


def test_newer_driver_changes_nothing(install: Install, watch: Watch) -> None:
    """HP17: its tool prints another table; no table is parsed, so the reading is the same."""
    header = (CASES / "HP17-new-header.txt").read_text()
    version = header.partition("KMD Version: ")[2].split()[0]
    install(StubCard(total=8 * GIB, reserved=0, used=GIB), version=version)
    assert as_reading(watch().read()).used == 1024
