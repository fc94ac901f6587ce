"""A node that starts, with the leases that outlived the last one."""

from collections.abc import Sequence

from berth.actors.journal.messages import Kept
from berth.actors.node.state import Party
from berth.ids import LeaseId
from berth.lease import Lease
from berth.readings import CardIdentity


def parties(kept: Kept, cards: Sequence[CardIdentity]) -> dict[LeaseId, Party]:
    """Return who holds a lease on these cards, as the journal knows. Their clients are away still.

    Leases of cards that are not governed (now) stay in the journal, and wait for theirs.
    """
    return {
        lease.id: _party(lease, card) for card in cards for lease in kept.leases.get(card.key, ())
    }


def _party(lease: Lease, card: CardIdentity) -> Party:
    return Party(
        number=int(lease.id.removeprefix("L")),
        name=lease.name,
        key=lease.terms.key,
        cards=(card.name,),
        exclusive=lease.terms.exclusive,
        is_hold=lease.held.holder is None,
    )
