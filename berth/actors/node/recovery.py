"""A node that starts, with the leases that outlived the last one."""

from berth.actors.journal.messages import Kept
from berth.actors.node.state import Party
from berth.ids import LeaseId
from berth.lease import Lease


def parties(kept: Kept) -> dict[LeaseId, Party]:
    """Return who holds a lease, as far as the journal knows. Their clients are away still."""
    return {lease.id: _party(lease) for leases in kept.leases.values() for lease in leases}


def _party(lease: Lease) -> Party:
    return Party(
        number=int(lease.id.removeprefix("L")),
        name=lease.name,
        key=lease.terms.key,
        cards=lease.held.cards,
        exclusive=lease.terms.exclusive,
        is_hold=lease.held.holder is None,
    )
