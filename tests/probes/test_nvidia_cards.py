"""Which NVIDIA cards a machine has, and why one of them cannot be governed."""

import re
import time
from collections.abc import Callable

import pytest

from berth.cards import find_card
from berth.probes.nvidia_cards import FoundCards, ask_driver, nvidia_cards
from berth.readings import Unknown
from berth.units import Seconds
from tests.nvml_stub import FOREVER, LIBRARY_VARIABLE, Nvml, Slice, StubCard, StubDriver
from tests.probes.machines import CASES, FakeMachine, address, told_by

Install = Callable[..., StubDriver]

_INFORMATION = """Model: \t\t NVIDIA GeForce RTX 4070 Laptop GPU
IRQ:   \t\t 184
GPU UUID: \t {uuid}
Bus Location: \t 0000:41:00.0
"""


def ask(machine: FakeMachine) -> FoundCards:
    return ask_driver(machine.proc, machine.sys)


def test_two_kinds_by_every_spelling_of_their_address(
    install: Install, machine: FakeMachine
) -> None:
    """HP01: NVML writes an 8-digit domain, sysfs four digits, a person as few as will do."""
    install(*told_by("HP01-two-kinds.csv"))
    found = ask(machine)
    first, second = (card.identity for card in found.cards)
    assert (first.name, first.pci, first.product) == (
        "gpu0",
        "0000:09:00.0",
        "NVIDIA RTX A2000 12GB",
    )
    assert (second.index, second.vendor) == (1, "nvidia")
    for spelling in ("00000000:41:00.0", "0000:41:00.0", "41:00.0", "0:41:0", "1", second.uuid):
        assert find_card([first, second], spelling) == second
    assert (found.refused, found.trouble) == ((), None)


def test_domain_that_is_not_zero_is_kept(install: Install, machine: FakeMachine) -> None:
    """HP02: a card in domain 000F is not the one in domain 0000."""
    install(*told_by("HP02-unified-memory-na.csv"))
    (card,) = ask(machine).cards
    assert card.identity.pci == "000f:01:00.0"


def test_lost_card_is_refused_and_the_good_one_found(
    install: Install, machine: FakeMachine
) -> None:
    """HP05: one good row, one in error; sysfs still knows where the lost one stands."""
    install(*told_by("HP05-one-card-in-error.csv"))
    machine.card("0000:09:00.0")
    machine.card("0000:0b:00.0")
    found = ask(machine)
    assert [card.identity.pci for card in found.cards] == ["0000:09:00.0"]
    (lost,) = found.refused
    assert (lost.identity.name, lost.identity.pci) == ("gpu1", "0000:0b:00.0")
    assert lost.why.why is Unknown.LOST


def test_cut_card_is_refused_and_its_slices_are_no_cards(
    install: Install, machine: FakeMachine
) -> None:
    """HP06: a MIG UUID is no card address, and the rest of the machine is governed."""
    text = (CASES / "HP06-mig-list.txt").read_text()
    first, second = re.findall(r"UUID: (GPU-[^)]*)", text)
    slices = re.findall(r"UUID: (MIG-[^)]*)", text)
    cut = tuple(Slice(uuid, 20 * 2**30, instance=at) for at, uuid in enumerate(slices))
    install(StubCard(uuid=first, mig=True, slices=cut), StubCard(uuid=second, mig=False))
    found = ask(machine)
    assert [card.identity.uuid for card in found.cards] == [second]
    (refused,) = found.refused
    assert (refused.identity.name, refused.why.why) == ("gpu0", Unknown.SPLIT)
    assert "2 slices" in refused.why.detail
    known = [found.cards[0].identity, refused.identity]
    assert [find_card(known, uuid) for uuid in slices] == [None, None]


@pytest.mark.parametrize(
    ("code", "why"),
    [(Nvml.MISMATCH, Unknown.DRIVER_MISMATCH), (Nvml.NO_DRIVER, Unknown.NO_DRIVER)],
)
def test_driver_that_does_not_start_is_trouble_of_every_card(
    install: Install, machine: FakeMachine, code: Nvml, why: Unknown
) -> None:
    """HP07: at its start berthd needs a sentence for the machine and a name for each card."""
    install(StubCard()).fail_init(code)
    machine.card("0000:41:00.0", driver="nvidia" if code == Nvml.MISMATCH else "")
    found = ask(machine)
    assert found.trouble is not None
    assert found.trouble.why is why
    assert [(card.identity.name, card.why) for card in found.refused] == [
        ("0000:41:00.0", found.trouble)
    ]
    assert not found.nothing_here


