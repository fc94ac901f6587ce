"""Requests at the node: asking, their two ends, keys, leaving (see `node/requests.py`)."""

from typing import Any

import pytest

from berth.actors.card.messages import (
    ConfirmGrant,
    ReleaseLease,
    SeekLease,
    WithdrawRequest,
)
from berth.actors.node.inbox import RequestGranted
from berth.actors.node.messages import CloseNode, Withdraw
from berth.errors import Code
from berth.ids import LeaseId, RequestId
from berth.lease import WHOLE_CARD
from berth.standing import Blocker, How
from berth.units import Instant, Seconds
from tests.cores.playing_node import GPU0, GPU1, PlayedNode, fields

# --- asking ---------------------------------------------------------------------------------------


def test_request_is_numbered_told_and_sent_to_its_card() -> None:
    """H1, spec 16: first progress, then the card decides; the number is the node's (Q8)."""
    node = PlayedNode()
    request = node.asks("me", mib=(14000,), waited=Seconds(7.0), min_turn=Seconds(5.0))
    first = node.replies(str(node.numbers))[0]
    assert (request, first.last) == ("r1", False)
    assert fields(first) == {"request": "r1", "state": "queued", "name": "chat"}
    (seek,) = node.heard(SeekLease)
    assert (seek.request, seek.ask, seek.holder) == ("r1", 14000, node.process("me"))
    assert (seek.cards, seek.behind, seek.again) == (("gpu0",), "", False)
    assert seek.arrived == node.now - 7.0
    assert seek.terms.min_turn == 5.0
    assert node.asks("you") == "r2"


def test_ask_without_a_size_is_for_the_whole_card() -> None:
    """Spec 1: *sized* (`needs_mib`) or *whole card*."""
    node = PlayedNode()
    node.asks("me")
    assert node.heard(SeekLease)[0].ask is WHOLE_CARD


@pytest.mark.parametrize(
    ("named", "card"),
    [
        ((), "gpu0"),
        (("gpu1",), "gpu1"),
        (("1",), "gpu1"),
        (("0000:41:00.0",), "gpu1"),
        (("41:00.0",), "gpu1"),
        (("00000000:41:00.0",), "gpu1"),
        (("GPU-1",), "gpu1"),
    ],
)
def test_request_goes_to_the_card_it_names_or_the_first(named: tuple[str, ...], card: str) -> None:
    """Q9: without a card to the first; M1: an index, a UUID, PCI in any spelling."""
    node = PlayedNode()
    node.asks("me", cards=named)
    (seek,) = node.heard(SeekLease, card)
    assert seek.cards == (card,)


def test_unknown_card_is_refused_by_name_with_the_known_ones() -> None:
    """M1: `no card X on this node`; the hint says which there are."""
    node = PlayedNode()
    assert not node.asks("me", cards=("gpu7",))
    reply = node.answer(str(node.numbers))
    assert reply is not None
    assert reply.failure is not None
    assert (reply.failure.code, reply.failure.message) == (
        Code.NO_CARD,
        "no card gpu7 on this node",
    )
    assert reply.failure.hint == "there is gpu0 (0000:01:00.0), gpu1 (0000:41:00.0)"
    assert node.to_card("gpu0") == node.to_card("gpu1") == []


def test_node_without_cards_refuses_every_request() -> None:
    """Q9: there is no first card to go to."""
    node = PlayedNode(cards=())
    assert not node.asks("me")
    assert node.code(str(node.numbers)) is Code.NO_CARD


def test_card_that_is_named_twice_is_refused() -> None:
    """M2: by whatever names, one card is one card."""
    node = PlayedNode()
    assert not node.asks("me", cards=("gpu0", "0000:01:00.0"))
    assert node.code(str(node.numbers)) is Code.BAD_REQUEST


def test_mig_instance_is_refused_with_the_reason() -> None:
    """M1: Berth governs whole cards."""
    node = PlayedNode()
    assert not node.asks("me", cards=("MIG-3f4a",))
    (reply,) = node.replies(str(node.numbers))
    assert reply.failure is not None
    assert "MIG" in reply.failure.message


def test_hold_has_no_process() -> None:
    """Q1: a person's lease stays when the command that asked for it ends."""
    node = PlayedNode()
    request = node.asks("me", priority="hold")
    assert node.heard(SeekLease)[0].holder is None
    assert node.node.requests[request].is_hold


