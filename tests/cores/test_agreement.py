"""The agreement on several cards, as the node leads it (M2)."""

from msgspec.structs import replace

from berth.actors.card.messages import (
    AskHolders,
    AttachHolder,
    CaughtUp,
    CommitShare,
    OfferShare,
    ReleaseLease,
    SeekLease,
    WithdrawOffer,
    WithdrawRequest,
)
from berth.actors.journal.messages import Happened, Record, SaveLease
from berth.actors.node.inbox import RequestGranted, ShareDeclined, ShareInDoubt, Stand
from berth.actors.node.messages import CardRestarted
from berth.errors import Code
from berth.ids import CardName, LeaseId, RequestId
from berth.lease import Order
from tests.cores.playing_node import PlayedNode, fields

BOTH = ("gpu1", "gpu0")


def asked() -> tuple[PlayedNode, RequestId]:
    """Return a node where somebody wants both cards: 9000 MiB of gpu1 and 15000 of gpu0."""
    node = PlayedNode()
    return node, node.asks("me", cards=BOTH, mib=(9000, 15000))


def offered() -> tuple[PlayedNode, RequestId]:
    """Return a node where it fits on both, and both were told to keep their share free."""
    node, request = asked()
    for card in BOTH:
        node.share(request, card, Stand.FITS)
    return node, request


def committed() -> tuple[PlayedNode, RequestId, Record]:
    """Return a node whose record of the grant is on its way to the journal."""
    node, request = offered()
    for card in BOTH:
        node.accepts(request, card)
    (record,) = [effect for effect in node.said if isinstance(effect, Record)]
    return node, request, record


def granted() -> tuple[PlayedNode, LeaseId]:
    """Return a node where both cards are leased together."""
    node, _, record = committed()
    (grant,) = record.grants
    node.hear(grant)
    return node, grant.lease


def test_every_card_is_asked_for_its_own_share() -> None:
    """M2: the figures go in the order named, and every card sees the same instant of asking."""
    node, request = asked()
    shares = {card: node.heard(SeekLease, card) for card in BOTH}
    assert [share.ask for share in shares["gpu1"]] == [9000]
    assert [share.ask for share in shares["gpu0"]] == [15000]
    assert {share.request for one in shares.values() for share in one} == {request}
    assert len({share.arrived for one in shares.values() for share in one}) == 1


def test_holders_are_asked_only_when_every_card_could_ask() -> None:
    """M2: nobody is drained on one card for a request that another card cannot serve."""
    node, request = asked()
    node.share(request, "gpu0", Stand.COULD_ASK)
    assert node.heard(AskHolders) == []
    node.share(request, "gpu1", Stand.FITS)
    assert [ask.go for card in BOTH for ask in node.heard(AskHolders, card)] == [True, True]
    node.share(request, "gpu1", Stand.BLOCKED)
    assert [ask.go for ask in node.heard(AskHolders)] == [True, False]


def test_offer_that_one_card_does_not_answer_is_withdrawn_after_a_second() -> None:
    """M2: late is no. The share of the other card is free again at once."""
    node, request = offered()
    node.accepts(request, "gpu0")
    node.later(0.9, step=0.1)
    assert node.heard(WithdrawOffer) == []
    node.later(0.2, step=0.1)
    assert [len(node.heard(WithdrawOffer, card)) for card in BOTH] == [1, 1]
    assert not [effect for effect in node.said if isinstance(effect, Record)]
    node.accepts(request, "gpu1")
    assert len(node.heard(WithdrawOffer, "gpu1")) == 2


def test_declined_offer_is_withdrawn_everywhere_and_made_again() -> None:
    """M2: all or nothing; the next round has its own number, and comes a little later.

    Made at once, an offer and a card that declines it could chase each other for ever.
    """
    node, request = offered()
    node.accepts(request, "gpu0")
    node.hear(ShareDeclined(request=request, card=CardName("gpu1"), round=1))
    assert len(node.heard(WithdrawOffer, "gpu0")) == 1
    for card in BOTH:
        node.share(request, card, Stand.FITS)
    assert [offer.round for offer in node.heard(OfferShare)] == [1]
    node.later(0.5)
    assert [offer.round for offer in node.heard(OfferShare)] == [1, 2]
    node.accepts(request, "gpu0", round_=1)
    node.accepts(request, "gpu1", round_=1)
    assert not [effect for effect in node.said if isinstance(effect, Record)]


