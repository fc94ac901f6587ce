"""Requests for leases, from asking to their one end; names, keys, and who waits for whose end."""

from msgspec.structs import replace

from berth.actors.card.messages import (
    AttachHolder,
    NameFreed,
    ReleaseLease,
    SeekLease,
    WithdrawRequest,
)
from berth.actors.node import holds
from berth.actors.node.desk import Desk, with_item, without_item
from berth.actors.node.inbox import (
    LeaseEnded,
    RequestGranted,
    RequestRefused,
    RequestStands,
)
from berth.actors.node.messages import (
    AttachLease,
    Called,
    CardGrant,
    Failure,
    ReplyData,
    Wanted,
    Withdraw,
)
from berth.actors.node.state import Node, Party
from berth.cards import find_card, known_cards, no_card
from berth.errors import Code
from berth.ids import Connection, LeaseId, RequestId, lease_of
from berth.lease import WHOLE_CARD, Ask, Priority
from berth.readings import CardIdentity
from berth.standing import aged, sentence
from berth.units import Instant, since
from berth.views import blocker_view

# --- asking ---------------------------------------------------------------------------------------


def on_ask(desk: Desk, called: Called, wanted: Wanted) -> None:
    """A client wants a lease: find its place again, or send it to its card."""
    request, lease = desk.node.by_key(wanted.terms.key)
    if request is not None:
        _found_waiting(desk, called, request)
        return
    if lease is not None:
        _found_granted(desk, called, lease)
        return
    card = _card_for(desk, called, wanted)
    if card is None:
        return
    if desk.node.closing:
        desk.refuse(called, Code.SHUTTING_DOWN, "berthd is stopping; ask again when it is back")
        return
    ask_card(desk, called, wanted, card)


def ask_card(
    desk: Desk, called: Called, wanted: Wanted, card: CardIdentity, holding: int = 0
) -> RequestId:
    """Make a request of what a client wants, and send it to its card."""
    number = desk.next_number()
    is_hold = wanted.terms.priority is Priority.HOLD
    of_hold = desk.node.holdings.get(holding)
    party = Party(
        number=number,
        name=_free_name(desk.node, wanted),
        key=wanted.terms.key,
        cards=(card.name,),
        exclusive=wanted.terms.exclusive,
        connection=called.peer.connection if of_hold is None else of_hold.connection,
        message_id=called.message_id,
        is_hold=is_hold,
        holding=holding,
    )
    request = RequestId(f"r{number}")
    seek = SeekLease(
        request=request,
        terms=replace(wanted.terms, name=party.name),
        ask=_ask_of(wanted),
        holder=None if is_hold else called.peer.process,
        cards=party.cards,
        waited=wanted.waited,
        behind=_namesake(desk.node, party) if party.exclusive else "",
    )
    party = replace(party, behind=seek.behind, sought=seek, asked=desk.now)
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, party))
    desk.progress(party, standing(request, party, desk.now))
    desk.to_card(card.name, seek)
    return request


def _found_waiting(desk: Desk, called: Called, request: RequestId) -> None:
    party = _reached_by(desk.node.requests[request], called)
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, party))
    desk.progress(party, standing(request, party, desk.now))


def _found_granted(desk: Desk, called: Called, lease: LeaseId) -> None:
    party = _reached_by(desk.node.leases[lease], called)
    desk.node = replace(desk.node, leases=with_item(desk.node.leases, lease, party))
    card = find_card(desk.node.cards, party.cards[0])
    desk.answer(party, _granted(lease, party, card))


def _reached_by(party: Party, called: Called) -> Party:
    return replace(party, connection=called.peer.connection, message_id=called.message_id)


def _card_for(desk: Desk, called: Called, wanted: Wanted) -> CardIdentity | None:
    """Return the card that a request goes to; answer the client when there is none (Q9)."""
    if not desk.node.cards:
        desk.refuse(called, Code.NO_CARD, "berthd governs no card", "see berth daemon --gpu")
        return None
    if len(wanted.cards) > 1:
        desk.refuse(called, Code.BAD_REQUEST, "a lease on several cards is not there yet")
        return None
    if not wanted.cards:
        return desk.node.cards[0]
    card = find_card(desk.node.cards, wanted.cards[0])
    if card is None:
        known = known_cards(desk.node.cards)
        desk.refuse(called, Code.NO_CARD, no_card(wanted.cards[0]), f"there is {known}")
    return card


def _ask_of(wanted: Wanted) -> Ask:
    return wanted.mib[0] if wanted.mib else WHOLE_CARD


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
    """A waiter's reason changed."""
    party = desk.node.requests.get(event.request)
    if party is None:
        return
    party = replace(party, stands=event, stood=desk.now)
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, event.request, party))
    desk.progress(party, standing(event.request, party, desk.now))


def standing(request: RequestId, party: Party, now: Instant) -> ReplyData:
    """Return where a request stands, with the time that has passed since its card said so."""
    stands = party.stands
    if stands is None:
        return {"request": request, "state": "queued", "name": party.name}
    elapsed = since(party.stood, now)
    blockers = aged(stands.blockers, elapsed)
    eta = None if stands.eta is None else max(0.0, round(stands.eta.left - elapsed, 2))
    return {
        "request": request,
        "state": "queued",
        "name": party.name,
        "card": stands.card,
        "position": stands.position,
        "waiting": stands.waiting,
        "why": sentence(blockers, stands.outlook) if blockers else stands.why,
        "blockers": [blocker_view(blocker) for blocker in blockers],
        "eta_s": eta,
        "eta_of": None if stands.eta is None else stands.eta.of,
    }


