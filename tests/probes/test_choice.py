"""Which cards berthd governs: all, by index, by address; and what is said when there is none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from berth.cards import card_name
from berth.errors import BerthError, Code, Exit
from berth.ids import CardName
from berth.probes.choice import Choice, chosen_cards
from berth.probes.nvidia import NvidiaSource
from berth.probes.nvidia_cards import FoundCards, RefusedCard, ask_driver, split_card
from berth.probes.source import NvidiaCard
from berth.readings import CardIdentity, Unknown, Unmeasured
from tests.nvml_stub import Nvml, Slice, StubCard, StubDriver
from tests.probes.machines import FakeMachine, address, as_reading, spec_of

Install = Callable[..., StubDriver]

NOBODY = Unmeasured(Unknown.NO_DRIVER, "there is no libnvidia-ml.so.1")


def identity(index: int, name: str = "") -> CardIdentity:
    return CardIdentity(
        name=CardName(name) if name else card_name(index),
        index=index,
        uuid="" if name else f"GPU-{index}",
        pci=address(index),
    )


def good(index: int) -> NvidiaCard:
    return NvidiaCard(identity=identity(index))


def cut(index: int) -> RefusedCard:
    return RefusedCard(identity(index), split_card(2))


def choose(wanted: str, found: FoundCards) -> Choice:
    return chosen_cards(wanted, None, lambda: found)


def names(choice: Choice) -> list[str]:
    return [spec.identity.name for spec in choice.cards]


def refused(wanted: str, found: FoundCards) -> BerthError:
    with pytest.raises(BerthError) as error:
        choose(wanted, found)
    return error.value


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("all", ["gpu0", "gpu1", "gpu2"]),
        ("2,0", ["gpu0", "gpu2"]),
        ("gpu1", ["gpu1"]),
        ("00000000:43:00.0", ["gpu2"]),
        ("1,43:00.0", ["gpu1", "gpu2"]),
    ],
)
def test_cards_by_every_name(wanted: str, chosen: list[str]) -> None:
    """M1: all, indices and addresses, mixed, in the order of their index."""
    assert names(choose(wanted, FoundCards(cards=(good(0), good(1), good(2))))) == chosen


def test_card_that_is_not_there_is_refused_by_name() -> None:
    """M1: and the hint says which there are."""
    error = refused("0,7", FoundCards(cards=(good(0),)))
    assert (error.message, error.exit_status) == ("no card 7 on this node", Exit.REFUSED)
    assert "gpu0 (0000:41:00.0)" in error.hint


def test_refused_card_is_shown_behind_the_good_ones() -> None:
    """Q9: a request without a card goes to the first; that must be one that can be had."""
    choice = choose("all", FoundCards(cards=(good(1),), refused=(cut(0),)))
    assert names(choice) == ["gpu1", "gpu0"]
    assert [card.identity.name for card in choice.refused] == ["gpu0"]
    assert names(choose("1", FoundCards(cards=(good(1),), refused=(cut(0),)))) == ["gpu1"]


@pytest.mark.parametrize("wanted", ["all", "0", "41:00.0"])
def test_refused_cards_alone_end_berthd_with_their_reason(wanted: str) -> None:
    """A daemon that can grant nothing would only hold engines up."""
    error = refused(wanted, FoundCards(refused=(cut(0),)))
    assert (error.code, error.exit_status) == (Code.NO_CARD, Exit.UNAVAILABLE)
    assert error.message.startswith("no card can be governed: gpu0 (0000:41:00.0): MIG has cut")


def test_reason_that_many_cards_share_is_told_once() -> None:
    """HP07: eight cards and one mismatch are one sentence, not eight."""
    mismatch = Unmeasured(Unknown.DRIVER_MISMATCH, "reboot")
    cards = tuple(RefusedCard(identity(i, address(i)), mismatch) for i in range(8))
    message = refused("all", FoundCards(refused=cards, trouble=mismatch)).message
    assert message.count("reboot") == 1
    assert message.count("0000:") >= 8


def test_machine_without_a_card_is_told_the_way_out() -> None:
    """Who tries Berth on a laptop without a GPU reads what to type next."""
    error = refused("all", FoundCards(trouble=NOBODY))
    assert error.message == (
        "no NVIDIA card on the bus, and no driver that names one: there is no libnvidia-ml.so.1"
    )
    assert "berth demo" in error.hint
    assert "--sim DIR" in error.hint


def test_driver_that_hangs_at_the_start_is_named() -> None:
    """Nothing was found, and not because nothing is there."""
    hung = Unmeasured(Unknown.HUNG, "NVIDIA's driver did not name its cards in 15 s")
    assert hung.detail in refused("all", FoundCards(trouble=hung)).message


def test_simulated_cards_stand_alone(tmp_path: Path) -> None:
    """Z4: a simulation never touches real cards; their driver is not even asked."""
    (tmp_path / "cards.toml").write_text("[[card]]\ntotal_mib = 8\n")

    def never() -> FoundCards:
        raise AssertionError("the driver was asked")

    assert names(chosen_cards("all", tmp_path, never)) == ["gpu0"]
    (tmp_path / "cards.toml").write_text("")
    with pytest.raises(BerthError, match="no card is declared"):
        chosen_cards("all", tmp_path, never)


def test_cut_card_heals_without_a_restart(install: Install, machine: FakeMachine) -> None:
    """HP06: MIG is switched off, and the card is one again."""
    cards = StubCard(mig=True, slices=(Slice("MIG-1", 2**30),)), StubCard()
    driver = install(*cards)
    choice = chosen_cards("all", None, lambda: ask_driver(machine.proc, machine.sys))
    spec = choice.cards[1]
    assert isinstance(spec, NvidiaCard)
    source = NvidiaSource(spec)
    look = source.read()
    assert isinstance(look, Unmeasured)
    assert look.why is Unknown.SPLIT
    driver.change(0, mig=False, slices=())
    as_reading(source.read())
    source.close()


def test_card_whose_uuid_was_not_known_is_not_read_before_a_restart(
    install: Install, machine: FakeMachine
) -> None:
    """M3: an engine is shown its card by its UUID; without one it would load anywhere."""
    driver = install(StubCard(error=Nvml.LOST))
    spec = spec_of(machine, 0)
    source = NvidiaSource(
        NvidiaCard(identity=spec.identity, proc=spec.proc, sys=spec.sys, refused=True),
        clock=iter(range(1000, 9000, 2)).__next__,
    )
    lost = source.read()
    assert isinstance(lost, Unmeasured)
    assert lost.why is Unknown.LOST
    driver.change(0, error=Nvml.OK)
    back = source.read()
    assert isinstance(back, Unmeasured)
    assert "start berthd again" in back.detail
    source.close()


def test_card_that_was_given_to_a_vm_says_so(install: Install, machine: FakeMachine) -> None:
    """The driver only says that it has no such card; the kernel's own files know where it is."""
    install(StubCard())
    machine.card(address(5), driver="vfio-pci")
    source = NvidiaSource(spec_of(machine, 5))
    gone = source.read()
    assert isinstance(gone, Unmeasured)
    assert "given to a VM (vfio-pci)" in gone.detail
    source.close()
