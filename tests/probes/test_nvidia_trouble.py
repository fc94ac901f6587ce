"""What goes wrong with an NVIDIA card, what is said of it, and how it comes back."""

from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from berth.probes.nvidia import KEPT_XIDS, NvidiaSource, Xid
from berth.probes.nvml_errors import translated
from berth.probes.nvml_library import library_to_load
from berth.readings import Look, Reading, Unknown, Unmeasured
from berth.units import Instant
from tests.nvml_stub import LIBRARY_VARIABLE, Nvml, Row, Slice, StubCard, StubDriver
from tests.probes.machines import CASES, FakeMachine, ManualClock, as_reading, spec_of, told_by

Install = Callable[..., StubDriver]
Watch = Callable[..., NvidiaSource]


def unmeasured(look: Look) -> Unmeasured:
    assert isinstance(look, Unmeasured), look
    return look


@pytest.mark.parametrize(
    ("code", "why", "words"),
    [
        (Nvml.LOST, Unknown.LOST, "fell off the bus"),
        (Nvml.RESET_REQUIRED, Unknown.RESET_REQUIRED, "nvidia-smi --gpu-reset"),
        (Nvml.NO_PERMISSION, Unknown.FAILED, "/dev/nvidia*"),
        (Nvml.NOT_READY, Unknown.FAILED, "not ready yet"),
        (Nvml.UNKNOWN, Unknown.FAILED, "Unknown Error"),
        (Nvml.MISMATCH, Unknown.DRIVER_MISMATCH, "reboot"),
        (Nvml.NO_DRIVER, Unknown.NO_DRIVER, "modprobe nvidia"),
        (12, Unknown.NO_DRIVER, "install NVIDIA's driver"),
        (17, Unknown.FAILED, "cgroup or container"),
        (28, Unknown.LOST, "no such card"),
        (12345, Unknown.FAILED, "12345"),
    ],
)
def test_every_code_becomes_a_sentence(code: int, why: Unknown, words: str) -> None:
    """Nobody should have to look a number up to know what to do."""
    told = translated(code, str(pynvml.NVMLError(code))).unmeasured
    assert told.why is why
    assert words in told.detail