def on_granted(desk: Desk, event: RequestGranted) -> None:
    """A request became a lease. If its client has left meanwhile, the lease goes back at once."""
    party = desk.node.requests.get(event.request)
    if party is None:
        desk.to_card(
            event.card.name,
            ReleaseLease(call=desk.silent_call(), lease=event.lease, peer=None, unseen=True),
        )
        return
    party = replace(party, stands=None, behind="", start_by=event.start_by)
    desk.node = replace(
        desk.node,
        requests=without_item(desk.node.requests, event.request),
        leases=with_item(desk.node.leases, event.lease, party),
    )
    _move_up(desk, event.request, event.lease)
    if party.holding:
        party = replace(party, connection=None)  # a hold has no process to hear anything
        desk.node = replace(desk.node, leases=with_item(desk.node.leases, event.lease, party))
        holds.on_granted(desk, event.lease, party)
    else:
        desk.answer(party, _granted(event.lease, party, event.card))


def _granted(lease: LeaseId, party: Party, card: CardIdentity | None) -> ReplyData:
    return {
        "lease": lease,
        "name": party.name,
        "cards": [] if card is None else [card_grant(card)],
        "start_by": party.start_by,
    }


def card_grant(card: CardIdentity) -> CardGrant:
    """Return a card as clients hear of it."""
    return CardGrant(card=card.name, uuid=card.uuid, index=card.index, vendor=card.vendor)


def on_refused(desk: Desk, event: RequestRefused) -> None:
    """A request ended without a grant."""
    party = desk.node.requests.get(event.request)
    if party is None:
        return
    _forget_request(desk, event.request)
    failure = Failure(
        code=event.code, message=event.message, hint=event.hint, waited_out=event.waited_out
    )
    if party.holding:
        holds.on_refused(desk, party, failure)
    else:
        desk.answer(party, None, failure)


def on_lease_ended(desk: Desk, event: LeaseEnded) -> None:
    """A lease has left the books."""
    if event.lease in desk.node.leases:
        desk.node = replace(desk.node, leases=without_item(desk.node.leases, event.lease))
        _free_behind(desk, event.lease)


def _forget_request(desk: Desk, request: RequestId) -> None:
    desk.node = replace(desk.node, requests=without_item(desk.node.requests, request))
    _free_behind(desk, request)


def _move_up(desk: Desk, request: RequestId, lease: LeaseId) -> None:
    """Let who waits for a request's end wait for the end of the lease it became."""
    for waiting, party in desk.node.requests.items():
        if party.behind == request:
            moved = replace(party, behind=lease)
            desk.node = replace(desk.node, requests=with_item(desk.node.requests, waiting, moved))


def _free_behind(desk: Desk, ended: str) -> None:
    """Let the next of a name go on, once the one before it is gone."""
    for request, party in tuple(desk.node.requests.items()):
        if party.behind == ended:
            moved = replace(party, behind=_namesake(desk.node, party))
            desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, moved))
            if not moved.behind:
                desk.to_card(party.cards[0], NameFreed(request=request))


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
    withdraw(desk, op.request, "its client withdrew it")
    desk.reply(called, {})


def withdraw(desk: Desk, request: RequestId, why: str) -> None:
    """Take a request back, and tell its card."""
    party = desk.node.requests[request]
    _forget_request(desk, request)
    desk.to_card(party.cards[0], WithdrawRequest(request=request, why=why))


def lost(desk: Desk, connection: Connection) -> None:
    """A client is gone: its requests with it. Its leases stay, for its process may live."""
    holds.lost(desk, connection)
    for request, party in tuple(desk.node.requests.items()):
        if party.connection == connection:
            withdraw(desk, request, "its client is gone")
    for lease, party in tuple(desk.node.leases.items()):
        if party.connection == connection:
            away = replace(party, connection=None)
            desk.node = replace(desk.node, leases=with_item(desk.node.leases, lease, away))
    desk.node = replace(desk.node, told=without_item(desk.node.told, connection))


def on_attach(desk: Desk, called: Called, op: AttachLease) -> None:
    """A holder comes back, with its lease or (it ran unprotected) without one."""
    known = None if op.lease is None else desk.node.leases.get(op.lease)
    if known is None:
        _, lease = desk.node.by_key(op.wanted.terms.key)
        known = None if lease is None else desk.node.leases[lease]
    card = _card_for(desk, called, op.wanted)
    if card is None:
        return
    if known is not None and not desk.node.governs(known.cards[0]):
        desk.refuse(called, Code.NO_CARD, no_card(known.cards[0]))
        return
    number = desk.next_number() if known is None else known.number
    party = Party(
        number=number,
        name=op.wanted.terms.name if known is None else known.name,
        key=op.wanted.terms.key,
        cards=(card.name,) if known is None else known.cards,
        exclusive=op.wanted.terms.exclusive,
        connection=called.peer.connection,
        message_id=called.message_id,
    )
    call = desk.call(called, party.cards[0], attaching=party)
    request = RequestId(f"r{number}")
    desk.to_card(
        party.cards[0],
        AttachHolder(
            call=call,
            request=request,
            lease=None if known is None else lease_of(request),
            terms=replace(op.wanted.terms, name=party.name),
            ask=_ask_of(op.wanted),
            holder=called.peer.process,
            cards=party.cards,
            state=op.state,
            attempt=op.attempt,
            members=op.members,
            ran_for=op.ran_for,
            scope=op.scope,
        ),
    )
