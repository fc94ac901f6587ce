"""A client that asks again for what it was granted: its cards say whether that still holds.

A node that died may have given the lease back already, for a client that seemed to be gone. Then
the client waits anew, under another number.
"""

from msgspec.structs import replace

from berth.actors.card.messages import ConfirmGrant, ReleaseLease
from berth.actors.node import requests
from berth.actors.node.desk import Desk, with_item
from berth.actors.node.inbox import RequestGranted
from berth.actors.node.messages import AskLease, Called, Peer, Wanted
from berth.actors.node.state import Calling, Confirming, Party
from berth.ids import Connection, Key, LeaseId, number_of


def begin(
    desk: Desk, called: Called, lease: LeaseId, wanted: Wanted, *, again: bool = False
) -> None:
    """Ask the cards whether a lease is still held."""
    party = desk.node.leases[lease]
    if party.ended:  # what is left of it on other cards is no grant any more
        _disown(desk, lease, party)
        requests.on_ask(desk, called, wanted)
        return
    cards = tuple(card for card in party.cards if desk.node.governs(card))
    process = called.peer.process
    asked = Confirming(lease=lease, wanted=wanted, process=process, again=again)
    call = desk.call(called, cards, confirming=asked)
    for card in cards:
        desk.to_card(card, ConfirmGrant(call=call, lease=lease))


def on_answered(desk: Desk, calling: Calling) -> None:
    """The cards have said whether a grant still holds: it is answered, or asked for anew."""
    confirming = calling.confirming
    if confirming is None:
        return
    called = _asked_by(calling, confirming)
    party = desk.node.leases.get(confirming.lease)
    if party is None:
        requests.on_ask(desk, called, confirming.wanted)
        return
    if calling.failed:
        _disown(desk, confirming.lease, party)
        requests.on_ask(desk, called, confirming.wanted)
        return
    party = requests.reached_by(party, called)
    desk.node = replace(desk.node, leases=with_item(desk.node.leases, confirming.lease, party))
    cards = desk.node.identities(party.cards)
    desk.answer(party, requests.granted(confirming.lease, party, cards))


def ask_again(desk: Desk, calling: Calling) -> bool:
    """Ask once more: a card that was started again has not heard of it. Tell whether that was done.

    Cards that were silent twice are in trouble, and the client hears that.
    """
    confirming = calling.confirming
    if confirming is None or confirming.again:
        return False
    called = _asked_by(calling, confirming)
    if confirming.lease in desk.node.leases:
        begin(desk, called, confirming.lease, confirming.wanted, again=True)
    else:
        requests.on_ask(desk, called, confirming.wanted)
    return True


def _asked_by(calling: Calling, confirming: Confirming) -> Called:
    connection = Connection(b"") if calling.connection is None else calling.connection
    peer = Peer(connection=connection, process=confirming.process)
    op = AskLease(wanted=confirming.wanted)
    return Called(peer=peer, message_id=calling.message_id, op=op)


def _disown(desk: Desk, lease: LeaseId, party: Party) -> None:
    """A lease is over for its client: its key is free, and what its cards keep goes back."""
    nobodys = replace(party, key=Key(""), connection=None, disowned=True)
    desk.node = replace(desk.node, leases=with_item(desk.node.leases, lease, nobodys))
    _give_back(desk, lease, nobodys)


def give_back_unseen(desk: Desk, event: RequestGranted) -> None:
    """Nobody is there any more for a grant: its cards are asked for it until it is over."""
    party = Party(
        number=number_of(event.request),
        name=event.lease,
        key=Key(""),
        cards=tuple(card.name for card in event.cards),
        exclusive=False,
        disowned=True,
    )
    desk.node = replace(desk.node, leases=with_item(desk.node.leases, event.lease, party))
    _give_back(desk, event.lease, party)


def _give_back(desk: Desk, lease: LeaseId, party: Party) -> None:
    for card in party.cards:
        if desk.node.governs(card) and card not in party.ended:
            call = desk.silent_call()
            desk.to_card(card, ReleaseLease(call=call, lease=lease, peer=None, unseen=True))


def on_tick(desk: Desk) -> None:
    """Ask again for what is over: a card that was started again has not heard it."""
    disowned = [(lease, party) for lease, party in desk.node.leases.items() if party.disowned]
    for lease, party in disowned:
        _give_back(desk, lease, party)
