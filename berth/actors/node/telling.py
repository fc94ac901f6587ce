"""What clients hear unasked: orders, that a card was started again, that berthd is still there."""

from msgspec.structs import replace

from berth.actors.node.desk import Desk, with_item
from berth.actors.node.inbox import OrderGiven
from berth.actors.node.requests import standing
from berth.actors.node.state import Party
from berth.ids import Attempt, CardName
from berth.lease import Order
from berth.units import Seconds
from berth.wire import OrderMessage


def on_order(desk: Desk, event: OrderGiven) -> None:
    """A card has an order for a holder. One that is away hears it when it comes back."""
    party = desk.node.leases.get(event.lease)
    if party is None:
        return
    attempt = event.attempt
    if party.shared:
        party, still_wanted = _merged(party, event)
        desk.node = replace(desk.node, leases=with_item(desk.node.leases, event.lease, party))
        attempt = party.attempt
        if still_wanted:
            return
    if party.connection is None:
        return
    desk.push(
        party.connection,
        OrderMessage(
            order=event.order.value,
            lease=event.lease,
            attempt=attempt,
            grace_s=event.grace,
            why=event.why,
            now=event.now,
        ),
    )


def _merged(party: Party, event: OrderGiven) -> tuple[Party, bool]:
    """Make the orders of several cards one holder's. It runs on only when no card wants it gone.

    Returns the party, and whether a `continue` is held back because another card still waits: the
    card that called off counts its part as running, and finds out when it ends.
    """
    if event.order is Order.CONTINUE:
        draining = party.draining - {event.card}
        if draining:
            return replace(party, draining=draining), True
    else:
        draining = party.draining | {event.card}
    return replace(party, draining=draining, attempt=Attempt(party.attempt + 1)), False


def ask_again(desk: Desk, card: CardName) -> None:
    """A card was started again: it is asked anew for who waits, and holders say what they hold."""
    for party in desk.node.requests.values():
        if card in party.sought:
            seek = replace(party.sought[card], behind=party.behind, again=True)
            desk.to_card(card, seek)
    for lease, party in desk.node.leases.items():
        if card in party.cards and party.connection is not None:
            again = OrderMessage(order=Order.ATTACH.value, lease=lease, attempt=0)
            desk.push(party.connection, again)


def send_heartbeats(desk: Desk, every: Seconds) -> None:
    """Say something to every client that has heard nothing for a while; see who is gone."""
    parties = (*desk.node.requests.values(), *desk.node.leases.values())
    here = {party.connection for party in parties if party.connection is not None}
    told = {connection: at for connection, at in desk.node.told.items() if connection in here}
    desk.node = replace(desk.node, told=told)
    for request, party in tuple(desk.node.requests.items()):
        if _due(desk, party, every):
            desk.progress(party, standing(request, party, desk.now))
    for lease, party in tuple(desk.node.leases.items()):
        if party.connection is not None and _due(desk, party, every):
            desk.push(
                party.connection, OrderMessage(order=Order.PING.value, lease=lease, attempt=0)
            )


def _due(desk: Desk, party: Party, every: Seconds) -> bool:
    if party.connection is None:
        return False
    told = desk.node.told.get(party.connection)
    return told is None or desk.now - told >= every
