"""Operations that cards or the journal must answer: passed on, gathered, answered, given up."""

from collections.abc import Callable

from msgspec.structs import replace

from berth.actors.card.messages import CardInbox
from berth.actors.node import confirming, requests
from berth.actors.node.desk import Desk, with_item, without_item
from berth.actors.node.inbox import CallDone, CallFailed, CallId
from berth.actors.node.messages import Called, Failure
from berth.actors.node.state import Calling, Party
from berth.errors import Code
from berth.ids import CardName, Connection, LeaseId


def pass_on(
    desk: Desk, called: Called, lease: LeaseId, message: Callable[[CallId], CardInbox]
) -> None:
    """Pass an operation on a lease on to every card that it is on."""
    party = desk.node.leases.get(lease)
    if party is None:
        desk.refuse(called, Code.NOT_FOUND, f"there is no lease {lease}")
        return
    cards = tuple(c for c in party.cards if desk.node.governs(c) and c not in party.ended)
    if not cards:
        why = f"{lease} is on {party.cards[0]}, which this berthd does not govern"
        desk.refuse(called, Code.NO_CARD, why)
        return
    call = desk.call(called, cards)
    for card in cards:
        desk.to_card(card, message(call))


def on_done(desk: Desk, event: CallDone) -> None:
    """A card has done what was asked."""
    calling = desk.node.calls.get(event.call)
    if calling is None:
        return
    if calling.attaching is not None and event.lease is not None:
        _note_holder(desk, calling.attaching, event)
    calling = replace(calling, done=with_item(calling.done, _who(calling, event), event))
    _answer_when_all_have(desk, event.call, calling)


def _note_holder(desk: Desk, attaching: Party, event: CallDone) -> None:
    """A card has taken in a holder that came back; whether it wants it gone, its state says."""
    if event.lease is None:
        return
    known = desk.node.leases.get(event.lease)
    draining = attaching.draining if known is None else known.draining
    if event.on is not None and attaching.shared:
        wanted_gone = {event.on} if event.state == "draining" else set()
        draining = (draining - {event.on}) | wanted_gone
    # Taken in anew, it is on those cards that say so: others may never have heard of it.
    ended = frozenset(attaching.cards) if known is None else known.ended
    party = replace(attaching, draining=draining, ended=ended - {event.on})
    desk.node = replace(desk.node, leases=with_item(desk.node.leases, event.lease, party))


def on_failed(desk: Desk, event: CallFailed) -> None:
    """A card cannot do what was asked."""
    calling = desk.node.calls.get(event.call)
    if calling is None:
        return
    calling = replace(calling, failed=with_item(calling.failed, _who(calling, event), event))
    _answer_when_all_have(desk, event.call, calling)


def _who(calling: Calling, event: CallDone | CallFailed) -> CardName:
    """Return which card has answered; one that does not say is the only one asked."""
    return event.on or (calling.cards[0] if calling.cards else CardName(""))


def _answer_when_all_have(desk: Desk, call: CallId, calling: Calling) -> None:
    """Answer once every card has: done where one could do it, failed where none could."""
    if any(card not in calling.done and card not in calling.failed for card in calling.cards):
        desk.node = replace(desk.node, calls=with_item(desk.node.calls, call, calling))
        return
    desk.node = replace(desk.node, calls=without_item(desk.node.calls, call))
    if calling.confirming is not None:
        confirming.on_answered(desk, calling)
        return
    if not calling.done and calling.failed:
        event = next(iter(calling.failed.values()))
        desk.answer(calling, None, Failure(code=event.code, message=event.message, hint=event.hint))
        return
    done = [calling.done[card] for card in calling.cards if card in calling.done]
    cards = [requests.card_grant(one.card) for one in done if one.card is not None]
    lease = next((one.lease for one in done), None)
    state = next((one.state for one in done), None)
    desk.answer(calling, {"lease": lease, "state": state, "cards": cards})


def lost(desk: Desk, connection: Connection) -> None:
    """A client is gone: nobody waits for its answers any more."""
    kept = {}
    for call, calling in desk.node.calls.items():
        if calling.connection != connection:
            kept[call] = calling
        elif calling.attaching is not None:
            # Its card takes the holder in all the same, and the next attach must find it.
            party = replace(calling.attaching, connection=None)
            kept[call] = replace(calling, connection=None, attaching=party)
    desk.node = replace(desk.node, calls=kept)


def on_tick(desk: Desk) -> None:
    """Answer as failed what has not been answered in time."""
    for call, calling in tuple(desk.node.calls.items()):
        if desk.now >= calling.answer_by:
            desk.node = replace(desk.node, calls=without_item(desk.node.calls, call))
            if confirming.ask_again(desk, calling):
                continue
            silent = [card for card in calling.cards if card not in calling.done]
            who = " and ".join(silent) or "the journal"
            failure = Failure(code=Code.INTERNAL, message=f"{who} did not answer in 5s; try again")
            desk.answer(calling, None, failure)
