"""Theory of operation of the agreement on several cards (M2).

A request for several cards is a waiter in each card's queue, in the same place everywhere: by
priority, then by the instant and the number of its asking. So no two such requests can each be
ahead of the other, and none waits for another in a circle.

    GATHERING    each card tells how it stands: it fits, holders could be asked for it, or neither.
                 Once every card fits or could ask, all may ask; once one cannot any more, none may.
    OFFERING     it fits on every card: each is to keep its share free. All accepted: commit. One
                 declined, or silent for 1 s: every offer is withdrawn, and it is gathered again.
    COMMITTING   one record with the lease on every card is on its way to the journal. Written, it
                 is the grant: the cards are told, then the client. Lost, it never was.

No card is held while another is waited for: an offer lasts as long as it takes all to answer. What
was told to the journal cannot be taken back, so a share is never given up during COMMITTING; a card
that hears nothing for long asks (`ShareInDoubt`), and is told when nobody wants it any more.

A card that is started again has forgotten its offers: the agreement starts over. It grants nothing
before it hears `CaughtUp`, which comes after every commit that was on its way to it.
"""

from typing import Final, assert_never

from msgspec.structs import replace

from berth.actors.card.messages import (
    AskHolders,
    CaughtUp,
    CommitShare,
    OfferShare,
    SeekLease,
    WithdrawOffer,
)
from berth.actors.journal.messages import Entry, Happened, Record, SaveLease
from berth.actors.node.desk import Desk, with_item, without_item
from berth.actors.node.inbox import (
    RequestGranted,
    ShareAccepted,
    ShareDeclined,
    ShareInDoubt,
    ShareStands,
    Stand,
)
from berth.actors.node.state import Agreement, Commit, Party, Phase
from berth.ids import CardName, RequestId, lease_of
from berth.lease import START_WITHIN, Granted, Held, ask_facts, asks, granted
from berth.units import Instant, Seconds, after, since

ANSWER_WITHIN: Final = Seconds(1.0)
OFFER_AGAIN_AFTER: Final = Seconds(0.1)
"""How long after an offer that failed the next is put off, so that two never chase each other."""


def take(desk: Desk, event: ShareStands | ShareAccepted | ShareDeclined | ShareInDoubt) -> None:
    """Take what a card says of its share."""
    match event:
        case ShareStands():
            _on_stands(desk, event)
        case ShareAccepted():
            _on_accepted(desk, event)
        case ShareDeclined():
            _on_declined(desk, event)
        case ShareInDoubt():
            _on_doubt(desk, event)
        case _:
            assert_never(event)


# --- gathering ------------------------------------------------------------------------------------


def _on_stands(desk: Desk, event: ShareStands) -> None:
    """A card stands otherwise to its share than before."""
    party, agreement = _of(desk, event.request)
    if party is None or agreement is None:
        return
    stands = with_item(agreement.stands, event.card, event.stand)
    _set(desk, event.request, party, replace(agreement, stands=stands))
    _go_on(desk, event.request)


def _go_on(desk: Desk, request: RequestId) -> None:
    """See what the cards' standing allows: offer, ask holders, or stop asking."""
    party, agreement = _of(desk, request)
    if party is None or agreement is None or agreement.phase is not Phase.GATHERING:
        return
    stands = [agreement.stands.get(card, Stand.BLOCKED) for card in party.cards]
    if all(stand is Stand.FITS for stand in stands):
        if agreement.pause_until is not None and desk.now < agreement.pause_until:
            return
        _offer(desk, request, party, agreement)
        return
    go = Stand.BLOCKED not in stands
    if go is not agreement.asking:
        _set(desk, request, party, replace(agreement, asking=go))
        for card in party.cards:
            desk.to_card(card, AskHolders(request=request, go=go))


def start_over(desk: Desk, card: CardName) -> None:
    """A card was started again: what it had agreed to is forgotten."""
    for request, party in tuple(desk.node.requests.items()):
        agreement = party.agreement
        if agreement is None or card not in party.cards:
            continue
        if agreement.phase is Phase.OFFERING:
            _withdraw_offers(desk, request, party, agreement)
        elif agreement.phase is Phase.GATHERING:
            stands = without_item(agreement.stands, card)
            _set(desk, request, party, replace(agreement, stands=stands))
            _go_on(desk, request)
    for request, commit in desk.node.commits.items():
        if card in commit.leases:
            late = replace(commit, catching_up=(*commit.catching_up, card))
            desk.node = replace(desk.node, commits=with_item(desk.node.commits, request, late))
            return
    desk.to_card(card, CaughtUp())


# --- offering -------------------------------------------------------------------------------------


def _offer(desk: Desk, request: RequestId, party: Party, agreement: Agreement) -> None:
    offered = replace(
        agreement,
        phase=Phase.OFFERING,
        round=agreement.round + 1,
        accepted={},
        answer_by=after(desk.now, ANSWER_WITHIN),
    )
    _set(desk, request, party, offered)
    for card in party.cards:
        desk.to_card(card, OfferShare(request=request, round=offered.round))


def _on_accepted(desk: Desk, event: ShareAccepted) -> None:
    """A card keeps its share free. The last of them makes it a grant."""
    party, agreement = _of(desk, event.request)
    if agreement is None or party is None or not _in_round(agreement, event.round):
        if event.request not in desk.node.commits:
            desk.to_card(event.card, WithdrawOffer(request=event.request, round=event.round))
        return
    agreement = replace(agreement, accepted=with_item(agreement.accepted, event.card, event))
    _set(desk, event.request, party, agreement)
    if all(card in agreement.accepted for card in party.cards):
        _commit(desk, event.request, party, agreement)


