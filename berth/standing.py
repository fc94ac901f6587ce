"""Why a waiter waits: the reasons, as values first and as sentences last.

The card's core makes these; status, run, refusals and the socket all show the same ones.
"""

from enum import StrEnum

import msgspec

from berth.units import Seconds, show_duration


class How(StrEnum):
    """In which way somebody stands in a waiter's way."""

    BUSY = "busy"
    DRAINING = "draining"
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
    STOWAWAY = "stowaway"
    UNEXPLAINED = "unexplained"
    UNMEASURED = "unmeasured"
    RECOVERING = "recovering"
    NO_JOURNAL = "no_journal"


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody or something in a waiter's way.

    `who` is a name, `ref` the lease, request or card it belongs to, `left` how long it still
    lasts where that is known.
    """

    who: str
    how: How
    ref: str = ""
    left: Seconds | None = None


def sentence(blockers: tuple[Blocker, ...]) -> str:
    """Return why one waits, as people read it."""
    return "; ".join(_clause(blocker) for blocker in blockers) or "about to be granted"


def _clause(blocker: Blocker) -> str:
    who = blocker.who
    left = "" if blocker.left is None else f" for {show_duration(blocker.left)}"
    match blocker.how:
        case How.BUSY:
            return f"{who} is a job and runs to its end"
        case How.DRAINING:
            return f"{who} was asked to finish"
        case How.STARTING:
            return f"{who} has only just started and answers a request first"
        case How.RELEASING:
            return f"{who} has given its memory back; the card must show it free"
        case How.STUCK:
            return f"{who} said it gave its memory back, but the card still shows it"
        case How.DETACHED:
            return f"{who} runs, but its berth run has not answered since berthd started"
        case How.IN_TURN:
            return f"{who} keeps its turn{left}"
        case How.PINNED:
            return f"{who} is pinned"
        case How.HELD:
            return f"{who} keeps the card{left} (berth release ends it)"
        case How.OUTRANKS:
            return f"{who} has a higher priority"
        case How.FIRST_IN_LINE:
            return f"{who} comes first"
        case How.SAME_NAME:
            return f"{who} is still there, and the name is one lease at a time"
        case How.STOWAWAY:
            return f"{who} uses the card without a lease"
        case How.UNEXPLAINED:
            return f"{who} shows memory in use that belongs to no process"
        case How.UNMEASURED:
            return f"{who} cannot be read, so nothing is granted on it"
        case How.RECOVERING:
            return f"berthd has just started and waits{left} for the holders it knows"
        case How.NO_JOURNAL:
            return "berthd cannot write its journal, so nothing is granted"
