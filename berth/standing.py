"""Why a waiter waits: the reasons, as values first and as sentences last.

The card's core makes these; status, run, refusals and the socket all show the same ones.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.units import MiB, Seconds, show_duration, show_gib


class How(StrEnum):
    """In which way somebody stands in a waiter's way."""

    BUSY = "busy"
    DRAINING = "draining"
    SILENT = "silent"
    STARTING = "starting"
    RELEASING = "releasing"
    STUCK = "stuck"
    DETACHED = "detached"
    IN_TURN = "in_turn"
    PINNED = "pinned"
    HELD = "held"
    OUTRANKS = "outranks"
    FIRST_IN_LINE = "first_in_line"
    SAME_NAME = "same_name"
    OTHER_CARDS = "other_cards"
    JUGGLE = "juggle"
    STOWAWAY = "stowaway"
    UNEXPLAINED = "unexplained"
    UNMEASURED = "unmeasured"
    WAKING = "waking"
    RECOVERING = "recovering"
    NO_JOURNAL = "no_journal"


class Blocker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Somebody or something in a waiter's way.

    `who` is a name, `ref` the lease, request or card it belongs to, `left` how long it still
    lasts, `mib` what it counts or asks, `in_flight` what it has still to answer (0: it is past its
    boundary); each None where that is not known. `because` is why a card cannot be read.
    """

    who: str
    how: How
    ref: str = ""
    left: Seconds | None = None
    mib: MiB | None = None
    in_flight: int | None = None
    because: str = ""


class Outlook(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a waiter can reckon with.

    `ask` is None for a whole card. `room` could be granted now, `then` once those in its way are
    gone (None: that depends on others too); `fits`: it will fit then.
    """

    ask: MiB | None
    room: MiB
    then: MiB | None = None
    fits: bool = False


class Eta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """In how long a waiter is likely granted, and which figure that rests on."""

    left: Seconds
    of: str


NOTHING_GRANTED: Final = "berthd cannot write its journal, so nothing is granted"
"""Why everybody waits, or is refused, while the disk is full."""

LEAVING: Final = frozenset({How.DRAINING, How.RELEASING})
"""The ways of those who were asked to go, and are on their way."""

NOT_OF_ROOM: Final = frozenset(
    {
        How.SAME_NAME,
        How.RECOVERING,
        How.UNMEASURED,
        How.WAKING,
        How.NO_JOURNAL,
        How.FIRST_IN_LINE,
        How.OTHER_CARDS,
    }
)
"""The ways that say nothing of who else is in the way: it is not for room that one waits."""


def sentence(blockers: Sequence[Blocker], outlook: Outlook | None = None) -> str:
    """Return why one waits, as people read it."""
    if not blockers:
        return "about to be granted"
    passing = _would_pass(blockers[0], outlook)
    if passing:
        return passing
    return "; ".join(_clause(blocker) for blocker in blockers) + _ending(outlook)


def _would_pass(first: Blocker, outlook: Outlook | None) -> str:
    """Return why somebody who would fit now is not let past, empty when it would not fit."""
    if first.how is not How.FIRST_IN_LINE or outlook is None or outlook.ask is None:
        return ""
    if outlook.room < outlook.ask:
        return ""
    size = "the whole card" if first.mib is None else show_gib(first.mib)
    free = show_gib(outlook.room)
    return f"{free} GiB is free now, but then {first.who} ({size}) would not fit"


def _ending(outlook: Outlook | None) -> str:
    if outlook is None or not outlook.fits:
        return ""
    if outlook.then is None:
        return "; then you fit"
    return f"; then {show_gib(outlook.then)} GiB is free and you fit"


def aged(blockers: Sequence[Blocker], by: Seconds) -> tuple[Blocker, ...]:
    """Return the reasons as they are that much later: what was left has become less."""
    return tuple(
        blocker
        if blocker.left is None
        else replace(blocker, left=Seconds(max(0.0, blocker.left - by)))
        for blocker in blockers
    )


