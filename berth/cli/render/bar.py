"""A card's memory as a bar: one cell for each so much of it, in the letters of its leases.

[░aaaaaaaaaaaaaaabbbbbbb~··]    ░ baseline, a b leases, ~ stowaways, # a claim,
                                ? nobody's, ! overdrawn, · free
"""

from collections.abc import Sequence
from typing import Final

import msgspec

BASELINE: Final = "░"
FREE: Final = "·"
STOWAWAY: Final = "~"
CLAIM: Final = "#"
NOBODY: Final = "?"
OVERDRAWN: Final = "!"
_ASCII: Final = {BASELINE: ":", FREE: "."}
_SHOWN_FROM: Final = 0.01
"""Which share of the card is shown at least with one cell."""


class Part(msgspec.Struct, frozen=True):
    """What one kind of cell stands for, in MiB."""

    mark: str
    mib: int


def bar(parts: Sequence[Part], total_mib: int, size: int, *, ascii_only: bool = False) -> str:
    """Return the cells of a bar, without its brackets.

    What is in use is shown to the nearest cell, and with one at least, and so is what is free.
    Where all does not fit, the largest give way.
    """
    if total_mib <= 0:
        return NOBODY * size
    lengths = [_cells(part.mib, total_mib, size) for part in parts]
    unused = total_mib - sum(part.mib for part in parts)
    least_free = 1 if unused >= _SHOWN_FROM * total_mib else 0
    while sum(lengths) > size - least_free:
        lengths[max(range(len(lengths)), key=lengths.__getitem__)] -= 1
    free = size - sum(lengths)
    drawn = "".join(part.mark * length for part, length in zip(parts, lengths, strict=True))
    return in_ascii(drawn + FREE * free) if ascii_only else drawn + FREE * free


def overdrawn(cells: str, beyond_mib: int, total_mib: int) -> str:
    """Return the bar of a card that more was promised or taken of than it has."""
    size = len(cells)
    if beyond_mib <= 0 or total_mib <= 0:
        return cells
    marks = min(size, max(1, _cells(beyond_mib, total_mib, size)))
    return cells[: size - marks] + OVERDRAWN * marks


def unread(size: int) -> str:
    """Return the bar of a card that cannot be read."""
    return NOBODY * size


def in_ascii(cells: str) -> str:
    """Return a bar without a character beyond ASCII."""
    return "".join(_ASCII.get(cell, cell) for cell in cells)


def _cells(mib: int, total_mib: int, size: int) -> int:
    share = mib / total_mib
    if share < _SHOWN_FROM:
        return 0
    return min(size, max(1, int(share * size + 0.5)))
