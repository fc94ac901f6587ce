"""A card's part in a request for several cards (M2)."""

from collections.abc import Sequence
from typing import TypeVar

from berth.actors.card.messages import (
    AskHolders,
    CardEffect,
    CaughtUp,
    CommitShare,
    ForgetWaiters,
    GrantLost,
    OfferShare,
    WithdrawOffer,
    WithdrawRequest,
)
from berth.actors.card.recovery import restored
from berth.actors.card.state import Settings
from berth.actors.journal.messages import Kept
from berth.actors.node.inbox import (
    ShareAccepted,
    ShareDeclined,
    ShareInDoubt,
    ShareStands,
    Stand,
)
from berth.errors import Code
from berth.ids import CardName, ProcessId
from berth.lease import Granted, Held, Running
from berth.units import Instant, MiB
from tests.cores.playing import GPU0, Played

_Said = TypeVar("_Said")
OTHERS = ("gpu1",)


def said(card: Played, kind: type[_Said]) -> list[_Said]:
    return [message for message in card.to_node() if isinstance(message, kind)]


def stands(card: Played) -> list[Stand]:
    """Return how the card told that it stands to shares, in order."""
    return [message.stand for message in said(card, ShareStands)]


def offer(card: Played, name: str, round_: int = 1) -> Sequence[CardEffect]:
    return card.hear(OfferShare(request=card.engines[name].request, round=round_))


def with_offer(mib: int | None = 600) -> Played:
    """Return a card of 1000 MiB that keeps a share of `pair` free."""
    card = Played(total=1000)
    card.asks("pair", mib, others=OTHERS)
    offer(card, "pair")
    assert len(said(card, ShareAccepted)) == 1
    return card


def commit(card: Played, name: str) -> None:
    """Let the node tell that the grant on all cards is written."""
    engine = card.engines[name]
    held = Held(
        id=engine.lease,
        terms=engine.terms,
        ask=engine.ask,
        holder=engine.process,
        granted=card.now,
        cards=(CardName("gpu0"), CardName("gpu1")),
        keys=("GPU-0", "GPU-1"),
    )
    lease = Granted(held=held, start_by=Instant(card.now + 30.0))
    card.hear(CommitShare(request=engine.request, lease=lease))


def test_share_that_fits_is_told_and_not_granted() -> None:
    """M2: a card alone grants nothing of it."""
    card = Played(total=1000)
    card.asks("pair", 600, others=OTHERS)
    assert stands(card) == [Stand.FITS]
    assert not card.granted("pair")
    assert card.blockers("pair") == [("gpu1", "other_cards")]


def test_share_asks_holders_only_after_the_node_let_it() -> None:
    """M2: then on all cards at once; called off, the holder runs on."""
    card = Played(total=1000)
    card.runs("a", 700)
    card.later(5)
    card.asks("pair", 600, others=OTHERS)
    assert (stands(card), card.orders("a")) == ([Stand.COULD_ASK], [])
    card.hear(AskHolders(request=card.engines["pair"].request, go=True))
    assert card.orders("a") == ["drain"]
    card.hear(AskHolders(request=card.engines["pair"].request, go=False))
    assert card.orders("a") == ["drain", "continue"]


def test_share_that_is_not_first_here_does_not_ask() -> None:
    """M2: only when it is first on all its cards."""
    card = Played(total=1000)
    card.runs("a", 700, pinned=True)
    card.asks("first", 600)
    card.asks("pair", 600, others=OTHERS)
    assert stands(card) == [Stand.BLOCKED]


def test_offer_counts_as_taken_until_it_is_withdrawn() -> None:
    """M2: nobody else is granted what is kept free."""
    card = with_offer(600)
    card.asks("other", 500)
    assert card.waits("other")
    card.hear(WithdrawOffer(request=card.engines["pair"].request, round=1))
    assert stands(card)[-1] is Stand.FITS
    assert card.waits("other"), "pair comes first, and would not fit beside it"
    card.hear(WithdrawRequest(request=card.engines["pair"].request, why="gone"))
    assert card.granted("other")


def test_whole_card_offer_leaves_nothing() -> None:
    """B4: all that is left is kept."""
    card = with_offer(None)
    card.asks("other", 1)
    assert card.waits("other")


def test_offer_without_room_is_declined_and_the_stand_is_told_anew() -> None:
    """M2: what was told before is no promise; the node would wait for ever for a change."""
    card = Played(total=1000)
    card.asks("pair", 600, others=OTHERS)
    card.strangers["stranger"] = (ProcessId(999, 1), 600)
    card.read()
    assert stands(card) == [Stand.FITS, Stand.BLOCKED]
    offer(card, "pair")
    assert len(said(card, ShareDeclined)) == 1
    assert stands(card) == [Stand.FITS, Stand.BLOCKED, Stand.BLOCKED]


