"""Requests for leases, from asking to their one end; names, keys, and who waits for whose end."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from berth.actors.card.messages import (
    NameFreed,
    SeekLease,
    WithdrawRequest,
)
from berth.actors.node import agreement, choice, confirming, holds
from berth.actors.node.desk import Desk, with_item, without_item
from berth.actors.node.inbox import (
    LeaseEnded,
    RequestGranted,
    RequestRefused,
    RequestStands,
)
from berth.actors.node.messages import (
    Called,
    CardGrant,
    Failure,
    ReplyData,
    Wanted,
    Withdraw,
)
from berth.actors.node.state import Agreement, Node, Party
from berth.errors import Code
from berth.ids import Connection, LeaseId, RequestId
from berth.lease import WHOLE_CARD, Ask, Priority
from berth.readings import CardIdentity
from berth.standing import How, aged, sentence
from berth.units import Instant, Seconds, since
from berth.views import blocker_view

ANY_CARD: Final = ("any",)
"""How a client says that any card will do (Q9)."""
CLIENT_WITHDREW: Final = "its client withdrew it"

# --- asking ---------------------------------------------------------------------------------------


def on_ask(desk: Desk, called: Called, wanted: Wanted) -> None:
    """A client wants a lease: find its place again, or send it to its card."""
    request, lease = desk.node.by_key(wanted.terms.key)
    if request is not None:
        _found_waiting(desk, called, request)
        return
    if lease is not None:
        confirming.begin(desk, called, lease, wanted)
        return
    cards = cards_for(desk, called, wanted)
    if not cards:
        return
    if desk.node.closing:
        desk.refuse(called, Code.SHUTTING_DOWN, "berthd is stopping; ask again when it is back")
        return
    ask_cards(desk, called, wanted, cards)


def ask_cards(
    desk: Desk,
    called: Called,
    wanted: Wanted,
    cards: tuple[CardIdentity, ...],
    holding: int = 0,
) -> RequestId:
    """Make a request of what a client wants, and send it to its cards."""
    number = desk.next_number()
    is_hold = wanted.terms.priority is Priority.HOLD
    of_hold = desk.node.holdings.get(holding)
    party = Party(
        number=number,
        name=_free_name(desk.node, wanted),
        key=wanted.terms.key,
        cards=tuple(card.name for card in cards),
        exclusive=wanted.terms.exclusive,
        connection=called.peer.connection if of_hold is None else of_hold.connection,
        message_id=called.message_id,
        is_hold=is_hold,
        holding=holding,
        kept=of_hold is not None and of_hold.connection is None,
    )
    party = replace(party, behind=_namesake(desk.node, party) if party.exclusive else "")
    request = RequestId(f"r{number}")
    asks = asks_of(wanted, len(cards))
    seek = SeekLease(
        request=request,
        terms=replace(wanted.terms, name=party.name),
        ask=asks[0],
        holder=None if is_hold else called.peer.process,
        cards=party.cards,
        arrived=Instant(desk.now - wanted.waited),
        behind=party.behind,
    )
    if wanted.cards == ANY_CARD and len(desk.node.cards) > 1:
        choice.begin(desk, request, replace(party, cards=()), seek)
        desk.progress(party, standing(request, party, desk.now))
        return request
    sought = {card: replace(seek, ask=ask) for card, ask in zip(party.cards, asks, strict=True)}
    party = replace(party, sought=sought, agreement=Agreement() if party.shared else None)
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, party))
    desk.progress(party, standing(request, party, desk.now))
    for card, share in sought.items():
        desk.to_card(card, share)
    return request


def _found_waiting(desk: Desk, called: Called, request: RequestId) -> None:
    party = reached_by(desk.node.requests[request], called)
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, party))
    desk.progress(party, standing(request, party, desk.now))


def reached_by(party: Party, called: Called) -> Party:
    """Return the party as its client is reached now."""
    return replace(party, connection=called.peer.connection, message_id=called.message_id)


def cards_for(desk: Desk, called: Called, wanted: Wanted) -> tuple[CardIdentity, ...]:
    """Return the cards that a request is for; answer the client when there are none (Q9, M2)."""
    if not desk.has_cards(called):
        return ()
    if not wanted.cards or wanted.cards == ANY_CARD:
        return desk.node.cards[:1]
    cards = []
    for text in wanted.cards:
        card = desk.card_named(called, text)
        if card is None:
            return ()
        if card in cards:
            again = f"{text} is {card.name}, which" if text != card.name else text
            why = f"{again} is named twice; name each card once"
            desk.refuse(called, Code.BAD_REQUEST, why)
            return ()
        cards.append(card)
    return tuple(cards)


def asks_of(wanted: Wanted, cards: int) -> tuple[Ask, ...]:
    """Return what is asked on each of so many cards: one figure is for every card."""
    asks: tuple[Ask, ...] = wanted.mib or (WHOLE_CARD,)
    return asks if len(asks) == cards else asks[:1] * cards


def _free_name(node: Node, wanted: Wanted) -> str:
    """Return the client's name, with a number where it may have one and the name is taken (R10)."""
    name = wanted.terms.name
    if not wanted.numbered:
        return name
    taken = {party.name for party in (*node.requests.values(), *node.leases.values())}
    number = 1
    while name in taken:
        number += 1
        name = f"{wanted.terms.name}-{number}"
    return name


