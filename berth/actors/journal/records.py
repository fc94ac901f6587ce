"""Leases as the journal keeps them: one flat, versioned JSON object each.

These structs are the file's format and apart from `lease.py`: a state may be renamed there without
making journals unreadable. Unknown fields of a newer Berth are ignored, missing ones have defaults.
"""

from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from berth.actors.journal.messages import SaveHold
from berth.ids import Attempt, CardName, Key, LeaseId, ProcessId, RequestId
from berth.lease import (
    WHOLE_CARD,
    Detached,
    Draining,
    DrainPhase,
    Held,
    Lease,
    Order,
    Priority,
    Releasing,
    Running,
    Stuck,
    Terms,
    mib_of,
)
from berth.units import Instant, MiB, Seconds

FORMAT: Final = 1


class _Process(msgspec.Struct, frozen=True, array_like=True):
    pid: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    start: int


class Clocks(msgspec.Struct, frozen=True, kw_only=True):
    """One moment on three clocks: the monotonic one, the one since boot, the wall's.

    The first stands still while the machine sleeps, the second does not. What a person asked for by
    the clock ends by it (S8): it is kept on the second, and on the third for after a reboot.
    """

    monotonic: float = 0.0
    boot: float = 0.0
    wall: float = 0.0


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One lease. `state` is as coarse as a restart needs it: held, draining or released."""

    lease: Annotated[str, msgspec.Meta(pattern="^L[0-9]{1,16}$")]
    name: str
    state: str
    granted: float
    format: int = FORMAT
    key: str = ""
    priority: int = Priority.INTERACTIVE
    ask_mib: int | None = None
    holder: _Process | None = None
    members: list[_Process] = []
    scope: str | None = None
    cards: list[str] = []
    card_keys: list[str] = []
    unexplained_mib: int = 0
    attempt: int = 0
    order: str | None = None
    wanted_by: str | None = None
    wait_s: float = 120.0
    min_turn_s: float = 0.0
    drain_wait_s: float = 300.0
    grace_s: float = 10.0
    start_limit_s: float = 900.0
    pinned: bool = False
    boundary: bool = False
    fail_closed: bool = False
    wrapped: bool = False
    exclusive: bool = False
    group: str | None = None
    containers: list[str] = []
    reason: str = ""
    hold_for_s: float | None = None
    until_boot: float | None = None
    until_wall: float | None = None


class HoldRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One hold that waits for its card."""

    request: Annotated[str, msgspec.Meta(pattern="^r[0-9]{1,16}$")]
    card_key: str
    name: str
    arrived: float
    format: int = FORMAT
    ask_mib: int | None = None
    wait_s: float = 0.0
    reason: str = ""
    hold_for_s: float | None = None
    holding: int = 0


_ENCODER = msgspec.json.Encoder()
_HOLDS = msgspec.json.Decoder(HoldRecord)
_DECODER = msgspec.json.Decoder(LeaseRecord)


def encode_lease(lease: Lease, clocks: Clocks) -> bytes:
    """Return a lease as it is kept at that moment."""
    held, terms = lease.held, lease.terms
    left = None if held.until is None else held.until - clocks.monotonic
    order = _order_of(lease)
    return _ENCODER.encode(
        LeaseRecord(
            lease=held.id,
            name=terms.name,
            state=_state_of(lease),
            granted=held.granted,
            key=terms.key,
            priority=terms.priority,
            ask_mib=mib_of(held.ask),
            holder=None if held.holder is None else _process(held.holder),
            members=[_process(member) for member in sorted(held.members)],
            scope=held.scope,
            cards=list(held.cards),
            card_keys=list(held.keys),
            unexplained_mib=held.unexplained,
            attempt=held.attempt,
            order=None if order is None else order.value,
            wanted_by=lease.wanted_by if isinstance(lease, Draining) else None,
            wait_s=terms.wait,
            min_turn_s=terms.min_turn,
            drain_wait_s=terms.drain_wait,
            grace_s=terms.grace,
            start_limit_s=terms.start_limit,
            pinned=terms.pinned,
            boundary=terms.boundary,
            fail_closed=terms.fail_closed,
            wrapped=terms.wrapped,
            exclusive=terms.exclusive,
            group=terms.group,
            containers=list(terms.containers),
            reason=terms.reason,
            hold_for_s=terms.hold_for,
            until_boot=None if left is None else clocks.boot + left,
            until_wall=None if left is None else clocks.wall + left,
        )
    )


def _order_of(lease: Lease) -> Order | None:
    match lease:
        case Draining() | Detached():
            return lease.order
        case _:
            return None


