"""Xids: faults that NVIDIA's driver reports of a card, by number.

A card can throw the same one many times a second, for days. So each is told at once when it is
new, and after that at most once a minute, with how often it came.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from berth.actors.card.messages import XidThrown
from berth.units import Instant, Seconds, after

TELL_EVERY: Final = Seconds(60.0)

_MEANINGS: Final[Mapping[int, str]] = {
    13: "a program's work failed on the card, mostly by its own fault",
    31: "a program used card memory that is not its own, mostly by its own fault",
    43: "a program's work was stopped after a fault of its own",
    45: "a program's work was cleared away, as after a kill or another fault",
    48: "a memory error could not be corrected; the card needs a reset",
    63: "a memory page or row was retired; the card goes on",
    64: "a memory page or row could not be retired; the card needs a reset",
    74: "a link between two cards failed",
    79: "the card fell off the bus",
    94: "a memory error hit one program, which must be started again",
    95: "a memory error hit the whole card, which needs a reset",
    109: "a program's work did not yield in time",
    119: "the card's own processor does not answer; the card needs a reset",
    120: "the card's own processor failed; the card needs a reset",
}
"""What the commoner ones mean. Source: NVIDIA's table of Xid errors."""


class Heard(msgspec.Struct, frozen=True):
    """An Xid heard before: until when it is not told, and how often it came since it was."""

    quiet_until: Instant
    untold: int = 0


Xids: TypeAlias = Mapping[int, Heard]


def meaning(xid: int) -> str:
    """Return what an Xid says of the card, for people."""
    known = _MEANINGS.get(xid)
    return f"Xid {xid}: {known}" if known else f"Xid {xid} (NVIDIA lists what it means)"


def hear(known: Xids, thrown: tuple[int, ...], now: Instant) -> tuple[Xids, tuple[XidThrown, ...]]:
    """Take what the card threw, and tell what is due."""
    if not known and not thrown:
        return known, ()
    counts = {xid: heard.untold for xid, heard in known.items()}
    for xid in thrown:
        counts[xid] = counts.get(xid, 0) + 1
    left: dict[int, Heard] = {}
    told = []
    for xid, times in counts.items():
        before = known.get(xid)
        if before is not None and now < before.quiet_until:
            left[xid] = Heard(before.quiet_until, times)
        elif times:
            left[xid] = Heard(after(now, TELL_EVERY))
            told.append(XidThrown(xid=xid, times=times))
    return left, tuple(told)
