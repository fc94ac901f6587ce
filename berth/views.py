"""What status shows: the rows of a card, as they go over the socket and onto the screen.

Field names are the wire's (docs/protocol.md): fields may be added, never lost or renamed. Times
are seconds, memory is MiB, an absent or unmeasured figure is null.
"""

import msgspec

from berth.standing import Blocker, How


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """One card.

    `total_mib`, `used_mib` and `free_mib` are the driver's, whatever was promised of what is free.
    `room_mib` is what could be granted now, and what screens call free: the less of
    `books_free_mib`, what the books have left, and `driver_free_mib`, what the driver shows free
    less what was promised and is not used yet; never below 0. `handoff_median_s` is how long a
    hand-off took, from the first order to the grant.
    """

    card: str
    index: int
    uuid: str
    pci: str
    product: str
    vendor: str
    total_mib: int | None
    used_mib: int | None
    free_mib: int | None
    baseline_mib: int | None
    unexplained_mib: int | None
    capacity_mib: int | None
    state: str
    why: str | None
    reading_age_s: float | None
    utilisation_pct: float | None
    temperature_c: float | None
    power_w: float | None
    power_limit_w: float | None
    fan_pct: float | None
    clamped_mib: int
    books_free_mib: int | None = None
    driver_free_mib: int | None = None
    room_mib: int | None = None
    handoffs: int = 0
    handoff_median_s: float | None = None


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """How many of what an engine has still to answer."""

    n: int
    what: str


class LeaseView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One lease on one card; a lease on several is a row on each.

    `counts_mib` is what it takes in the books, `est_mib` what an engine of its name has needed
    here before, `note` what a person should know of it, `way_out`
    the command that would help. `for` is the request it was asked to finish for, `left_s` when a
    hold ends by itself.
    """

    lease: str
    card: str
    cards: tuple[str, ...]
    name: str
    group: str | None
    priority: str
    state: str
    ask_mib: int | None
    used_mib: int | None
    lent_mib: int
    since_s: float
    turn_left_s: float
    pinned: bool
    pids: tuple[int, ...]
    containers: tuple[str, ...]
    model: str | None
    note: str | None
    way_out: str | None = None
    counts_mib: int | None = None
    in_flight: InFlight | None = None
    for_: str | None = msgspec.field(default=None, name="for")
    left_s: float | None = None
    boundary: bool = False
    est_mib: int | None = None


class BlockerView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Somebody in a waiter's way: a `lease`, a `request` or a `stowaway`, or the card itself."""

    who: str
    how: str
    left_s: float | None
    ref: str
    lease: str | None = None
    request: str | None = None
    stowaway: str | None = None
    mib: int | None = None
    in_flight: int | None = None


def blocker_view(blocker: Blocker) -> BlockerView:
    """Return a blocker as it is shown."""
    ref = blocker.ref
    stowaway = blocker.who if blocker.how is How.STOWAWAY else None
    return BlockerView(
        who=blocker.who,
        how=blocker.how.value,
        left_s=None if blocker.left is None else round(blocker.left, 2),
        ref=ref,
        lease=ref if ref.startswith("L") else None,
        request=ref if ref.startswith("r") else None,
        stowaway=stowaway,
        mib=blocker.mib,
        in_flight=blocker.in_flight,
    )


class WaiterView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request that waits on one card.

    `short_mib` is what the card lacks for it now, `then_mib` what it has once those in the way are
    gone, where that is known. `wait_left_s` is null for who waits as long as it takes: a hold, and
    who has more than a year left.
    """

    request: str
    card: str
    cards: tuple[str, ...]
    name: str
    priority: str
    ask_mib: int | None
    position: int
    waited_s: float
    wait_left_s: float | None
    code: str
    why: str
    blockers: tuple[BlockerView, ...]
    eta_s: float | None
    eta_of: str | None
    short_mib: int | None = None
    then_mib: int | None = None


class StowawayView(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU process without a lease. `squatter`: it keeps the card from counting as free."""

    card: str
    pid: int
    name: str
    container: str | None
    used_mib: int | None
    squatter: bool


class CardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """All that is on one card."""

    card: CardView
    leases: tuple[LeaseView, ...]
    waiting: tuple[WaiterView, ...]
    stowaways: tuple[StowawayView, ...]


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """The berthd that answers."""

    name: str
    version: str
    pid: int
    uptime_s: float


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A node: its cards, who holds, who waits and why."""

    v: int
    node: NodeView
    cards: tuple[CardView, ...]
    leases: tuple[LeaseView, ...]
    waiting: tuple[WaiterView, ...]
    stowaways: tuple[StowawayView, ...]
