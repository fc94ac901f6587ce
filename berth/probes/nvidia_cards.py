"""Which NVIDIA cards this machine has, and why one of them cannot be governed.

The driver is asked, and sysfs is read beside it: sysfs also shows the cards that the driver does
not answer for (lost, asleep, given to a VM, driven by another driver, or no driver at all).
"""

import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import msgspec

from berth.cards import card_name
from berth.ids import CardName
from berth.probes.nvml_errors import DriverError
from berth.probes.procfs import PROC
from berth.probes.sleep import SYS, sleeps
from berth.probes.source import NvidiaCard
from berth.readings import CardIdentity, Unknown, Unmeasured
from berth.units import Seconds

ANSWER_WITHIN: Final = Seconds(15.0)
"""How long the driver may take to name its cards; a cold one takes seconds."""

_SPAWN: Final = multiprocessing.get_context("spawn")
_VENDOR: Final = "0x10de"
_DISPLAY: Final = "0x03"
_DRIVER: Final = "nvidia"
_UNLISTED: Final = Unmeasured(
    Unknown.LOST,
    "NVIDIA's driver does not list the card: look at dmesg for the reason, then reboot",
)


class RefusedCard(msgspec.Struct, frozen=True):
    """A card that is there and cannot be governed, and why."""

    identity: CardIdentity
    why: Unmeasured


class FoundCards(msgspec.Struct, frozen=True, kw_only=True):
    """NVIDIA's cards on this machine. `trouble` is why the driver answered for none of them."""

    cards: tuple[NvidiaCard, ...] = ()
    refused: tuple[RefusedCard, ...] = ()
    trouble: Unmeasured | None = None
    proc: str = str(PROC)
    sys: str = str(SYS)

    @property
    def nothing_here(self) -> bool:
        """Tell whether this is simply a machine without an NVIDIA card."""
        no_driver = self.trouble is None or self.trouble.why is Unknown.NO_DRIVER
        return no_driver and not self.cards and not self.refused


class _PciCard(msgspec.Struct, frozen=True):
    """A card as sysfs shows it. `driver` is empty when none is bound to it."""

    address: str
    driver: str


def split_card(slices: int) -> Unmeasured:
    """Return why a card that MIG has cut is refused."""
    return Unmeasured(
        Unknown.SPLIT,
        f"MIG has cut the card ({slices} slices), and Berth hands out whole cards: switch it"
        " off with nvidia-smi -mig 0, or leave this card out",
    )


def nvidia_cards(proc: Path = PROC, sys: Path = SYS, within: Seconds = ANSWER_WITHIN) -> FoundCards:
    """Return the cards of this machine, asked for in a process that can be given up.

    berthd itself never calls the driver. Takes up to `within`, then the driver counts as hung.
    """
    here, there = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(
        target=_tell_cards, args=(there, proc, sys), name="berth driver look-up", daemon=True
    )
    process.start()
    there.close()
    try:
        if here.poll(within):
            found: FoundCards = here.recv()
            return found
        trouble = Unmeasured(
            Unknown.HUNG, f"NVIDIA's driver did not name its cards in {within:g} s"
        )
    except (EOFError, OSError) as error:
        trouble = Unmeasured(
            Unknown.FAILED, f"NVIDIA's library broke while it was asked: {error!r}"
        )
    finally:
        process.kill()
        process.join(timeout=1.0)
        here.close()
    return _without_driver(_on_the_bus(sys), trouble)


def _tell_cards(pipe: "Connection[FoundCards, None]", proc: Path, sys: Path) -> None:
    """Look the cards up and tell them. Runs as a spawned process."""
    pipe.send(ask_driver(proc, sys))


def ask_driver(proc: Path = PROC, sys: Path = SYS) -> FoundCards:
    """Return the cards of this machine. May hang, as every call into a driver may.

    A card that sleeps is not woken: the kernel's own files name it. Only one whose UUID they do not
    know yet (nobody has opened it since the driver was loaded) is, this once: leases go by it, and
    would be lost when it is known later.
    """
    from berth.probes import nvml  # noqa: PLC0415 -- 19 ms, only where the driver is asked

    present = _on_the_bus(sys)
    driven = [card for card in present if card.driver == _DRIVER]
    asleep = [_sleeping(index, card, proc, sys) for index, card in enumerate(driven)]
    named = [card for card in asleep if card is not None]
    if named and len(named) == len(driven):
        return _found(named, present, proc, sys)
    try:
        nvml.open_session(proc)
    except DriverError as error:
        return _without_driver(present, error.unmeasured)
    try:
        count = nvml.card_count()
        # The driver numbers its cards as they stand on the bus, so those it answers for can be
        # laid beside those that sysfs shows, unless some are hidden from either.
        beside: list[_PciCard | None] = [*driven] if count == len(driven) else [None] * count
        found = [_card_at(index, card, proc, sys) for index, card in enumerate(beside)]
    except DriverError as error:
        return _without_driver(present, error.unmeasured)
    finally:
        nvml.close_session()
    return _found(found, present, proc, sys)