def _namesake(node: Node, party: Party) -> str:
    """Return the latest earlier request or lease of the same name, empty when there is none."""
    requests, leases = node.named(party.name)
    earlier: list[tuple[int, str]] = [
        (node.requests[request].number, request)
        for request in requests
        if node.requests[request].number < party.number
    ]
    earlier += [(node.leases[lease].number, lease) for lease in leases]
    return max(earlier, default=(0, ""))[1]


# --- how it goes on, and ends ---------------------------------------------------------------------


def on_stands(desk: Desk, event: RequestStands) -> None:
    """A waiter's reason changed on one of its cards.

    Its client is told once all of them have spoken; and not that it fits on all: that is a grant.
    """
    party = desk.node.requests.get(event.request)
    if party is None:
        return
    party = replace(
        party, stands=with_item(party.stands, event.card, event), stood=desk.now, shown=None
    )
    data = standing(event.request, party, desk.now)
    if not any(_names_a_time(stand) for stand in party.stands.values()):
        party = replace(party, shown=data)
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, event.request, party))
    heard_all = all(card in party.stands for card in party.cards)
    if heard_all and not all(_waits_for_others(stand) for stand in party.stands.values()):
        desk.progress(party, data)


def _names_a_time(stand: RequestStands) -> bool:
    return stand.eta is not None or any(blocker.left is not None for blocker in stand.blockers)


def standing(request: RequestId, party: Party, now: Instant) -> Mapping[str, object]:
    """Return where a request stands, with the time that has passed since its cards said so.

    Of several cards, it is what keeps it on those that have no room for it.
    """
    if party.shown is not None:
        return party.shown
    data: dict[str, object] = {"request": request, "state": "queued", "name": party.name}
    heard = [party.stands[card] for card in party.cards if card in party.stands]
    if not heard:
        return data
    stands = [stand for stand in heard if not _waits_for_others(stand)] or heard
    elapsed = since(party.stood, now)
    etas = [stand.eta for stand in stands]
    known = [eta for eta in etas if eta is not None]
    eta = max(known, key=lambda one: one.left) if len(known) == len(etas) else None
    return {
        **data,
        "card": ",".join(stand.card for stand in stands),
        "cards": list(party.cards),
        "position": max(stand.position for stand in stands),
        "waiting": max(stand.waiting for stand in stands),
        "why": _whole_why(party, stands, elapsed),
        "blockers": [blocker_view(b) for stand in stands for b in aged(stand.blockers, elapsed)],
        "eta_s": None if eta is None else max(0.0, round(eta.left - elapsed, 2)),
        "eta_of": None if eta is None else eta.of,
    }


def _why(stand: RequestStands, elapsed: Seconds) -> str:
    if not any(blocker.left is not None for blocker in stand.blockers):
        return stand.why
    return sentence(aged(stand.blockers, elapsed), stand.outlook)


def _whole_why(party: Party, stands: list[RequestStands], elapsed: Seconds) -> str:
    """Return why a request waits; of several cards, each of those without room says its own."""
    if not party.shared:
        return _why(stands[0], elapsed)
    if all(_waits_for_others(stand) for stand in stands):
        return _FITS_EVERYWHERE
    return "; ".join(f"{stand.card}: {_why(stand, elapsed)}" for stand in stands)


_FITS_EVERYWHERE: Final = "it fits on all its cards; about to be granted"


def _waits_for_others(stand: RequestStands) -> bool:
    return {blocker.how for blocker in stand.blockers} == {How.OTHER_CARDS}


def on_granted(desk: Desk, event: RequestGranted) -> None:
    """A request became a lease. If its client has left meanwhile, the lease goes back at once."""
    agreement.committed(desk, event.request)
    party = desk.node.requests.get(event.request)
    if party is None:
        confirming.give_back_unseen(desk, event)
        return
    party = replace(
        party, sought={}, stands={}, shown=None, agreement=None, behind="", start_by=event.start_by
    )
    desk.node = replace(
        desk.node,
        requests=without_item(desk.node.requests, event.request),
        leases=with_item(desk.node.leases, event.lease, party),
    )
    _move_up(desk, event.request, event.lease)
    if party.holding:
        # A hold has no process to hear anything. What is granted is kept as a lease.
        party = replace(party, connection=None, kept=False)
        desk.node = replace(desk.node, leases=with_item(desk.node.leases, event.lease, party))
        holds.on_granted(desk, event.lease, party)
    else:
        desk.answer(party, granted(event.lease, party, event.cards))


