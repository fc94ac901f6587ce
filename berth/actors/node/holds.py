"""A person's holds: taken on one card or several, and released.

A hold is a lease of the highest priority without a process. On each card it is a request of its
own; the command that takes several is answered once all of them are granted. Should one of them be
refused, or the command go away while it waits, those it has already are given back: a person who
asked for all cards does not keep half of them unknowingly.

A hold that nobody waits for (`berth hold --no-wait`) stays in the queue without a client. No client
will ask for it again after a restart, so the journal keeps it until it is granted or taken back.
"""

from typing import Final

from msgspec.structs import replace

from berth.actors.card.messages import ReleaseLease
from berth.actors.journal.messages import DropHold, Record, SaveHold
from berth.actors.node import requests
from berth.actors.node.desk import Desk, with_item, without_item
from berth.actors.node.messages import Called, Failure, ReleaseHolds, TakeHold, Wanted
from berth.actors.node.state import Holding, Party
from berth.errors import Code
from berth.ids import CardName, Connection, Key, LeaseId, RequestId
from berth.lease import Priority, Terms
from berth.readings import CardIdentity
from berth.units import Seconds

HOLD_NAME: Final = "hold"
_AS_LONG_AS_IT_TAKES: Final = Seconds(315360000.0)


def on_take(desk: Desk, called: Called, op: TakeHold) -> None:
    """A person takes cards: ask each of them."""
    cards = _cards(desk, called, op)
    if cards is None:
        return
    if desk.node.closing:
        desk.refuse(called, Code.SHUTTING_DOWN, "berthd is stopping; ask again when it is back")
        return
    number = desk.node.last_number + 1
    connection = called.peer.connection if op.patient else None
    holding = Holding(connection=connection, message_id=called.message_id)
    desk.node = replace(desk.node, holdings=with_item(desk.node.holdings, number, holding))
    asked = []
    for card in cards:
        wanted = Wanted(terms=_terms(op), mib=op.mib, cards=(card.name,), numbered=True)
        request = requests.ask_cards(desk, called, wanted, (card,), holding=number)
        _keep(desk, request, card)
        asked.append(request)
    if not op.patient:
        desk.reply(called, {"requests": asked, "leases": [], "state": "queued"})


def _keep(desk: Desk, request: RequestId, card: CardIdentity) -> None:
    party = desk.node.requests[request]
    if party.kept:
        seek = party.sought[card.name]
        keep = SaveHold(
            request=request,
            card_key=card.key,
            terms=seek.terms,
            ask=seek.ask,
            arrived=seek.arrived,
            holding=party.holding,
        )
        desk.effects.append(Record(entries=(keep,)))


def waits_no_more(desk: Desk, request: RequestId, party: Party) -> None:
    """A request is over without a grant: the journal forgets a hold that it kept so far."""
    if party.kept:
        desk.effects.append(Record(entries=(DropHold(request=request),)))


def _terms(op: TakeHold) -> Terms:
    return Terms(
        name=HOLD_NAME,
        key=Key(""),
        priority=Priority.HOLD,
        wait=_AS_LONG_AS_IT_TAKES,
        reason=op.reason,
        hold_for=op.hold_for,
    )


def _cards(desk: Desk, called: Called, op: TakeHold) -> list[CardIdentity] | None:
    """Return the cards that a person means; answer the client where one is not there."""
    if not desk.has_cards(called):
        return None
    if op.everything:
        return list(desk.node.cards)
    found = []
    for text in op.cards or (desk.node.cards[0].name,):
        card = desk.card_named(called, text)
        if card is None:
            return None
        if card not in found:
            found.append(card)
    return found


# --- how it goes on -------------------------------------------------------------------------------


def on_granted(desk: Desk, lease: LeaseId, party: Party) -> None:
    """One card is held. Once all are, the person hears it."""
    holding = desk.node.holdings.get(party.holding)
    if holding is None:
        return
    holding = replace(holding, leases=(*holding.leases, lease))
    desk.node = replace(desk.node, holdings=with_item(desk.node.holdings, party.holding, holding))
    if any(other.holding == party.holding for other in desk.node.requests.values()):
        return
    _forget(desk, party.holding)
    granted = [desk.node.leases[one] for one in holding.leases if one in desk.node.leases]
    cards = [card for one in granted for card in desk.node.identities(one.cards)]
    desk.answer(
        holding,
        {
            "lease": lease,
            "leases": list(holding.leases),
            "requests": [],
            "state": "held",
            "cards": [requests.card_grant(card) for card in cards],
        },
    )