def test_machine_without_a_card_is_no_trouble_to_anyone(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with an AMD card nobody wants to read of NVIDIA's library."""
    monkeypatch.setenv(LIBRARY_VARIABLE, "/nowhere/libnvidia-ml.so.1")
    machine.card("0000:03:00.0", driver="amdgpu", vendor="0x1002")
    found = ask(machine)
    assert found.nothing_here


@pytest.mark.parametrize(
    ("driver", "words"), [("vfio-pci", "given to a VM"), ("nouveau", "driven by nouveau")]
)
def test_card_of_another_driver_is_named_by_its_address(
    install: Install, machine: FakeMachine, driver: str, words: str
) -> None:
    """A card inside a VM is there, but not for Berth, and NVIDIA's driver does not know it."""
    install(StubCard())
    machine.card(address(0))
    machine.card("0000:81:00.0", driver=driver)
    found = ask(machine)
    assert len(found.cards) == 1
    (refused,) = found.refused
    assert (refused.identity.name, refused.identity.index) == ("0000:81:00.0", 1)
    assert words in refused.why.detail


def test_card_the_driver_leaves_out_is_told(install: Install, machine: FakeMachine) -> None:
    """A card that fell off the bus before berthd started is missing from the driver's count."""
    install(StubCard())
    machine.card(address(0))
    machine.card("0000:81:00.0")
    (refused,) = ask(machine).refused
    assert (refused.identity.pci, refused.why.why) == ("0000:81:00.0", Unknown.LOST)


def test_sleeping_laptop_is_named_without_the_driver(
    install: Install, machine: FakeMachine
) -> None:
    """The start of berthd is no reason to wake a card either: the kernel's files name it."""
    driver = install(StubCard())
    machine.card(address(0), status="suspended")
    uuid = "GPU-5e1f0000-0000-4000-8000-000000000000"
    files = f"proc/driver/nvidia/gpus/{address(0)}/information"
    machine.write(files, _INFORMATION.format(uuid=uuid))
    (card,) = ask(machine).cards
    assert (card.identity.uuid, card.identity.product) == (
        uuid,
        "NVIDIA GeForce RTX 4070 Laptop GPU",
    )
    assert driver.calls() == 0


@pytest.mark.parametrize("known", ["GPU-????????-????-????-????-????????????", ""])
def test_sleeping_card_without_a_known_uuid_is_woken_once(
    install: Install, machine: FakeMachine, known: str
) -> None:
    """M1: leases go by the UUID; under its address they would be lost at the next start."""
    install(StubCard(uuid="GPU-real"))
    machine.card(address(0), status="suspended")
    if known:
        files = f"proc/driver/nvidia/gpus/{address(0)}/information"
        machine.write(files, _INFORMATION.format(uuid=known))
    (card,) = ask(machine).cards
    assert card.identity.key == "GPU-real"


def test_sleeping_card_beside_one_that_is_awake_is_not_woken(
    install: Install, machine: FakeMachine
) -> None:
    """A machine may have an external card beside the laptop's own."""
    driver = install(StubCard(), StubCard())
    machine.card(address(0), status="suspended")
    files = f"proc/driver/nvidia/gpus/{address(0)}/information"
    machine.write(files, _INFORMATION.format(uuid="GPU-sleeps"))
    machine.card(address(1))
    found = ask(machine)
    assert [card.identity.name for card in found.cards] == ["gpu0", "gpu1"]
    assert driver.calls("nvmlDeviceGetHandleByIndex_v2") == 1


def test_cards_are_told_by_a_process_apart(install: Install, machine: FakeMachine) -> None:
    """No call into the driver is made in berthd, so the answer crosses a pipe."""
    install(StubCard(), StubCard(mig=True))
    assert nvidia_cards(machine.proc, machine.sys, Seconds(30)) == ask(machine)


def test_driver_that_hangs_at_the_start_is_given_up(install: Install, machine: FakeMachine) -> None:
    """The first call of all has been seen to hang (go-nvml #152); berthd starts and says so."""
    driver = install(StubCard())
    driver.fail_init(Nvml.OK, delay_ms=FOREVER)
    machine.card(address(0))
    before = time.monotonic()
    found = nvidia_cards(machine.proc, machine.sys, Seconds(0.2))
    assert time.monotonic() - before < 10
    assert found.trouble is not None
    assert found.trouble.why is Unknown.HUNG
    assert [card.why for card in found.refused] == [found.trouble]
