"""How people name a card: by index, by name, by PCI address in any usual spelling (M1)."""

import re
from collections.abc import Sequence
from typing import Final

from berth.ids import CardName
from berth.readings import CardIdentity

_PCI: Final = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,4}):(?P<device>[0-9a-f]{1,2})"
    r"(?:\.(?P<function>[0-7]))?",
    re.IGNORECASE,
)
_INDEX: Final = re.compile(r"(?:gpu)?(\d{1,3})", re.IGNORECASE)


def normal_pci(address: str) -> str | None:
    """Return a PCI address as sysfs writes it (`0000:41:00.0`), None when it is none.

    Short forms (`41:00.0`, `0:41:0`) and the 8-digit domain of NVML are the same card.
    """
    found = _PCI.fullmatch(address.strip())
    if found is None:
        return None
    domain, bus, device, function = (int(part or "0", 16) for part in found.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def find_card(cards: Sequence[CardIdentity], text: str) -> CardIdentity | None:
    """Return the card that a person means, None when there is none.

    An index or `gpuN` is a card's index on this node, never CUDA's own order.
    """
    wanted = text.strip()
    index = _INDEX.fullmatch(wanted)
    pci = normal_pci(wanted)
    for card in cards:
        if wanted in {card.name, card.uuid} and wanted:
            return card
        if index is not None and card.name == f"gpu{int(index[1])}":
            return card
        if pci is not None and normal_pci(card.pci) == pci:
            return card
    return None


def known_cards(cards: Sequence[CardIdentity]) -> str:
    """Return the node's cards for a sentence: `gpu0 (0000:41:00.0), gpu1`."""
    return ", ".join(f"{card.name} ({card.pci})" if card.pci else card.name for card in cards)


def no_card(text: str) -> str:
    """Return the sentence for a card that is not there."""
    if text.strip().upper().startswith("MIG-"):
        return f"{text} is a MIG instance, and those cannot be leased; name a whole card"
    return f"no card {text} on this node"


def card_name(index: int) -> CardName:
    """Return the name of the card with that index."""
    return CardName(f"gpu{index}")