def test_unreadable_card_declines() -> None:
    """B1: nothing is kept free on what is not known."""
    card = Played(total=1000)
    card.asks("pair", 600, others=OTHERS)
    card.unread()
    offer(card, "pair")
    assert len(said(card, ShareDeclined)) == 1
    assert stands(card)[-1] is Stand.BLOCKED


def test_card_asks_after_three_seconds_what_became_of_an_offer() -> None:
    """M2: a second each to offer, accept and commit; then every second until it is answered."""
    card = with_offer()
    card.later(2.9, step=0.1)
    assert said(card, ShareInDoubt) == []
    card.later(0.2, step=0.1)
    assert len(said(card, ShareInDoubt)) == 1
    card.later(1.1, step=0.1)
    assert len(said(card, ShareInDoubt)) == 2


def test_offered_share_does_not_run_out_of_its_wait() -> None:
    """The record that grants it may be on its way to the disk."""
    card = Played(total=1000)
    card.asks("pair", 600, others=OTHERS, wait=1.0)
    offer(card, "pair")
    card.later(3)
    assert card.refusal("pair") is None
    card.hear(WithdrawOffer(request=card.engines["pair"].request, round=1))
    assert card.refusal("pair") is Code.WAIT_EXPIRED


def test_committed_share_is_a_lease() -> None:
    """M2: whatever was kept free for it here."""
    card = with_offer()
    commit(card, "pair")
    assert card.granted("pair")
    assert card.card.offers == ()
    assert card.card.queue == ()


def test_commit_holds_on_a_card_that_was_started_again() -> None:
    """M2: the record is the grant; the card that lost its offer grants nothing before it heard."""
    card = with_offer()
    card.card = restored(GPU0, Settings(), Kept(), card.now, again=True)
    card.read()
    card.asks("other", 900)
    assert card.waits("other")
    commit(card, "pair")
    card.hear(CaughtUp())
    assert card.granted("pair")
    assert card.waits("other")


def test_card_that_hears_nothing_after_its_restart_goes_on_after_ten_seconds() -> None:
    """3.7: the wait for the node has a deadline like any other."""
    card = Played(total=1000)
    card.card = restored(GPU0, Settings(), Kept(), card.now, again=True)
    card.asks("other", 900)
    card.later(9)
    assert card.waits("other")
    card.later(1.5)
    assert card.granted("other")


def test_new_node_tells_which_offers_were_committed() -> None:
    """S6: what the journal has is a lease; what it has not never was."""
    card = with_offer()
    engine = card.engines["pair"]
    held = Held(id=engine.lease, terms=engine.terms, ask=MiB(600), holder=None, granted=card.now)
    lease = Granted(held=held, start_by=Instant(card.now + 30.0))
    card.hear(ForgetWaiters(kept=(lease,)))
    assert card.granted("pair")
    other = with_offer()
    other.hear(ForgetWaiters(kept=()))
    assert (other.card.offers, other.card.queue, other.card.leases) == ((), (), ())


def test_card_that_forgot_its_offer_learns_of_the_commit_from_the_new_node() -> None:
    """M2: it was started again, and so was the node, while the record was on its way."""
    card = with_offer()
    engine = card.engines["pair"]
    held = Held(
        id=engine.lease, terms=engine.terms, ask=MiB(600), holder=engine.process, granted=card.now
    )
    card.card = restored(GPU0, Settings(), Kept(), card.now, again=True)
    card.hear(ForgetWaiters(kept=(Running(held=held, ready=card.now),)))
    card.read()
    card.asks("other", 500)
    assert card.granted("pair")
    assert card.waits("other")


def test_lost_commit_frees_the_share_and_is_refused() -> None:
    """S6: the journal could not be written."""
    card = with_offer()
    card.hear(GrantLost(leases=(card.engines["pair"].lease,)))
    assert card.card.offers == ()
    assert card.refusal("pair") is Code.NO_JOURNAL


def test_two_shares_stand_in_the_same_order_on_every_card() -> None:
    """M2: by priority, instant and number, so that no two wait for each other in a circle."""
    card = Played(total=1000)
    card.asks("one", 600, others=OTHERS)
    card.asks("two", 600, others=OTHERS)
    card.asks("urgent", 600, others=OTHERS, priority="foreground")
    assert [w.terms.name for w in card.card.queue] == ["urgent", "one", "two"]
