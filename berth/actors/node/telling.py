"""What clients hear unasked: orders, that a card was started again, that berthd is still there."""

from typing import Final

from msgspec.structs import replace

from berth.actors.node.desk import Desk, with_item
from berth.actors.node.inbox import OrderGiven
from berth.actors.node.requests import standing
from berth.actors.node.state import Party
from berth.ids import Attempt, CardName
from berth.lease import Order
from berth.units import Seconds
from berth.wire import OrderMessage

CROWD: Final = 100
CROWD_SHARE: Final = 8
"""From how many clients on each is told in a turn of its own, and how many turns there are.

A turn is a tick: all turns together take less than the time within which each must be told.
"""

_LONG_AGO: Final = float("-inf")


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
    """Say something to every client that has heard nothing for a while; see who is gone.

    What a crowd was told at one instant, it is not told again at one instant.
    """
    _forget_strangers(desk)
    turn = desk.node.beats % CROWD_SHARE
    desk.node = replace(desk.node, beats=desk.node.beats + 1)
    told = desk.node.told
    late = desk.now - every
    soon = desk.now - every / 4 if len(told) >= CROWD else late
    for request, party in desk.node.requests.items():
        heard = told.get(party.connection, _LONG_AGO) if party.connection else desk.now
        if heard > soon or (heard > late and party.number % CROWD_SHARE != turn):
            continue
        if not desk.told_now(party.connection):
            desk.progress(party, standing(request, party, desk.now))
    for lease, party in desk.node.leases.items():
        heard = told.get(party.connection, _LONG_AGO) if party.connection else desk.now
        if heard <= late and party.connection and not desk.told_now(party.connection):
            ping = OrderMessage(order=Order.PING.value, lease=lease, attempt=0)
            desk.push(party.connection, ping)


def _forget_strangers(desk: Desk) -> None:
    """Forget when those were told something who have nothing here any more, once they are many."""
    node = desk.node
    if len(node.told) <= (len(node.requests) + len(node.leases)) * 5 // 4:
        return
    here = {party.connection for party in (*node.requests.values(), *node.leases.values())}
    told = {connection: at for connection, at in node.told.items() if connection in here}
    desk.node = replace(node, told=told)
