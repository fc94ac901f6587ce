"""Holders that come back: with a lease, or with an engine that should have one."""

from msgspec.structs import replace

from berth.actors.card.messages import AttachHolder
from berth.actors.node import requests
from berth.actors.node.desk import Desk
from berth.actors.node.messages import AttachLease, Called, Wanted
from berth.actors.node.state import Node, Party
from berth.cards import find_card, no_card
from berth.errors import Code
from berth.ids import Attempt, CardName, LeaseId, RequestId, lease_of
from berth.lease import Ask


def on_attach(desk: Desk, called: Called, op: AttachLease) -> None:
    """A holder comes back, with its lease or (it ran unprotected) without one."""
    lease, known = _known(desk.node, op)
    asks = _asks(desk, called, op.wanted)
    if not asks:
        return
    on = tuple(asks) if known is None else known.cards
    governed = tuple(card for card in on if desk.node.governs(card))
    if not governed:
        desk.refuse(called, Code.NO_CARD, no_card(on[0]))
        return
    number = desk.next_number() if known is None else known.number
    party = Party(
        number=number,
        name=op.wanted.terms.name if known is None else known.name,
        key=op.wanted.terms.key,
        cards=on,
        exclusive=op.wanted.terms.exclusive,
        connection=called.peer.connection,
        message_id=called.message_id,
        attempt=max(op.attempt, Attempt(0) if known is None else known.attempt),
        draining=frozenset() if known is None else known.draining,
        ended=frozenset() if known is None else known.ended,
    )
    call = desk.call(called, governed, attaching=party)
    request = RequestId(f"r{number}")
    for card in governed:
        back = AttachHolder(
            call=call,
            request=request,
            lease=None if lease is None else lease_of(request),
            terms=replace(op.wanted.terms, name=party.name),
            ask=asks.get(card, next(iter(asks.values()))),
            holder=called.peer.process,
            cards=on,
            keys=_keys(desk.node, on),
            state=op.state,
            attempt=op.attempt,
            members=op.members,
            ran_for=op.ran_for,
            scope=op.scope,
        )
        desk.to_card(card, back)


def _asks(desk: Desk, called: Called, wanted: Wanted) -> dict[CardName, Ask]:
    """Return what a holder has asked on each of its cards that are governed.

    The others do not matter now: what it holds on these must be counted, and it must be reached.
    Where none of them is, its client is told.
    """
    names = wanted.cards
    if not names or names == requests.ANY_CARD:
        cards = requests.cards_for(desk, called, wanted)
        return {card.name: requests.asks_of(wanted, 1)[0] for card in cards}
    found = {
        card.name: ask
        for name, ask in zip(names, requests.asks_of(wanted, len(names)), strict=True)
        if (card := find_card(desk.node.cards, name)) is not None
    }
    if not found and desk.has_cards(called):
        desk.card_named(called, names[0])
    return found


def _known(node: Node, op: AttachLease) -> tuple[LeaseId | None, Party | None]:
    """Return the lease that a holder means: by its id, else by its key."""
    if op.lease is not None and op.lease in node.leases:
        return op.lease, node.leases[op.lease]
    _, lease = node.by_key(op.wanted.terms.key)
    return (None, None) if lease is None else (lease, node.leases[lease])


def _keys(node: Node, cards: tuple[CardName, ...]) -> tuple[str, ...]:
    """Return what several cards are known by over a reboot; of one, its books say it."""
    keys = {card.name: card.key for card in node.cards}
    return tuple(keys.get(card, str(card)) for card in cards) if len(cards) > 1 else ()
