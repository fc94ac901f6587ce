"""The state of a script's lease: what it wants, and how far it is. How it changes: `core.py`."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from berth.client.messages import Failure, Granted, LeasedCard, Queued
from berth.units import Instant, Seconds, after

WITHDRAW_WITHIN: Final = Seconds(2.0)
"""How long berthd may take to hear that a request is not wanted any more."""
RETURN_AGAIN: Final = Seconds(5.0)
"""How long a return may be unheard before it is said again."""
FOR_EVER: Final = Seconds(315360000.0)
"""As long as it takes: ten years, the longest wait of the protocol."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a script wants: the fields of `lease.request`, its secret, how long it waits.

    `pid` is the process that holds the lease: it and `key` are set when the lease is taken.
    `berthd_seen`: a berthd ran since the machine booted.
    """

    terms: Mapping[str, Any]
    wait: Seconds
    key: str = ""
    pid: int = 0
    berthd_seen: bool = True


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """In the queue since `since`, or not heard yet (`heard`)."""

    since: Instant
    wait: Seconds
    heard: bool = False
    queued: Queued | None = None


class Starting(msgspec.Struct, frozen=True, kw_only=True):
    """Granted; berthd has not heard yet that it was started."""

    since: Instant
    wait: Seconds
    granted: Granted
    heard_by: Instant


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """It has the card. `order` is what berthd wants of it, empty when nothing."""

    lease: str
    name: str
    cards: tuple[LeasedCard, ...]
    since: Instant
    attempt: int = 0
    order: str = ""
    why: str = ""


class Returning(msgspec.Struct, frozen=True, kw_only=True):
    """Given back, and berthd has to hear it. `comes_back`: for how long it then waits again."""

    lease: str
    since: Instant
    again_at: Instant
    comes_back: Seconds | None = None
    failure: Failure | None = None


class Withdrawing(msgspec.Struct, frozen=True, kw_only=True):
    """It does not want to wait any more, and berthd has to hear it.

    What was asked and not answered yet is withdrawn once it has a number, or given back.
    """

    leave_by: Instant
    asked: bool = False


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """No lease, and nothing is asked for. `failure` is why, None when it was given back."""

    failure: Failure | None = None


Phase: TypeAlias = Asking | Starting | Holding | Returning | Withdrawing | Over


class Tenancy(msgspec.Struct, frozen=True, kw_only=True):
    """A script's lease: what it wants, how far it is, how often it asked, if berthd is away.

    `attaching`: it has said what it holds, and berthd has not answered yet.
    """

    wish: Wish
    phase: Phase
    asks: int = 0
    away_since: Instant | None = None
    attaching: bool = False

    @property
    def settled(self) -> bool:
        """Tell whether there is nothing to wait for: it holds the card, or it is over."""
        return isinstance(self.phase, Holding | Over)

    @property
    def wanted(self) -> bool:
        """Tell whether berthd wants the card back."""
        return isinstance(self.phase, Holding) and bool(self.phase.order)


def begin(wish: Wish, now: Instant) -> Tenancy:
    """Return a lease that has not reached berthd yet."""
    return Tenancy(wish=wish, phase=Asking(since=now, wait=wish.wait), away_since=now)


def wake_at(tenancy: Tenancy, now: Instant) -> Instant:
    """Return when the lease must look at its deadlines next."""
    latest = after(now, Seconds(1.0))
    match tenancy.phase:
        case Starting(heard_by=at) | Returning(again_at=at) | Withdrawing(leave_by=at):
            return min(latest, at)
        case _:
            return latest