def _state_of(lease: Lease) -> str:
    match lease:
        case Releasing() | Stuck():
            return "released"
        case Draining():
            return "draining"
        case Detached(order=order) if order is not None:
            return "draining"
        case _:
            return "held"


def _process(process: ProcessId) -> _Process:
    return _Process(process.pid, process.start)


def decode_lease(record: bytes, clocks: Clocks, *, same_boot: bool = True) -> Lease:
    """Return a kept lease, in the state that says as much as was kept; see `card/recovery.py`.

    `clocks` is now; `same_boot` says whether it was kept since the machine was started.

    Raises:
        ValueError: the record is no lease of a format this Berth knows.
    """
    kept = _DECODER.decode(record)
    if kept.format > FORMAT:
        raise ValueError(f"lease {kept.lease} was kept by a newer Berth (format {kept.format})")
    held = replace(_held(kept), until=_until(kept, clocks, same_boot=same_boot))
    running = Running(held=held, ready=held.granted)
    if kept.state == "released":
        return Releasing(held=held, released=held.granted, free_by=held.granted)
    if kept.state == "draining":
        return Draining(
            held=held,
            order=Order(kept.order or Order.DRAIN),
            wanted_by=None if kept.wanted_by is None else RequestId(kept.wanted_by),
            asked=held.granted,
            phase=DrainPhase.ASKED,
            deadline=held.granted,
            before=running,
        )
    return running


def encode_hold(hold: SaveHold) -> bytes:
    """Return a hold that waits as it is kept."""
    return _ENCODER.encode(
        HoldRecord(
            request=hold.request,
            card_key=hold.card_key,
            name=hold.terms.name,
            arrived=hold.arrived,
            ask_mib=mib_of(hold.ask),
            wait_s=hold.terms.wait,
            reason=hold.terms.reason,
            hold_for_s=hold.terms.hold_for,
            holding=hold.holding,
        )
    )


def decode_hold(record: bytes, clocks: Clocks, *, same_boot: bool = True) -> SaveHold:
    """Return a hold that waits; one from before a reboot has waited since now.

    Raises:
        ValueError: the record is no hold of a format this Berth knows.
    """
    kept = _HOLDS.decode(record)
    if kept.format > FORMAT:
        raise ValueError(f"hold {kept.request} was kept by a newer Berth (format {kept.format})")
    return SaveHold(
        request=RequestId(kept.request),
        card_key=kept.card_key,
        terms=Terms(
            name=kept.name,
            key=Key(""),
            priority=Priority.HOLD,
            wait=Seconds(kept.wait_s),
            reason=kept.reason,
            hold_for=None if kept.hold_for_s is None else Seconds(kept.hold_for_s),
        ),
        ask=WHOLE_CARD if kept.ask_mib is None else MiB(kept.ask_mib),
        arrived=Instant(kept.arrived if same_boot else clocks.monotonic),
        holding=kept.holding,
    )


def _until(kept: LeaseRecord, clocks: Clocks, *, same_boot: bool) -> Instant | None:
    """Return when a hold ends, on the monotonic clock of now."""
    if same_boot and kept.until_boot is not None:
        return Instant(clocks.monotonic + kept.until_boot - clocks.boot)
    if not same_boot and kept.until_wall is not None:
        return Instant(clocks.monotonic + kept.until_wall - clocks.wall)
    return None


def _held(kept: LeaseRecord) -> Held:
    return Held(
        id=LeaseId(kept.lease),
        terms=_terms(kept),
        ask=WHOLE_CARD if kept.ask_mib is None else MiB(kept.ask_mib),
        holder=None if kept.holder is None else ProcessId(kept.holder.pid, kept.holder.start),
        granted=Instant(kept.granted),
        cards=tuple(CardName(card) for card in kept.cards),
        keys=tuple(kept.card_keys),
        unexplained=MiB(kept.unexplained_mib),
        attempt=Attempt(kept.attempt),
        members=frozenset(ProcessId(member.pid, member.start) for member in kept.members),
        scope=kept.scope,
    )


def _terms(kept: LeaseRecord) -> Terms:
    return Terms(
        name=kept.name,
        key=Key(kept.key),
        priority=Priority(kept.priority),
        wait=Seconds(kept.wait_s),
        min_turn=Seconds(kept.min_turn_s),
        drain_wait=Seconds(kept.drain_wait_s),
        grace=Seconds(kept.grace_s),
        start_limit=Seconds(kept.start_limit_s),
        pinned=kept.pinned,
        boundary=kept.boundary,
        fail_closed=kept.fail_closed,
        wrapped=kept.wrapped,
        exclusive=kept.exclusive,
        group=kept.group,
        containers=tuple(kept.containers),
        reason=kept.reason,
        hold_for=None if kept.hold_for_s is None else Seconds(kept.hold_for_s),
    )
