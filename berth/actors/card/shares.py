"""A card's part in a request for several cards (M2): all cards are granted at once, or none.

The node leads (`node/agreement.py`); a card only ever speaks for itself:

    stands     it tells the node whether its share fits, could be asked for, or neither
    asks       only after the node said that the other cards are as far
    offers     told that it fits everywhere, it looks again and keeps the share free
    commits    the node's record is in the journal: the share becomes a lease

An offer counts as taken. It does not lapse by itself: the record that makes it a lease may be on
its way to the disk. When the node has said nothing for long, the card asks it (`doubt_at`).
"""

from typing import Final, assert_never

from msgspec.structs import replace

from berth.actors.card import juggle
from berth.actors.card.books import close
from berth.actors.card.messages import (
    AskHolders,
    CommitShare,
    ForgetWaiters,
    OfferShare,
    WithdrawOffer,
)
from berth.actors.card.queue import Plan, halted, plan
from berth.actors.card.state import Offer, Waiter
from berth.actors.card.turn import Turn
from berth.actors.node.inbox import (
    ShareAccepted,
    ShareDeclined,
    ShareInDoubt,
    ShareStands,
    Stand,
    not_written,
)
from berth.ids import LeaseId, lease_of, request_of
from berth.lease import Detached, Granted, Releasing, Stuck, granted
from berth.units import Seconds, after

IN_DOUBT_AFTER: Final = Seconds(3.0)
"""How long a card keeps a share free before it asks the node: a second each to offer, accept and
commit."""
ASK_AGAIN_AFTER: Final = Seconds(1.0)


def take(
    turn: Turn,
    event: AskHolders | OfferShare | WithdrawOffer | CommitShare | ForgetWaiters,
) -> None:
    """Take what the node says of a share."""
    match event:
        case AskHolders():
            _on_ask_holders(turn, event)
        case OfferShare():
            _on_offer(turn, event)
        case WithdrawOffer():
            _on_withdraw_offer(turn, event)
        case CommitShare():
            _on_commit(turn, event)
        case ForgetWaiters():
            _on_forget(turn, event)
        case _:
            assert_never(event)


def tell_stands(turn: Turn, wanted: Plan) -> None:
    """Tell the node how the card stands to each share, where that has changed."""
    for waiter in turn.card.queue:
        if len(waiter.cards) > 1 and turn.card.offer(waiter.request) is None:
            stand = wanted.stands.get(waiter.request, Stand.BLOCKED)
            if stand is not waiter.stand:
                turn.card = turn.card.with_waiter_changed(replace(waiter, stand=stand))
                # Not on the record: one that comes later by the disk would undo the next.
                turn.effects.append(
                    ShareStands(request=waiter.request, card=turn.card.name, stand=stand)
                )


def _on_ask_holders(turn: Turn, event: AskHolders) -> None:
    """The other cards are as far (or not any more): holders may be asked for the share."""
    waiter = turn.card.waiter(event.request)
    if waiter is not None:
        turn.card = turn.card.with_waiter_changed(replace(waiter, may_ask=event.go))


def _on_offer(turn: Turn, event: OfferShare) -> None:
    """Keep the share free, if it fits at this moment."""
    waiter = turn.card.waiter(event.request)
    measured = turn.card.fresh(turn.now)
    name = turn.card.name
    if waiter is None or measured is None or not _fits_now(turn, waiter):
        _tell_again(turn, event.request)
        turn.then.append(ShareDeclined(request=event.request, card=name, round=event.round))
        return
    offer = Offer(
        request=waiter.request,
        ask=waiter.ask,
        round=event.round,
        doubt_at=after(turn.now, IN_DOUBT_AFTER),
    )
    card = turn.card.without_offer(waiter.request)
    turn.card = replace(card, offers=(*card.offers, offer))
    turn.then.append(
        ShareAccepted(
            request=waiter.request,
            card=name,
            round=event.round,
            unexplained=measured.unexplained,
            avoided=waiter.lacked_room,
        )
    )


def _fits_now(turn: Turn, waiter: Waiter) -> bool:
    if halted(turn.card, turn.now) is not None or turn.card.closing:
        return False
    card = turn.card.without_offer(waiter.request)
    measured = card.fresh(turn.now)
    if measured is None:
        return False
    return plan(card, close(card, measured), turn.now).stands.get(waiter.request) is Stand.FITS


def _on_withdraw_offer(turn: Turn, event: WithdrawOffer) -> None:
    """The share is nobody's again; how the card stands to it is news to the node."""
    offer = turn.card.offer(event.request)
    if offer is None or offer.round <= event.round:
        turn.card = turn.card.without_offer(event.request)
        _tell_again(turn, event.request)


def _tell_again(turn: Turn, request: str) -> None:
    for waiter in turn.card.queue:
        if waiter.request == request:
            turn.card = turn.card.with_waiter_changed(replace(waiter, stand=None))


def _on_commit(turn: Turn, event: CommitShare) -> None:
    """The grant is in the journal. It holds, whatever was kept free for it here."""
    waiter = turn.card.waiter(event.request)
    if waiter is not None:
        turn.card = juggle.taken(turn.card, waiter, event.lease.id)
    turn.card = turn.card.without_offer(event.request).without_waiter(event.request)
    if turn.card.lease(event.lease.id) is None:
        _adopt(turn, event.lease)


def _adopt(turn: Turn, lease: Granted | Detached) -> None:
    """Put a lease that the journal has already into the books."""
    turn.card = turn.card.with_lease(lease)
    turn.watch(lease)


def _on_forget(turn: Turn, event: ForgetWaiters) -> None:
    """The node was started again. What it had committed is in the journal: a lease.

    It was offered here, or this card was started again after it had accepted and has forgotten it.
    """
    offered = {lease_of(offer.request) for offer in turn.card.offers}
    forgetful = turn.card.awaits_node
    turn.card = replace(turn.card, queue=(), offers=(), awaits_node=False)
    for lease in event.kept:
        if turn.card.lease(lease.id) is not None or isinstance(lease, Releasing | Stuck):
            continue
        if lease.id in offered:
            _adopt(turn, granted(lease.held, turn.now))
        elif forgetful:
            _adopt(turn, Detached(held=lease.held))


def on_lost(turn: Turn, lease: LeaseId) -> None:
    """The grant on all cards could not be journaled: it never was, here neither."""
    request = request_of(lease)
    if turn.card.offer(request) is None:
        return
    turn.card = turn.card.without_offer(request).without_waiter(request)
    turn.then.append(not_written(request))


def look_at_offers(turn: Turn) -> None:
    """Ask the node what became of shares that are kept free for long."""
    for offer in turn.card.offers:
        if turn.now >= offer.doubt_at:
            later = replace(offer, doubt_at=after(turn.now, ASK_AGAIN_AFTER))
            card = turn.card.without_offer(offer.request)
            turn.card = replace(card, offers=(*card.offers, later))
            turn.effects.append(
                ShareInDoubt(request=offer.request, card=card.name, round=offer.round)
            )