def test_commit_is_one_record_with_the_lease_on_every_card() -> None:
    """M2: it is the grant. Cards hear of it, and the client, once it is written."""
    node, request, record = committed()
    saved = [entry for entry in record.entries if isinstance(entry, SaveLease)]
    assert [(entry.card_key, entry.lease.held.ask) for entry in saved] == [
        ("GPU-1", 9000),
        ("GPU-0", 15000),
    ]
    assert {entry.lease.held.keys for entry in saved} == {("GPU-1", "GPU-0")}
    told = [entry for entry in record.entries if isinstance(entry, Happened)]
    assert [(event.kind, event.card) for event in told] == [
        ("lease.granted", "gpu1"),
        ("lease.granted", "gpu0"),
    ]
    assert node.heard(CommitShare) == []
    assert node.answer("1") is None
    node.hear(record.grants[0])
    assert [c.request for card in BOTH for c in node.heard(CommitShare, card)] == [request] * 2
    answer = fields(node.answer("1"))
    assert [card.card for card in answer["cards"]] == ["gpu1", "gpu0"]  # type: ignore[attr-defined]


def test_grant_whose_client_left_goes_back_on_every_card() -> None:
    """S5: a grant that is on its way to the journal cannot be called back; it is given back."""
    node, _, record = committed()
    node.leaves("me")
    assert node.heard(WithdrawRequest) == []
    node.hear(record.grants[0])
    for card in BOTH:
        assert len(node.heard(CommitShare, card)) == 1
        assert [one.unseen for one in node.heard(ReleaseLease, card)] == [True]


def test_card_in_doubt_is_told_only_when_nobody_wants_its_share() -> None:
    """M2: during a commit it must wait; afterwards the offer is withdrawn."""
    node, request, _ = committed()
    node.hear(ShareInDoubt(request=request, card=CardName("gpu0"), round=1))
    assert node.heard(WithdrawOffer) == []
    other, request = asked()
    other.hear(ShareInDoubt(request=request, card=CardName("gpu0"), round=3))
    assert [one.round for one in other.heard(WithdrawOffer)] == [3]


def test_card_that_dies_during_an_offer_starts_the_agreement_over() -> None:
    """3.7: what it kept free is forgotten, so nobody keeps anything."""
    node, request = offered()
    node.accepts(request, "gpu0")
    node.hear(CardRestarted(card=CardName("gpu0")))
    assert len(node.heard(WithdrawOffer, "gpu1")) == 1
    assert [seek.again for seek in node.heard(SeekLease)] == [False, True]
    assert len(node.heard(CaughtUp)) == 1


def test_card_that_dies_during_a_commit_waits_for_it() -> None:
    """M2: it may not grant what the record on its way gives to somebody else."""
    node, _, record = committed()
    node.hear(CardRestarted(card=CardName("gpu0")))
    assert node.heard(CaughtUp) == []
    node.hear(record.grants[0])
    told = [type(message) for message in node.to_card()]
    assert told[-2:] == [CommitShare, CaughtUp]


def test_refusal_by_one_card_ends_the_request_on_all() -> None:
    """Spec 16: exactly one end; the other cards tell it as a refusal too."""
    node, request = asked()
    node.refuses(request, Code.TOO_BIG)
    node.refuses(request, Code.WAIT_EXPIRED)
    assert node.code("1") is Code.TOO_BIG
    assert [one.refused for one in node.heard(WithdrawRequest, "gpu1")] == [Code.TOO_BIG]


def test_lease_is_over_when_its_last_card_shows_it_free() -> None:
    """M2: its exit frees all, each card by its own reading."""
    node, lease = granted()
    node.ends(lease, "gpu0")
    assert lease in node.node.leases
    node.ends(lease, "gpu1")
    assert lease not in node.node.leases


def test_holder_runs_on_only_when_no_card_wants_it_gone() -> None:
    """M2: a drain on any card stops the engine; calling one off leaves the other."""
    node, lease = granted()
    node.orders(lease, Order.DRAIN, card="gpu0")
    node.orders(lease, Order.DRAIN, card="gpu1")
    node.orders(lease, Order.CONTINUE, attempt=2, card="gpu0")
    assert node.pushed("me") == ["drain", "drain"]
    node.orders(lease, Order.CONTINUE, attempt=2, card="gpu1")
    assert node.pushed("me") == ["drain", "drain", "continue"]


def test_holder_comes_back_to_all_its_cards_with_one_answer() -> None:
    """M2, S6: a restart re-attaches it to all; it is answered once every card has."""
    node, lease = granted()
    node.leaves("me")
    message = node.attaches("me", cards=BOTH, mib=(9000, 15000), lease=lease)
    call = node.last_call
    assert [len(node.heard(AttachHolder, card)) for card in BOTH] == [1, 1]
    node.is_done(call, lease)
    assert node.answer(message) is None
    done = replace(node.heard(AttachHolder)[0])
    assert done.cards == BOTH
    node.later(5.5)
    assert node.code(message) is Code.INTERNAL


def test_lost_commit_refuses_and_forgets() -> None:
    """S6: a grant that could not be written never was."""
    node, request, record = committed()
    node.refuses(request, Code.NO_JOURNAL)
    assert node.code("1") is Code.NO_JOURNAL
    assert node.node.commits == {}
    assert isinstance(record.grants[0], RequestGranted)