def _card_at(
    index: int, beside: _PciCard | None, proc: Path, sys: Path
) -> CardIdentity | RefusedCard:
    """Ask for the card of that index; `beside` is what sysfs shows in its place."""
    from berth.probes import nvml  # noqa: PLC0415 -- as above

    asleep = None if beside is None else _sleeping(index, beside, proc, sys)
    if asleep is not None:
        return asleep
    pci = "" if beside is None else beside.address
    identity = CardIdentity(name=card_name(index), index=index, pci=pci)
    try:
        card = nvml.OpenCard(index=index)
        told = card.describe()
        identity = CardIdentity(
            name=card_name(index), index=index, uuid=told.uuid, pci=told.pci, product=told.product
        )
        slices = card.slices()
    except DriverError as error:
        return RefusedCard(identity, error.unmeasured)
    return identity if slices is None else RefusedCard(identity, split_card(slices))


def _sleeping(index: int, card: _PciCard, proc: Path, sys: Path) -> CardIdentity | None:
    """Name a sleeping card from the driver's files, which do not wake it.

    None when it is awake, or its UUID is not known: that has `?` in it then.
    """
    if not sleeps(card.address, sys):
        return None
    facts: dict[str, str] = {}
    try:
        text = (proc / "driver/nvidia/gpus" / card.address / "information").read_text()
    except OSError:
        text = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        facts[name.strip()] = value.strip()
    uuid = facts.get("GPU UUID", "")
    if not uuid or "?" in uuid:
        return None
    return CardIdentity(
        name=card_name(index),
        index=index,
        uuid=uuid,
        pci=card.address,
        product=facts.get("Model", ""),
    )


def _found(
    found: Sequence[CardIdentity | RefusedCard], present: Sequence[_PciCard], proc: Path, sys: Path
) -> FoundCards:
    """Sort the cards, and add those that only sysfs shows."""
    cards = [card for card in found if isinstance(card, CardIdentity)]
    refused = [card for card in found if isinstance(card, RefusedCard)]
    known = {card.pci for card in cards} | {card.identity.pci for card in refused}
    # With an unknown address among the refused, one that is left over on the bus may be that card.
    all_known = all(card.identity.pci for card in refused)
    left = [
        card
        for card in present
        if card.address not in known and (all_known or card.driver != _DRIVER)
    ]
    refused += [_only_on_the_bus(len(found) + at, card) for at, card in enumerate(left)]
    return FoundCards(
        cards=tuple(NvidiaCard(identity=card, proc=str(proc), sys=str(sys)) for card in cards),
        refused=tuple(refused),
        trouble=None if found else Unmeasured(Unknown.NO_DRIVER, "NVIDIA's driver has no card"),
        proc=str(proc),
        sys=str(sys),
    )


def _without_driver(present: Sequence[_PciCard], trouble: Unmeasured) -> FoundCards:
    refused = [
        _only_on_the_bus(index, card, trouble if card.driver in {"", _DRIVER} else None)
        for index, card in enumerate(present)
    ]
    return FoundCards(refused=tuple(refused), trouble=trouble)


def _only_on_the_bus(index: int, card: _PciCard, why: Unmeasured | None = None) -> RefusedCard:
    """Refuse a card that the driver does not answer for. It goes by its address."""
    identity = CardIdentity(name=CardName(card.address), index=index, pci=card.address)
    return RefusedCard(identity, why or bound_elsewhere(card.driver) or _UNLISTED)


def bound_elsewhere(driver: str) -> Unmeasured | None:
    """Return why a card cannot be asked while that driver has it, None for NVIDIA's or none."""
    if driver in {"", _DRIVER}:
        return None
    if driver.startswith("vfio"):
        detail = f"the card is given to a VM ({driver}); it is read again when it is back"
    else:
        detail = f"the card is driven by {driver}; Berth needs NVIDIA's own driver"
    return Unmeasured(Unknown.NO_DRIVER, detail)


def driver_of(pci: str, sys: Path = SYS) -> str:
    """Return the name of the kernel's driver of the card at that address, empty for none."""
    driver = sys / "bus/pci/devices" / pci / "driver"
    return driver.resolve().name if pci and driver.exists() else ""


def _on_the_bus(sys: Path) -> list[_PciCard]:
    """Return NVIDIA's cards in the order of their address, virtual functions left out."""
    found = []
    for device in sorted((sys / "bus/pci/devices").glob("*"), key=_bus_order):
        kind, vendor = _line(device / "class"), _line(device / "vendor")
        if vendor == _VENDOR and kind.startswith(_DISPLAY) and not (device / "physfn").exists():
            found.append(_PciCard(device.name, driver_of(device.name, sys)))
    return found


def _bus_order(device: Path) -> tuple[int, ...]:
    try:
        return tuple(int(part, 16) for part in device.name.replace(".", ":").split(":"))
    except ValueError:
        return ()


def _line(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