def expected(blockers: Sequence[Blocker], asked_for: Seconds, median: Seconds | None) -> Eta | None:
    """Return when a waiter is likely granted, None when no figure says so.

    All that are in its way must go, so the longest of them counts, and one that is not known makes
    the whole unknown. `asked_for` is how long ago the first of them was asked, `median` what a
    hand-off has taken on this card (None: none was measured).
    """
    etas = [_expected(blocker, asked_for, median) for blocker in blockers]
    known = [eta for eta in etas if eta is not None]
    if not known or len(known) < len(etas):
        return None
    return max(known, key=lambda eta: eta.left)


def _expected(blocker: Blocker, asked_for: Seconds, median: Seconds | None) -> Eta | None:
    match blocker.how:
        case How.DRAINING | How.RELEASING if median is not None and asked_for < median:
            return Eta(left=Seconds(median - asked_for), of="handoff")
        case How.IN_TURN | How.JUGGLE if blocker.left is not None:
            return Eta(left=Seconds(blocker.left + (median or 0.0)), of="turn")
        case How.HELD if blocker.left is not None:
            return Eta(left=blocker.left, of="hold")
        case How.STARTING if blocker.left is not None and median is not None:
            return Eta(left=Seconds(blocker.left + median), of="handoff")
        case How.RECOVERING if blocker.left is not None:
            return Eta(left=blocker.left, of="restart")
        case _:
            return None


def count(number: int, what: str) -> str:
    """Return how many, in words: `1 reply`, `2 replies`."""
    if number == 1:
        return f"1 {what}"
    plural = what.removesuffix("y") + "ies" if what.endswith("y") else f"{what}s"
    return f"{number} {plural}"


def _clause(blocker: Blocker) -> str:
    who = blocker.who
    left = "" if blocker.left is None else f" for {show_duration(blocker.left)}"
    holds = "memory" if blocker.mib is None else f"{show_gib(blocker.mib)} GiB"
    match blocker.how:
        case How.BUSY:
            return f"{who} is a job and runs to its end"
        case How.DRAINING:
            return _finishing(blocker)
        case How.SILENT:
            return f"{who} was asked to finish and does not answer"
        case How.STARTING:
            return f"{who} has only just started and answers a request first"
        case How.RELEASING:
            return f"{who} gave its memory back, and the card must show it free"
        case How.STUCK:
            return f"{who} holds {holds} that it said it gave back; the card decides"
        case How.DETACHED:
            return f"{who} runs, but its berth run has not answered since berthd started"
        case How.IN_TURN:
            return f"{who} keeps its turn{left}"
        case How.PINNED:
            return f"{who} is pinned"
        case How.HELD:
            return f"a person keeps the card{left} (berth release ends it)"
        case How.OUTRANKS:
            return f"{who} has a higher priority"
        case How.FIRST_IN_LINE:
            return f"{who} comes first"
        case How.SAME_NAME:
            return f"{who} is still there, and the name is one lease at a time"
        case How.OTHER_CARDS:
            return f"there is room here; it waits for room on {who} too"
        case How.JUGGLE:
            return (
                f"{who} keeps its turn{left}, for the two took the card from each other too often"
            )
        case How.STOWAWAY:
            return f"{who} uses {holds} without a lease"
        case How.UNEXPLAINED:
            return f"{who} shows {holds} in use that belongs to no process"
        case How.UNMEASURED:
            because = f": {blocker.because}" if blocker.because else ""
            return f"{who} cannot be read, so nothing is granted on it{because}"
        case How.WAKING:
            return f"{who} sleeps and is being woken"
        case How.RECOVERING:
            return f"berthd has just started and waits{left} for the holders it knows"
        case How.NO_JOURNAL:
            return NOTHING_GRANTED


def _finishing(blocker: Blocker) -> str:
    if blocker.in_flight is None:
        return f"{blocker.who} was asked to finish"
    if blocker.in_flight == 0:
        return f"{blocker.who} is stopping"
    return f"{blocker.who} is finishing {count(blocker.in_flight, 'reply')}"
