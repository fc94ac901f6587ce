"""A node that starts, with the leases and the waiting holds that outlived the last one."""

from collections.abc import Sequence

from berth.actors.card.messages import SeekLease
from berth.actors.journal.messages import Kept, SaveHold
from berth.actors.node.state import Holding, Party
from berth.ids import CardName, LeaseId, RequestId, lease_of, number_of
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


def waiting(
    kept: Kept, cards: Sequence[CardIdentity]
) -> tuple[dict[RequestId, Party], dict[int, Holding]]:
    """Return the holds that wait without a client, and the commands that they belong to.

    One whose lease is kept was granted just before berthd ended. Those of cards that are not
    governed (now) stay in the journal.
    """
    names = {identity.key: identity.name for identity in cards}
    granted = {lease.id for leases in kept.leases.values() for lease in leases}
    requests: dict[RequestId, Party] = {}
    holdings: dict[int, Holding] = {}
    for hold in kept.holds:
        if hold.card_key in names and lease_of(hold.request) not in granted:
            requests[hold.request] = _hold(hold, names[hold.card_key])
            holdings[hold.holding] = Holding(connection=None, message_id="")
    return requests, holdings


def _hold(hold: SaveHold, card: CardName) -> Party:
    seek = SeekLease(
        request=hold.request,
        terms=hold.terms,
        ask=hold.ask,
        holder=None,
        cards=(card,),
        arrived=hold.arrived,
    )
    return Party(
        number=number_of(hold.request),
        name=hold.terms.name,
        key=hold.terms.key,
        cards=(card,),
        exclusive=hold.terms.exclusive,
        is_hold=True,
        sought={card: seek},
        holding=hold.holding,
        kept=True,
    )


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
