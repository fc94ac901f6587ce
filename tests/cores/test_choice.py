"""Which card a request goes to that takes any (Q9): the node asks, the cards reckon."""

from typing import Any

from berth.actors.card.messages import SeekLease, Survey
from berth.actors.card.state import Waiter
from berth.actors.card.survey import survey
from berth.actors.node.inbox import Fit, Surveyed
from berth.errors import Code
from berth.ids import CardName, Key, RequestId
from berth.lease import WHOLE_CARD, Terms
from berth.units import Instant, MiB, Seconds
from tests.cores.playing import Played
from tests.cores.playing_node import PlayedNode, fields


def asked(**changes: Any) -> tuple[PlayedNode, RequestId]:
    node = PlayedNode()
    return node, node.asks("me", cards=("any",), mib=(9000,), **changes)


def answers(node: PlayedNode, request: RequestId, card: str, rank: Fit, *cost: float) -> None:
    name = CardName(card)
    node.hear(Surveyed(request=request, card=name, rank=rank, cost=cost, why=f"{card} is best"))


def sought(node: PlayedNode) -> list[str]:
    """Return the cards that the request was sent to."""
    return [card for card in ("gpu0", "gpu1") for _ in node.heard(SeekLease, card)]


def test_every_card_is_asked_and_none_is_sought_yet() -> None:
    """Q9: nothing waits in a queue before a card is chosen."""
    node, _ = asked()
    assert [len(node.heard(Survey, card)) for card in ("gpu0", "gpu1")] == [1, 1]
    assert sought(node) == []


def test_card_where_it_fits_comes_before_the_cheapest_switch() -> None:
    """Q9: where it fits now, whatever a switch would cost elsewhere; the reason goes along."""
    node, request = asked()
    answers(node, request, "gpu0", Fit.BY_ASKING, 0.0)
    answers(node, request, "gpu1", Fit.NOW, 4000.0)
    assert sought(node) == ["gpu1"]
    assert node.heard(SeekLease, "gpu1")[0].chosen == "gpu1 is best"


def test_of_two_switches_the_cheaper_is_taken_and_of_equals_the_first_card() -> None:
    """Q9: least cost; a tie goes to the lower index."""
    node, request = asked()
    answers(node, request, "gpu1", Fit.BY_ASKING, 0.0, 1.0)
    answers(node, request, "gpu0", Fit.BY_ASKING, 0.0, 2.0)
    assert sought(node) == ["gpu1"]
    node, request = asked()
    answers(node, request, "gpu1", Fit.BY_WAITING, 1.0)
    answers(node, request, "gpu0", Fit.BY_WAITING, 1.0)
    assert sought(node) == ["gpu0"]


def test_card_that_does_not_answer_within_a_second_is_left_out() -> None:
    """Q9: the deadline of the search."""
    node, request = asked()
    answers(node, request, "gpu1", Fit.BY_WAITING)
    node.later(0.9, step=0.1)
    assert sought(node) == []
    node.later(0.2, step=0.1)
    assert sought(node) == ["gpu1"]


def test_request_that_fits_on_no_card_is_refused_with_the_figures() -> None:
    """Spec 16: too_big, at once."""
    node, request = asked()
    for card in ("gpu0", "gpu1"):
        answers(node, request, card, Fit.NEVER)
    assert node.code("1") is Code.TOO_BIG


def test_cards_that_cannot_be_read_are_asked_again_every_second() -> None:
    """Q9: a guess made while nothing was known would be kept; the wait has its end all the same."""
    node, request = asked(wait=Seconds(3.0))
    for card in ("gpu0", "gpu1"):
        answers(node, request, card, Fit.UNREADABLE)
    assert sought(node) == []
    node.later(1.5)
    assert len(node.heard(Survey)) == 2
    answers(node, request, "gpu1", Fit.NOW)
    answers(node, request, "gpu0", Fit.UNREADABLE)
    assert sought(node) == ["gpu1"]
    node, request = asked(wait=Seconds(3.0))
    for _ in range(4):
        for card in ("gpu0", "gpu1"):
            answers(node, request, card, Fit.UNREADABLE)
        node.later(1.5)
    assert sought(node) == ["gpu0"], "it gives up there, by that card's word"


def test_request_can_be_withdrawn_while_it_searches() -> None:
    """It stands in no queue, so nobody need be told."""
    node, request = asked()
    node.leaves("me")
    answers(node, request, "gpu0", Fit.NOW)
    answers(node, request, "gpu1", Fit.NOW)
    assert (sought(node), node.node.requests) == ([], {})


def reckoned(card: Played, mib: int | None) -> Surveyed:
    waiter = Waiter(
        request=RequestId("r999"),
        terms=Terms(name="new", key=Key("k"), boundary=True),
        ask=WHOLE_CARD if mib is None else MiB(mib),
        holder=None,
        cards=(card.card.name,),
        arrived=card.now,
        refuse_at=Instant(card.now + 120.0),
    )
    return survey(card.card, waiter, card.now)


def test_card_reckons_what_a_request_would_cost() -> None:
    """Q9: it fits, holders would be asked, it would wait, it can never fit; nothing changes."""
    card = Played(total=1000)
    assert reckoned(card, 400).rank == Fit.NOW
    assert reckoned(card, 2000).rank == Fit.NEVER
    card.runs("a", 700)
    card.later(5)
    before = card.card
    assert reckoned(card, 400).rank == Fit.BY_ASKING
    assert card.card is before
    card.runs("job", 200, boundary=False, pinned=True)
    assert reckoned(card, None).rank == Fit.BY_WAITING
    card.unread()
    assert reckoned(card, 400).rank == Fit.UNREADABLE


def test_tighter_fit_costs_less() -> None:
    """Q9: a small request leaves the large card open for a large one."""
    small, large = Played(total=1000), Played(total=8000)
    assert reckoned(small, 900).cost < reckoned(large, 900).cost


def test_card_that_was_chosen_is_told_of_in_the_answer() -> None:
    """Q9: the client hears which card it got."""
    node, request = asked()
    answers(node, request, "gpu0", Fit.BY_WAITING)
    answers(node, request, "gpu1", Fit.NOW)
    node.grants(request, node.cards[1])
    cards = fields(node.answer("1"))["cards"]
    assert isinstance(cards, list)
    assert [card.card for card in cards] == ["gpu1"]
