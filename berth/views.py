"""What status shows: the rows of a card, as they go over the socket and onto the screen.

Field names are the wire's (docs/protocol.md): fields may be added, never lost or renamed. Times
are seconds, memory is MiB, an absent or unmeasured figure is null.
"""

import msgspec


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """One card."""

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


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """One lease on one card; a lease on several is a row on each."""

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


class BlockerView(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody in a waiter's way."""

    who: str
    how: str
    left_s: float | None
    ref: str


class WaiterView(msgspec.Struct, frozen=True, kw_only=True):
    """One request that waits on one card."""

    request: str
    card: str
    cards: tuple[str, ...]
    name: str
    priority: str
    ask_mib: int | None
    position: int
    waited_s: float
    wait_left_s: float
    code: str
    why: str
    blockers: tuple[BlockerView, ...]
    eta_s: float | None
    eta_of: str | None


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
