"""A person gives up a lease that does not come back: it is closed, its processes are killed (H4).

Nothing is freed by that. What the card still shows belongs to nobody from then on: a stowaway while
a process has it, unexplained when none has; both are taken until a reading shows them gone.
"""

from typing import assert_never

from berth.actors.card.messages import ReclaimLease
from berth.actors.card.turn import Turn
from berth.actors.trees.messages import KillTree
from berth.errors import Code
from berth.lease import (
    Detached,
    Draining,
    Granted,
    Keeping,
    Lease,
    Releasing,
    Running,
    Starting,
    Stuck,
)


def on_reclaim(turn: Turn, event: ReclaimLease) -> None:
    """Close a lease and kill what is left of it, unless its engine is simply at work."""
    lease = turn.card.lease(event.lease)
    if lease is None:
        turn.failed(event.call, Code.NOT_FOUND, f"there is no lease {event.lease}")
        return
    match lease:
        case Granted() | Starting() | Running() | Keeping() if lease.held.holder is None:
            message = f"{lease.id} is a person's hold, with nothing to kill"
            hint = f"give it back with:  berth release {lease.id}"
            turn.failed(event.call, Code.BAD_REQUEST, message, hint)
        case Granted() | Starting() | Running() | Keeping():
            message = f"{lease.name} is at work, and was not asked to give anything back"
            hint = f"stop it first:  berth stop {lease.id}"
            turn.failed(event.call, Code.BAD_REQUEST, message, hint)
        case Draining() | Releasing() | Stuck() | Detached():
            _close(turn, lease)
            turn.done(event.call, lease, "reclaimed")
        case _:
            assert_never(lease)


def _close(turn: Turn, lease: Lease) -> None:
    held = lease.held
    if held.holder is not None:
        turn.effects.append(
            KillTree(
                lease=lease.id,
                card=turn.card.name,
                root=held.holder,
                key=lease.terms.key,
                members=held.members,
                scope=held.scope,
                wrapped=lease.terms.wrapped,
            )
        )
    turn.drop(lease)
    turn.lease_event("reclaimed", lease, "given up by a person; what was left of it was killed")
    turn.ended(lease)