# --- how it goes on, and ends ---------------------------------------------------------------------


def test_waiter_is_told_its_reason_with_who_stands_in_the_way() -> None:
    """Spec 16: progress carries position, why and blockers."""
    node = PlayedNode()
    request = node.asks("me")
    blocker = Blocker(who="chat2", how=How.IN_TURN, ref="L7", left=Seconds(3.0))
    node.stands(request, "chat2 keeps its turn for 3s", blocker)
    progress = node.replies(str(node.numbers))[-1]
    said: Any = fields(progress)
    assert not progress.last
    assert set(said) >= {"request", "state", "name", "card", "position", "why", "blockers", "eta_s"}
    assert (said["state"], said["card"], said["position"]) == ("queued", "gpu0", 1)
    (shown,) = said["blockers"]
    assert (shown.who, shown.how, shown.left_s, shown.ref) == ("chat2", "in_turn", 3.0, "L7")


def test_grant_is_the_one_good_end() -> None:
    """Spec 16: `{"lease","cards":[…]}`; request r1 becomes lease L1."""
    node = PlayedNode()
    request = node.asks("me")
    asked = str(node.numbers)
    lease = node.grants(request, GPU1)
    said: Any = fields(node.answer(asked))
    (card,) = said["cards"]
    assert (said["lease"], said["name"]) == (lease, "chat")
    assert (card.card, card.uuid, card.index, card.vendor) == ("gpu1", "GPU-1", 1, "amd")
    assert not node.node.requests
    assert set(node.node.leases) == {lease}


def test_grant_says_until_when_it_can_be_started() -> None:
    """S6: not started within 30 s it is taken back; also who asks again with its key hears that."""
    node = PlayedNode()
    request = node.asks("me", key="k")
    asked = str(node.numbers)
    start_by = Instant(1030.0)
    node.hear(
        RequestGranted(request=request, lease=LeaseId("L1"), cards=(GPU0,), start_by=start_by)
    )
    node.asks("me again", key="k")
    node.is_done(node.last_call, "L1")
    assert fields(node.answer(asked))["start_by"] == start_by
    assert fields(node.answer(str(node.numbers)))["start_by"] == start_by


def test_refusal_is_the_other_end() -> None:
    """Q3: refused with the reason; whether the wait ran out decides the exit status (R6)."""
    node = PlayedNode()
    request = node.asks("me")
    node.refuses(request, Code.PINNED)
    reply = node.answer(str(node.numbers))
    assert reply is not None
    assert reply.failure is not None
    assert (reply.failure.code, reply.failure.waited_out) == (Code.PINNED, True)
    assert not node.node.requests


def test_word_about_a_request_that_has_ended_is_dropped() -> None:
    """3.12: exactly one final answer, whatever a card says afterwards."""
    node = PlayedNode()
    request = node.asks("me")
    standing = node.node.requests[request]
    node.refuses(request)
    before = len(node.said)
    node.refuses(request)
    node.ends(LeaseId("L1"))
    assert standing.cards == ("gpu0",)
    assert node.said[before:] == []


# --- the same key ---------------------------------------------------------------------------------


def test_same_key_finds_the_place_and_makes_no_second_request() -> None:
    """S6: sent again, it finds its place, never a second grant."""
    node = PlayedNode()
    request = node.asks("me", key="k")
    node.stands(request, "busy")
    node.leaves("nobody")
    assert node.asks("me again", key="k") == request
    assert fields(node.replies(str(node.numbers))[-1])["why"] == "busy"
    assert len(node.heard(SeekLease)) == 1
    node.grants(request)
    assert fields(node.answer(str(node.numbers)))["lease"] == "L1"


def test_same_key_finds_the_lease_it_became() -> None:
    """S6: a client that was cut off before it saw its grant gets it again."""
    node = PlayedNode()
    lease = node.holds("me", key="k")
    node.leaves("me")
    node.asks("me again", key="k")
    assert node.answer(str(node.numbers)) is None, "its card is asked whether it still holds"
    node.is_done(node.last_call, lease)
    said: Any = fields(node.answer(str(node.numbers)))
    assert (said["lease"], [card.card for card in said["cards"]]) == (lease, ["gpu0"])
    assert len(node.heard(SeekLease)) == 1
    node.orders(lease)
    assert node.pushed("me again") == ["drain"]