def granted(lease: LeaseId, party: Party, cards: tuple[CardIdentity, ...]) -> ReplyData:
    """Return a grant as its client hears of it."""
    return {
        "lease": lease,
        "name": party.name,
        "cards": [card_grant(card) for card in cards],
        "start_by": party.start_by,
    }


def card_grant(card: CardIdentity) -> CardGrant:
    """Return a card as clients hear of it."""
    return CardGrant(card=card.name, uuid=card.uuid, index=card.index, vendor=card.vendor)


def on_refused(desk: Desk, event: RequestRefused) -> None:
    """A request ended without a grant: on one of its cards, so on all."""
    agreement.lost(desk, event.request)
    party = desk.node.requests.get(event.request)
    if party is None:
        return
    _forget_request(desk, event.request)
    if party.shared:
        for card in party.cards:
            end = WithdrawRequest(request=event.request, why=event.message, refused=event.code)
            desk.to_card(card, end)
    failure = Failure(
        code=event.code, message=event.message, hint=event.hint, waited_out=event.waited_out
    )
    if party.holding:
        holds.on_refused(desk, event.request, party, failure)
    else:
        desk.answer(party, None, failure)


def on_lease_ended(desk: Desk, event: LeaseEnded) -> None:
    """A lease has left the books of a card; with the last of its cards it is over."""
    party = desk.node.leases.get(event.lease)
    if party is None:
        return
    party = replace(party, ended=party.ended | {event.card})
    if party.ended.issuperset(party.cards):
        desk.node = replace(desk.node, leases=without_item(desk.node.leases, event.lease))
        _free_behind(desk, event.lease)
    else:
        desk.node = replace(desk.node, leases=with_item(desk.node.leases, event.lease, party))


def _forget_request(desk: Desk, request: RequestId) -> None:
    desk.node = replace(desk.node, requests=without_item(desk.node.requests, request))
    _free_behind(desk, request)


def _move_up(desk: Desk, request: RequestId, lease: LeaseId) -> None:
    """Let who waits for a request's end wait for the end of the lease it became."""
    for waiting, party in _behind(desk, request):
        moved = replace(party, behind=lease)
        desk.node = replace(desk.node, requests=with_item(desk.node.requests, waiting, moved))


def _free_behind(desk: Desk, ended: str) -> None:
    """Let the next of a name go on, once the one before it is gone."""
    for request, party in _behind(desk, ended):
        moved = replace(party, behind=_namesake(desk.node, party))
        desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, moved))
        if not moved.behind:
            for card in party.cards:
                desk.to_card(card, NameFreed(request=request))


def _behind(desk: Desk, earlier: str) -> list[tuple[RequestId, Party]]:
    """Return who waits for the end of that request or lease of the same name."""
    return [one for one in desk.node.requests.items() if one[1].behind == earlier]


# --- leaving, coming back -------------------------------------------------------------------------


def on_withdraw(desk: Desk, called: Called, op: Withdraw) -> None:
    """A client does not want its request any more, or its grant before it was started."""
    party = desk.node.requests.get(op.request)
    if party is None:
        desk.refuse(called, Code.NOT_FOUND, f"{op.request} does not wait")
        return
    if party.connection != called.peer.connection:
        desk.refuse(called, Code.NOT_YOURS, f"{op.request} belongs to somebody else")
        return
    if party.holding:
        holds.on_withdraw(desk, party)
    else:
        withdraw(desk, op.request, CLIENT_WITHDREW)
    desk.reply(called, {})


def withdraw(desk: Desk, request: RequestId, why: str) -> None:
    """Take a request back, and tell its cards. A grant on its way goes back when it comes."""
    party = desk.node.requests[request]
    _forget_request(desk, request)
    holds.waits_no_more(desk, request, party)
    if request not in desk.node.commits:
        for card in party.cards:
            desk.to_card(card, WithdrawRequest(request=request, why=why))


def lost(desk: Desk, connection: Connection) -> None:
    """A client is gone: its requests with it. Its leases stay, for its process may live."""
    holds.lost(desk, connection)
    waiting = desk.node.requests.items()
    for request in [one for one, party in waiting if party.connection == connection]:
        withdraw(desk, request, "its client is gone")
    for lease, party in tuple(desk.node.leases.items()):
        if party.connection == connection:
            away = replace(party, connection=None)
            desk.node = replace(desk.node, leases=with_item(desk.node.leases, lease, away))
    desk.node = replace(desk.node, told=without_item(desk.node.told, connection))
