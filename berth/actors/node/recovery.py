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
    found: dict[LeaseId, Party] = {}
    for card in cards:
        for lease in kept.leases.get(card.key, ()):
            known = found.get(lease.id)
            found[lease.id] = _party(lease, card, () if known is None else known.cards, cards)
    return found


def _party(
    lease: Lease, card: CardIdentity, others: tuple[CardName, ...], cards: Sequence[CardIdentity]
) -> Party:
    """Return who holds a lease on `card` and the `others`, in the order named."""
    names = {identity.name: identity.key for identity in cards}
    keys = lease.held.keys or (card.key,)
    on = sorted((*others, card.name), key=lambda name: _place(keys, names[name]))
    return Party(
        number=int(lease.id.removeprefix("L")),
        name=lease.name,
        key=lease.terms.key,
        cards=tuple(on),
        exclusive=lease.terms.exclusive,
        is_hold=lease.held.holder is None,
        attempt=lease.held.attempt,
    )


def _place(keys: tuple[str, ...], key: str) -> int:
    return keys.index(key) if key in keys else len(keys)
