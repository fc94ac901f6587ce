"""Leases to be kept: one of every state, with all that a lease can carry."""

from berth.actors.journal.messages import SaveHold
from berth.ids import Attempt, CardName, Key, LeaseId, ProcessId, RequestId
from berth.lease import (
    WHOLE_CARD,
    Detached,
    Draining,
    DrainPhase,
    Granted,
    Held,
    Keeping,
    Lease,
    Order,
    Priority,
    Releasing,
    Running,
    Starting,
    Stuck,
    Terms,
)
from berth.units import Instant, MiB, Seconds

TERMS = Terms(
    name="chat",
    key=Key("secret"),
    priority=Priority.FOREGROUND,
    wait=Seconds(7.0),
    min_turn=Seconds(8.0),
    drain_wait=Seconds(9.0),
    grace=Seconds(11.0),
    start_limit=Seconds(12.0),
    pinned=True,
    boundary=True,
    fail_closed=True,
    wrapped=True,
    exclusive=True,
    group="llama-swap",
    containers=("abc", "def"),
)
HELD = Held(
    id=LeaseId("L7"),
    terms=TERMS,
    ask=MiB(14000),
    holder=ProcessId(70, 1),
    granted=Instant(1000.0),
    cards=(CardName("gpu0"), CardName("gpu1")),
    unexplained=MiB(30),
    attempt=Attempt(3),
    members=frozenset({ProcessId(71, 2), ProcessId(72, 3)}),
    scope="berth-L7.scope",
)
RUNNING = Running(held=HELD, ready=Instant(1001.0), served=True)


def draining(order: Order, phase: DrainPhase = DrainPhase.HEARD) -> Draining:
    return Draining(
        held=HELD,
        order=order,
        wanted_by=RequestId("r9"),
        asked=Instant(1002.0),
        phase=phase,
        deadline=Instant(1003.0),
        before=RUNNING,
    )


STATES: tuple[Lease, ...] = (
    Granted(held=HELD, start_by=Instant(1030.0)),
    Starting(held=HELD, ready_by=Instant(1900.0)),
    RUNNING,
    draining(Order.DRAIN),
    draining(Order.STOP, DrainPhase.ENDING),
    Keeping(held=HELD, hear_by=Instant(1005.0), asked=Instant(1002.0), before=RUNNING),
    Releasing(held=HELD, released=Instant(1004.0), free_by=Instant(1034.0)),
    Stuck(held=HELD, released=Instant(1004.0)),
    Detached(held=HELD),
)
HOLD = Running(
    held=Held(
        id=LeaseId("L8"),
        terms=Terms(
            name="me",
            key=Key(""),
            priority=Priority.HOLD,
            reason="a game",
            hold_for=Seconds(60.0),
        ),
        ask=WHOLE_CARD,
        holder=None,
        granted=Instant(1000.0),
    ),
    ready=Instant(1000.0),
)

WAITING = SaveHold(
    request=RequestId("r8"),
    card_key="GPU-0",
    terms=HOLD.terms,
    ask=MiB(4000),
    arrived=Instant(1000.0),
    holding=8,
)


def named(lease: Lease) -> str:
    order = f"-{lease.order}" if isinstance(lease, Draining | Detached) else ""
    return type(lease).__name__ + order
