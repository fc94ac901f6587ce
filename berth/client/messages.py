"""What a script's lease hears, and what comes of it."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from berth.units import Instant, Seconds


class LeasedCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card of a lease: its name (`gpu0`), its index, its UUID, who made it."""

    card: str
    uuid: str = ""
    index: int = 0
    vendor: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no lease (any more). `waited_out`: a longer wait might have helped."""

    code: str
    message: str
    hint: str = ""
    waited_out: bool = False


# --- heard ----------------------------------------------------------------------------------------


class Connected(msgspec.Struct, frozen=True):
    """berthd is there."""


class Disconnected(msgspec.Struct, frozen=True):
    """berthd is gone, or silent for so long that it counts as gone."""


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """The request waits."""

    request: str
    card: str = ""
    position: int = 0
    why: str = ""


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The lease was granted; it must be started before `start_by`."""

    lease: str
    name: str
    cards: tuple[LeasedCard, ...]
    start_by: Instant | None


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """berthd has done what was asked, about that lease if it was about one."""

    op: str
    lease: str


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """berthd has not done what was asked."""

    op: str
    lease: str
    failure: Failure


class Ordered(msgspec.Struct, frozen=True, kw_only=True):
    """berthd wants something of the holder."""

    order: str
    lease: str
    attempt: int = 0
    why: str = ""


class GiveWay(msgspec.Struct, frozen=True, kw_only=True):
    """The script is at its boundary: hand the card over if it is wanted, and queue again."""

    wait: Seconds


class GiveBack(msgspec.Struct, frozen=True):
    """The script does not want the lease any more, or does not want to wait for it."""


class Served(msgspec.Struct, frozen=True):
    """The script has done a piece of work since it got the card (Q11)."""


class Passed(msgspec.Struct, frozen=True):
    """Time has passed."""


TenancyEvent: TypeAlias = (
    Connected
    | Disconnected
    | Queued
    | Granted
    | Done
    | Refused
    | Ordered
    | GiveWay
    | GiveBack
    | Served
    | Passed
)


# --- done -----------------------------------------------------------------------------------------


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """Send an operation to berthd, if it is there."""

    op: str
    fields: Mapping[str, Any]


class Warn(msgspec.Struct, frozen=True, kw_only=True):
    """Tell whoever reads the log."""

    text: str


TenancyEffect: TypeAlias = Send | Warn