def test_lost_card_does_not_take_the_others_along(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """HP05: the good card stays governed; on the lost one nothing is granted."""
    install(*told_by("HP05-one-card-in-error.csv"))
    good = watch(spec=spec_of(machine, 0, pci="0000:09:00.0")).read()
    lost = watch(spec=spec_of(machine, 1, pci="0000:0b:00.0")).read()
    assert (as_reading(good).total, as_reading(good).used) == (24576, 21943)
    assert unmeasured(lost).why is Unknown.LOST


def test_card_without_a_handle_is_lost(install: Install, watch: Watch) -> None:
    """HP04: NVIDIA's tool fails as a whole, and says no more than Unknown Error of the one card."""
    assert "Unknown Error" in (CASES / "HP04-card-gone.txt").read_text()
    install(StubCard(handle_error=Nvml.UNKNOWN), StubCard())
    lost = unmeasured(watch(0).read())
    assert (lost.why, isinstance(watch(1).read(), Reading)) == (Unknown.LOST, True)
    assert "dmesg" in lost.detail
    assert "Unknown Error" in lost.detail


def test_card_the_driver_dropped_is_lost(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """After a reset of the others the driver may not list a lost card at all."""
    install(StubCard())
    lost = unmeasured(watch(spec=spec_of(machine, 0, pci="0000:07:00.0")).read())
    assert lost.why is Unknown.LOST


def test_another_card_in_its_place_is_not_taken_for_it(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """Leases go by the UUID: a card that was swapped must not inherit them."""
    install(StubCard(uuid="GPU-new"))
    lost = unmeasured(watch(spec=spec_of(machine, 0, uuid="GPU-old")).read())
    assert lost.why is Unknown.LOST
    assert "restart berthd" in lost.detail


def test_card_that_comes_back_is_read_again(
    install: Install, watch: Watch, clock: ManualClock
) -> None:
    """A reset heals a card without a restart of berthd."""
    driver = install(StubCard())
    source = watch()
    as_reading(source.read())
    driver.change(0, error=Nvml.RESET_REQUIRED)
    assert unmeasured(source.read()).why is Unknown.RESET_REQUIRED
    driver.change(0, error=Nvml.OK)
    clock.later(2.0)
    as_reading(source.read())
    assert driver.calls("nvmlInitWithFlags") == 1


def test_mismatch_at_the_start_says_both_versions(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """HP07: after an upgrade the library is new and the module old; only a reboot helps."""
    case = (CASES / "HP07-driver-mismatch.txt").read_text()
    version = case.partition("NVML library version: ")[2].strip()
    driver = install(StubCard(), version=version)
    driver.fail_init(Nvml.MISMATCH)
    machine.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2026\n",
    )
    source = watch()
    mismatch = unmeasured(source.read())
    assert mismatch.why is Unknown.DRIVER_MISMATCH
    assert "reboot" in mismatch.detail
    assert f"library {version}, kernel module 550.90.07" in mismatch.detail
    assert source.stale_library


def test_mismatch_later_does_not_end_a_running_session(
    install: Install, watch: Watch, clock: ManualClock
) -> None:
    """HP07: only a new session is refused, so the old one is kept over other trouble too."""
    driver = install(StubCard())
    source = watch()
    as_reading(source.read())
    driver.fail_init(Nvml.MISMATCH)
    driver.change(0, error=Nvml.UNKNOWN)
    assert unmeasured(source.read()).why is Unknown.FAILED
    driver.change(0, error=Nvml.OK)
    clock.later(2.0)
    as_reading(source.read())


def test_driver_loaded_later_is_found(install: Install, watch: Watch, clock: ManualClock) -> None:
    """A module that is loaded after berthd's start needs no restart of it."""
    driver = install(StubCard())
    driver.fail_init(Nvml.NO_DRIVER)
    source = watch()
    assert unmeasured(source.read()).why is Unknown.NO_DRIVER
    driver.fail_init(Nvml.OK)
    clock.later(2.0)
    as_reading(source.read())


def test_missing_driver_is_asked_for_once_a_second_at_most(
    install: Install, watch: Watch, clock: ManualClock
) -> None:
    """Each try may start a helper that loads the module; readings may come every 40 ms."""
    driver = install(StubCard())
    driver.fail_init(Nvml.NO_DRIVER)
    source = watch()
    for _ in range(25):
        assert unmeasured(source.read()).why is Unknown.NO_DRIVER
        clock.later(0.04)
    assert driver.calls("nvmlInitWithFlags") == 1


def test_session_that_ended_is_opened_by_the_next_reading(install: Install, watch: Watch) -> None:
    """The driver may be unloaded and loaded again under a running berthd."""
    driver = install(StubCard())
    source = watch()
    as_reading(source.read())
    driver.fail_sessions(Nvml.UNINITIALIZED)
    assert unmeasured(source.read()).why is Unknown.FAILED
    driver.fail_sessions(Nvml.OK)
    as_reading(source.read())
    assert driver.calls("nvmlInitWithFlags") == 2


def test_library_that_is_not_there_is_named(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong path in the environment is found by its own name."""
    monkeypatch.setenv(LIBRARY_VARIABLE, "/nowhere/libnvidia-ml.so.1")
    trouble = unmeasured(watch().read())
    assert trouble.why is Unknown.NO_DRIVER
    assert "/nowhere/libnvidia-ml.so.1" in trouble.detail


def test_wsl_has_a_library_of_its_own(machine: FakeMachine, tmp_path: Path) -> None:
    """Under WSL a distribution's library knows no card; the one that Windows lends does."""
    lent = tmp_path / "libnvidia-ml.so.1"
    lent.touch()
    assert library_to_load({}, machine.proc, lent) is None
    machine.write("proc/sys/kernel/osrelease", "4.19.121-Microsoft-WSL2-standard\n")
    assert library_to_load({}, machine.proc, lent) == str(lent)
    assert library_to_load({LIBRARY_VARIABLE: "/mine"}, machine.proc, lent) == "/mine"
    lent.unlink()
    assert library_to_load({}, machine.proc, lent) is None


def test_card_cut_later_is_refused(install: Install, watch: Watch) -> None:
    """HP06: the memory of a card that MIG has cut is not handed out as one."""
    driver = install(StubCard(mig=False))
    source = watch()
    as_reading(source.read())
    driver.change(0, mig=True, slices=(Slice("MIG-1", 2**30), Slice("MIG-2", 2**30, instance=2)))
    cut = unmeasured(source.read())
    assert cut.why is Unknown.SPLIT
    assert "2 slices" in cut.detail
    driver.change(0, mig=False, slices=())
    as_reading(source.read())


def test_xid_is_heard_once(install: Install, watch: Watch, clock: ManualClock) -> None:
    """What a card reported before Berth looked is not news, and nothing is news twice."""
    driver = install(StubCard(), StubCard())
    driver.throw_xid(0, 13)
    source, other = watch(0), watch(1)
    source.read()
    other.read()
    driver.throw_xid(0, 31)
    driver.throw_xid(0, 79)
    clock.later(2.0)
    for _ in range(3):
        source.read()
        other.read()
    assert source.xids == [Xid(31, Instant(1002.0)), Xid(79, Instant(1002.0))]
    assert other.xids == []


def test_xids_that_nobody_takes_do_not_pile_up(install: Install, watch: Watch) -> None:
    """A card can throw the same Xid for days."""
    driver = install(StubCard())
    source = watch()
    source.read()
    for _ in range(2 * KEPT_XIDS // 16):
        for code in range(16):
            driver.throw_xid(0, code)
        source.read()
    assert len(source.xids) == KEPT_XIDS


def test_lists_that_fail_oddly_fail_the_reading(install: Install, watch: Watch) -> None:
    """Without its rows a reading would show a lease as gone that is still there (B3)."""
    driver = install(StubCard(rows=(Row(1, 2**30),)))
    driver.refuse("nvmlDeviceGetComputeRunningProcesses_v3", Nvml.UNKNOWN)
    assert unmeasured(watch().read()).why is Unknown.FAILED