def _on_declined(desk: Desk, event: ShareDeclined) -> None:
    """A card has no room for its share any more: nobody keeps his."""
    party, agreement = _of(desk, event.request)
    if party is not None and agreement is not None and _in_round(agreement, event.round):
        _withdraw_offers(desk, event.request, party, agreement)


def _in_round(agreement: Agreement, number: int) -> bool:
    return agreement.phase is Phase.OFFERING and agreement.round == number


def _withdraw_offers(desk: Desk, request: RequestId, party: Party, agreement: Agreement) -> None:
    """Give every share back. Each card tells anew how it stands."""
    gathering = replace(
        agreement,
        phase=Phase.GATHERING,
        stands={},
        accepted={},
        answer_by=None,
        pause_until=after(desk.now, OFFER_AGAIN_AFTER),
    )
    _set(desk, request, party, gathering)
    for card in party.cards:
        desk.to_card(card, WithdrawOffer(request=request, round=agreement.round))


def on_tick(desk: Desk) -> None:
    """Withdraw offers that were not all answered in time; make those anew that were put off."""
    agreeing = [
        (request, party, party.agreement)
        for request, party in desk.node.requests.items()
        if party.agreement is not None
    ]
    for request, party, agreement in agreeing:
        late = agreement.answer_by is not None and desk.now >= agreement.answer_by
        if late and agreement.phase is Phase.OFFERING:
            _withdraw_offers(desk, request, party, agreement)
        elif agreement.pause_until is not None and desk.now >= agreement.pause_until:
            _set(desk, request, party, replace(agreement, pause_until=None))
            _go_on(desk, request)


def _on_doubt(desk: Desk, event: ShareInDoubt) -> None:
    """A card keeps a share free for long: tell it when nobody wants it any more."""
    if event.request in desk.node.commits or lease_of(event.request) in desk.node.leases:
        return
    _, agreement = _of(desk, event.request)
    if agreement is None or not _in_round(agreement, event.round):
        desk.to_card(event.card, WithdrawOffer(request=event.request, round=event.round))


# --- committing -----------------------------------------------------------------------------------


def _commit(desk: Desk, request: RequestId, party: Party, agreement: Agreement) -> None:
    """Write the lease on all cards as one record. What rides on it ends the request."""
    cards = desk.node.identities(party.cards)
    keys = tuple(card.key for card in cards)
    start_by = after(desk.now, START_WITHIN)
    leases = {
        card: _share(party.sought[card], accepted, keys, desk.now)
        for card, accepted in agreement.accepted.items()
    }
    avoided = any(accepted.avoided for accepted in agreement.accepted.values())
    entries: list[Entry] = [SaveLease(card_key=card.key, lease=leases[card.name]) for card in cards]
    entries += [
        _granted_event(party, request, card.name, desk.now, avoided=avoided) for card in cards
    ]
    granted = RequestGranted(
        request=request, lease=lease_of(request), cards=cards, start_by=start_by
    )
    _set(desk, request, party, replace(agreement, phase=Phase.COMMITTING, answer_by=None))
    commits = with_item(desk.node.commits, request, Commit(leases=leases))
    desk.node = replace(desk.node, commits=commits)
    desk.effects.append(Record(entries=tuple(entries), then=(granted,)))


def _share(
    sought: SeekLease, accepted: ShareAccepted, keys: tuple[str, ...], now: Instant
) -> Granted:
    """Return the lease on one of its cards."""
    held = Held(
        id=lease_of(sought.request),
        terms=sought.terms,
        ask=sought.ask,
        holder=sought.holder,
        cards=sought.cards,
        keys=keys,
        granted=now,
        unexplained=accepted.unexplained,
    )
    return granted(held, now)


def _granted_event(
    party: Party, request: RequestId, card: CardName, now: Instant, *, avoided: bool
) -> Happened:
    sought = party.sought[card]
    others = ", ".join(name for name in party.cards if name != card)
    return Happened(
        kind="lease.granted",
        card=card,
        name=party.name,
        lease=lease_of(request),
        why=f"{asks(sought.ask, sought.terms.priority)}, together with {others}",
        facts={
            "waited_s": round(since(sought.arrived, now), 3),
            "avoided": avoided,
            **ask_facts(sought.ask, sought.terms.priority),
        },
    )


def committed(desk: Desk, request: RequestId) -> bool:
    """The record is written: tell the cards. Tell whether the request was one for several."""
    commit = desk.node.commits.get(request)
    if commit is None:
        return False
    desk.node = replace(desk.node, commits=without_item(desk.node.commits, request))
    for card, lease in commit.leases.items():
        desk.to_card(card, CommitShare(request=request, lease=lease))
    for card in commit.catching_up:
        desk.to_card(card, CaughtUp())
    return True


def lost(desk: Desk, request: RequestId) -> None:
    """The record could not be written: there is nothing to commit."""
    commit = desk.node.commits.get(request)
    if commit is not None:
        desk.node = replace(desk.node, commits=without_item(desk.node.commits, request))
        for card in commit.catching_up:
            desk.to_card(card, CaughtUp())


# --- shared ---------------------------------------------------------------------------------------


def _of(desk: Desk, request: RequestId) -> tuple[Party | None, Agreement | None]:
    party = desk.node.requests.get(request)
    return party, None if party is None else party.agreement


def _set(desk: Desk, request: RequestId, party: Party, agreement: Agreement) -> None:
    changed = replace(party, agreement=agreement)
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, changed))
