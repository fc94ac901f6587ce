"""A node that starts, with the leases that outlived the last one."""

from collections.abc import Sequence

from berth.actors.journal.messages import Kept
from berth.actors.node.state import Party
from berth.ids import CardName, LeaseId
from berth.lease import Lease
from berth.readings import CardIdentity


def parties(kept: Kept, cards: Sequence[CardIdentity]) -> dict[LeaseId, Party]:
    """Return who holds a lease on these cards, as the journal knows. Their clients are away still.

    Leases of cards that are not governed (now) stay in the journal, and wait for theirs.
    """
    found: dict[LeaseId, Lease] = {}
    on: dict[LeaseId, set[CardName]] = {}
    for card in cards:
        for lease in kept.leases.get(card.key, ()):
            found[lease.id] = lease
            on.setdefault(lease.id, set()).add(card.name)
    return {lease.id: _party(lease, on[lease.id], cards) for lease in found.values()}


def _party(lease: Lease, on: set[CardName], cards: Sequence[CardIdentity]) -> Party:
    """Return who holds a lease: on all its cards in the order named, ended where it is gone.

    What is gone from one of its cards is over: the others are asked for their part of it.
    """
    names = {identity.key: identity.name for identity in cards}
    named = tuple(names[key] for key in lease.held.keys if key in names) or tuple(on)
    ended = frozenset(named) - on
    return Party(
        number=int(lease.id.removeprefix("L")),
        name=lease.name,
        key=lease.terms.key,
        cards=named,
        exclusive=lease.terms.exclusive,
        is_hold=lease.held.holder is None,
        attempt=lease.held.attempt,
        ended=ended,
        disowned=bool(ended),
    )