def test_grant_that_was_taken_back_meanwhile_is_asked_for_anew() -> None:
    """S6: answered as granted, its client would load what somebody else is given."""
    node = PlayedNode()
    lease = node.holds("me", key="k")
    node.leaves("me")
    node.asks("me again", key="k")
    message = str(node.numbers)
    node.fails(node.last_call, Code.NOT_FOUND)
    assert node.answer(message) is None
    assert [seek.request for seek in node.heard(SeekLease)] == ["r1", "r2"]
    node.grants(RequestId("r2"))
    assert fields(node.answer(message))["lease"] == "L2"
    node.ends(lease)
    assert set(node.node.leases) == {"L2"}


def test_card_that_does_not_say_whether_a_grant_holds_is_asked_again() -> None:
    """3.7: it was started again in between; the client must not be refused for that."""
    node = PlayedNode()
    lease = node.holds("me", key="k")
    node.asks("me again", key="k")
    message = str(node.numbers)
    node.later(5.5)
    assert len(node.heard(ConfirmGrant)) == 2
    node.is_done(node.last_call, lease)
    assert fields(node.answer(message))["lease"] == lease
    node.asks("me once more", key="k")
    node.later(11)
    assert node.code(str(node.numbers)) is Code.INTERNAL, "silent twice, its card is in trouble"


def test_end_of_the_old_connection_does_not_withdraw_who_came_back() -> None:
    """S6: the old connection's end is noticed late, when the new one is there already."""
    node = PlayedNode()
    request = node.asks("me", key="k")
    node.asks("me again", key="k")
    node.leaves("me")
    assert request in node.node.requests
    assert node.heard(WithdrawRequest) == []


def test_closing_node_still_knows_who_waits() -> None:
    """S6: a key is found before anything is refused; its card has the last word."""
    node = PlayedNode()
    request = node.asks("me", key="k")
    node.hear(CloseNode())
    assert node.asks("me again", key="k") == request


def test_no_key_is_nobodys_key() -> None:
    """S6: two clients without a key are two requests."""
    node = PlayedNode()
    assert node.asks("me") != node.asks("you")


# --- leaving --------------------------------------------------------------------------------------


def test_gone_client_withdraws_its_requests_and_keeps_its_leases() -> None:
    """S5: a waiter that is gone is withdrawn; a holder stays while its process lives."""
    node = PlayedNode()
    lease = node.holds("me", "one")
    request = node.asks("me", "two")
    other = node.asks("you", "three")
    node.leaves("me")
    (withdrawn,) = node.heard(WithdrawRequest)
    assert (withdrawn.request, withdrawn.why) == (request, "its client is gone")
    assert set(node.node.requests) == {other}
    assert node.node.leases[lease].connection is None
    assert node.heard(ReleaseLease) == []


def test_gone_client_gets_no_order_and_no_answer() -> None:
    """S5: nothing is sent to where nobody is; the lease's orders are said again on attach."""
    node = PlayedNode()
    lease = node.holds("me")
    node.leaves("me")
    before = len(node.said)
    node.orders(lease)
    assert node.said[before:] == []


def test_grant_for_a_client_that_has_left_is_given_back() -> None:
    """S5, S6: the grant crossed the withdrawal; nobody saw it, so nobody would ever end it."""
    node = PlayedNode()
    request = node.asks("me")
    node.leaves("me")
    lease = node.grants(request)
    (back,) = node.heard(ReleaseLease)
    assert (back.lease, back.peer, back.unseen) == (lease, None, True)
    node.later(0.5)
    assert len(node.heard(ReleaseLease)) == 2, "a card that was started again has not heard it"
    node.ends(lease)
    assert not node.node.leases


def test_client_withdraws_its_own_request() -> None:
    """Spec 16: op `withdraw`; the request's own message gets no second end from it."""
    node = PlayedNode()
    request = node.asks("me")
    withdrew = node.calls("me", Withdraw(request=request))
    assert fields(node.answer(withdrew)) == {}
    assert [told.request for told in node.heard(WithdrawRequest)] == [request]


def test_withdraw_by_another_connection_is_not_yours() -> None:
    """Spec 16: another's is `not_yours`, and it waits on."""
    node = PlayedNode()
    request = node.asks("me")
    message_id = node.calls("you", Withdraw(request=request))
    assert node.code(message_id) is Code.NOT_YOURS
    assert request in node.node.requests
