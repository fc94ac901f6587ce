"""How people name a card: index, name, UUID, PCI address in any usual spelling (M1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cards import card_name, find_card, known_cards, no_card, normal_pci
from berth.ids import CardName
from berth.readings import CardIdentity

CARDS = (
    CardIdentity(name=CardName("gpu0"), index=0, uuid="GPU-aa", pci="0000:41:00.0"),
    CardIdentity(name=CardName("gpu1"), index=1, uuid="GPU-bb", pci="00000000:0A:1f.7"),
    CardIdentity(name=CardName("0000:c1:00.0"), index=2, uuid="", pci="0000:c1:00.0"),
    CardIdentity(name=CardName("gpu12"), index=12, uuid="", pci=""),
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0", "gpu0"),
        ("gpu0", "gpu0"),
        ("GPU1", "gpu1"),
        ("01", "gpu1"),
        (" gpu1 ", "gpu1"),
        ("12", "gpu12"),
        ("GPU-bb", "gpu1"),
        ("0000:41:00.0", "gpu0"),
        ("41:00.0", "gpu0"),
        ("41:0.0", "gpu0"),
        ("41:00", "gpu0"),
        ("0:41:0", "gpu0"),
        ("00000000:41:00.0", "gpu0"),
        ("0000:0a:1F.7", "gpu1"),
        ("a:1f.7", "gpu1"),
        ("0000:C1:00.0", "0000:c1:00.0"),
        ("c1:00.0", "0000:c1:00.0"),
    ],
)
def test_card_is_found_however_it_is_spelled(text: str, name: str) -> None:
    """M1: index, name, UUID, and PCI addresses in any spelling, however the card was picked."""
    card = find_card(CARDS, text)
    assert card is not None
    assert card.name == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "3",
        "gpu9",
        "gpu",
        "gpu-0",
        "-1",
        "41",
        "42:00.0",
        "41:00.1",
        "0001:41:00.0",
        "41:00.8",
        "GPU-cc",
        "gpu-aa",
        "41.00.0",
        "gpu0,gpu1",
        "all",
        "any",
        "0x0",
    ],
)
def test_card_that_is_not_there_is_not_found(text: str) -> None:
    """M1: what names no card is refused, never taken for a near one."""
    assert find_card(CARDS, text) is None


def test_no_card_is_found_among_none() -> None:
    """Q9: a node without cards has no first one either."""
    assert find_card((), "0") is None


@given(
    domain=st.integers(0, 0xFFFF),
    bus=st.integers(0, 0xFF),
    device=st.integers(0, 0x1F),
    function=st.integers(0, 7),
    upper=st.booleans(),
)
def test_every_spelling_of_an_address_is_the_same_card(
    domain: int, bus: int, device: int, function: int, upper: bool
) -> None:
    """M1: NVML's eight-digit domain, sysfs' four, and lspci's none are one address."""
    sysfs = f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    spellings = [sysfs, f"{domain:08x}:{bus:02x}:{device:02x}.{function}"]
    spellings.append(f"{domain:x}:{bus:x}:{device:x}.{function}")
    if not domain:
        spellings.append(f"{bus:02x}:{device:02x}.{function}")
    if not function:
        spellings.append(f"{domain:04x}:{bus:02x}:{device:02x}")
    for spelling in spellings:
        assert normal_pci(spelling.upper() if upper else spelling) == sysfs


@given(st.text(max_size=16))
def test_any_text_names_a_card_of_the_node_or_none(text: str) -> None:
    """M1: nothing that is typed breaks the search."""
    assert find_card(CARDS, text) in {*CARDS, None}


def test_known_cards_are_listed_for_a_sentence() -> None:
    """M1: who named a wrong card reads which there are."""
    listed = "gpu0 (0000:41:00.0), gpu1 (00000000:0A:1f.7), 0000:c1:00.0 (0000:c1:00.0), gpu12"
    assert known_cards(CARDS) == listed


def test_unknown_card_is_named_in_its_sentence() -> None:
    """M1 gives the words."""
    assert no_card("gpu7") == "no card gpu7 on this node"


def test_card_is_named_after_its_index() -> None:
    """Spec 1: `gpu0`, `gpu1` … by index."""
    assert card_name(3) == "gpu3"


@pytest.mark.parametrize(
    ("card", "key"), [(CARDS[0], "GPU-aa"), (CARDS[2], "0000:c1:00.0"), (CARDS[3], "gpu12")]
)
def test_card_is_remembered_by_what_does_not_move(card: CardIdentity, key: str) -> None:
    """M1: leases, journal and learned sizes go by UUID; without one by PCI address."""
    assert card.key == key