def on_refused(desk: Desk, request: RequestId, party: Party, failure: Failure) -> None:
    """One card cannot be held, so none of them is; what is kept outlives a berthd that stops."""
    if party.kept and failure.code is Code.SHUTTING_DOWN:
        return
    waits_no_more(desk, request, party)
    _end(desk, party, failure)


def _end(desk: Desk, party: Party, failure: Failure) -> None:
    holding = desk.node.holdings.get(party.holding)
    if holding is not None:
        _give_up(desk, party.holding, holding, "another card was refused")
        desk.answer(holding, None, failure)


def lost(desk: Desk, connection: Connection) -> None:
    """The command that waited for holds is gone."""
    for number, holding in tuple(desk.node.holdings.items()):
        if holding.connection == connection:
            _give_up(desk, number, holding, "its client is gone")


def on_withdraw(desk: Desk, party: Party) -> None:
    """The command that waits does not want its hold any more: all of it goes, on every card."""
    holding = desk.node.holdings.get(party.holding)
    if holding is not None:
        _give_up(desk, party.holding, holding, requests.CLIENT_WITHDREW)


def _give_up(desk: Desk, number: int, holding: Holding, why: str) -> None:
    _forget(desk, number)
    for request, party in tuple(desk.node.requests.items()):
        if party.holding == number:
            requests.withdraw(desk, request, why)
    for lease in holding.leases:
        _release(desk, lease)


def _forget(desk: Desk, number: int) -> None:
    desk.node = replace(desk.node, holdings=without_item(desk.node.holdings, number))


# --- releasing ------------------------------------------------------------------------------------


def on_release(desk: Desk, called: Called, op: ReleaseHolds) -> None:
    """A person gives holds back: those on the cards named, the one named, or all."""
    cards = _named_cards(desk, called, op)
    if cards is None:
        return
    waiting = [r for r, p in desk.node.requests.items() if _is_meant(p, r, op, cards)]
    held = [lease for lease, p in desk.node.leases.items() if _is_meant(p, lease, op, cards)]
    if not waiting and not held and (op.target or op.cards):
        _no_hold(desk, called, op)
        return
    for request in waiting:
        _take_back(desk, request)
    for lease in held:
        _release(desk, lease)
    desk.reply(called, {"released": held, "withdrawn": waiting})


def _named_cards(desk: Desk, called: Called, op: ReleaseHolds) -> list[CardName] | None:
    names = []
    for text in op.cards:
        card = desk.card_named(called, text)
        if card is None:
            return None
        names.append(card.name)
    return names


def _is_meant(party: Party, number: str, op: ReleaseHolds, cards: list[CardName]) -> bool:
    if not party.is_hold:
        return False
    if op.target:
        return op.target in {number, party.name}
    return not cards or any(card in cards for card in party.cards)


def _no_hold(desk: Desk, called: Called, op: ReleaseHolds) -> None:
    _, leases = desk.node.named(op.target)
    if leases:
        name = desk.node.leases[leases[0]].name
        hint = f"it ends with:  berth stop {op.target}"
        message = f"{op.target} is no hold but the lease of {name}"
        desk.refuse(called, Code.NOT_FOUND, message, hint)
        return
    where = op.target or ", ".join(op.cards)
    hint = "berth status shows who holds what"
    desk.refuse(called, Code.NOT_FOUND, f"nobody holds {where}", hint)


def _take_back(desk: Desk, request: RequestId) -> None:
    """Withdraw a hold that waits, and tell the command that waits for it."""
    party = desk.node.requests.get(request)
    if party is None:  # it went with another of the same command
        return
    requests.withdraw(desk, request, "released by a person")
    failure = Failure(code=Code.WITHDRAWN, message="released by a person before it was granted")
    _end(desk, party, failure)


def _release(desk: Desk, lease: LeaseId) -> None:
    party = desk.node.leases.get(lease)
    if party is not None and desk.node.governs(party.cards[0]):
        release = ReleaseLease(call=desk.silent_call(), lease=lease, peer=None)
        desk.to_card(party.cards[0], release)
