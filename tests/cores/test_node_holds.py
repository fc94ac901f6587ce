"""Holds at the node: one command, one or several cards, all of them or none (Q1)."""

from collections.abc import Mapping
from typing import Any

import pytest

from berth.actors.card.messages import (
    ReclaimLease,
    ReleaseLease,
    SeekLease,
    WithdrawRequest,
)
from berth.actors.node.messages import Reclaim, ReleaseHolds, TakeHold, Withdraw
from berth.errors import Code
from berth.ids import CardName, LeaseId, RequestId
from berth.lease import WHOLE_CARD, Priority
from berth.units import MiB, Seconds
from tests.cores.playing_node import GPU0, GPU1, PlayedNode, fields

R1, R2 = RequestId("r1"), RequestId("r2")


def held(*cards: str, **changes: Any) -> tuple[PlayedNode, str]:
    """Return a node on which a person has asked for cards, and that message's id."""
    node = PlayedNode()
    return node, node.calls("person", TakeHold(cards=cards, **changes))


def released(node: PlayedNode, card: str = "gpu0") -> list[str]:
    return [message.lease for message in node.heard(ReleaseLease, card)]


def test_hold_is_asked_for_with_the_highest_priority_and_without_a_process() -> None:
    """Q1: a person's lease; its card grants it before anybody else."""
    node, _ = held("gpu1", hold_for=Seconds(60.0), reason="a game")
    (seek,) = node.heard(SeekLease, "gpu1")
    assert (seek.holder, seek.ask, seek.terms.priority) == (None, WHOLE_CARD, Priority.HOLD)
    assert (seek.terms.hold_for, seek.terms.reason) == (60.0, "a game")
    assert node.heard(SeekLease, "gpu0") == []


def test_hold_without_a_card_is_of_the_first() -> None:
    """Q9 holds for a person too."""
    node, _ = held()
    assert len(node.heard(SeekLease, "gpu0")) == 1


def test_sized_hold_asks_for_so_much() -> None:
    """Q1: `--needs-mib` leaves the rest of the card to others."""
    node, _ = held(mib=(MiB(4000),))
    assert node.heard(SeekLease)[0].ask == 4000


def test_command_is_answered_once_every_card_is_held() -> None:
    """Q1: the command waits for its grant; of `all`, for the last one."""
    node, asked = held(everything=True)
    node.grants(R1, GPU0)
    assert node.answer(asked) is None
    node.grants(R2, GPU1)
    said: Mapping[str, Any] = fields(node.answer(asked))
    assert said["leases"] == ["L1", "L2"]
    assert [card.card for card in said["cards"]] == ["gpu0", "gpu1"]


def test_hold_that_is_not_waited_for_is_answered_at_once_and_stays() -> None:
    """Q1: `--no-wait`; its client may leave without taking it back."""
    node, asked = held(patient=False)
    assert fields(node.answer(asked))["requests"] == ["r1"]
    node.leaves("person")
    node.later(10)
    assert node.heard(WithdrawRequest) == []
    node.grants(R1)
    assert len(node.node.leases) == 1
    assert node.node.holdings == {}


def test_who_leaves_while_it_waits_takes_all_of_its_hold_back() -> None:
    """Q3: a client that is gone withdraws; a person does not keep half a hold unknowingly."""
    node, _ = held(everything=True)
    node.grants(R1, GPU0)
    node.leaves("person")
    assert released(node) == ["L1"]
    assert [m.request for m in node.heard(WithdrawRequest, "gpu1")] == ["r2"]
    assert node.node.holdings == {}


def test_who_withdraws_one_card_of_its_hold_withdraws_all_of_it() -> None:
    """Q1: all or none, also for who ends its wait by op `withdraw` and stays connected."""
    node, _ = held(everything=True)
    node.grants(R1, GPU0)
    asked = node.calls("person", Withdraw(request=R2))
    assert fields(node.answer(asked)) == {}
    assert released(node) == ["L1"]
    assert [m.request for m in node.heard(WithdrawRequest, "gpu1")] == ["r2"]
    assert node.node.holdings == {}


def test_hold_outlives_the_command_that_took_it() -> None:
    """Q1: it stays until it is released."""
    node, _ = held()
    node.grants(R1)
    node.leaves("person")
    assert released(node) == []
    assert len(node.node.leases) == 1


def test_one_card_refused_is_the_whole_hold_refused() -> None:
    """All or none: the person reads why, and has nothing that it does not know of."""
    node, asked = held(everything=True)
    node.grants(R1, GPU0)
    node.refuses(R2, Code.TOO_BIG)
    assert node.code(asked) is Code.TOO_BIG
    assert released(node) == ["L1"]


def test_unknown_card_is_refused_by_name_before_anything_is_asked() -> None:
    """M1: `no card gpu7 on this node`, and no hold on the others."""
    node, asked = held("gpu0", "gpu7")
    assert node.code(asked) is Code.NO_CARD
    assert node.to_card() == []


def test_same_card_named_twice_is_one_hold() -> None:
    """`berth hold 0 gpu0` must not wait for itself."""
    node, _ = held("0", "gpu0", GPU0.pci)
    assert len(node.heard(SeekLease)) == 1


def test_holds_are_no_clients_to_ping() -> None:
    """A hold has no process; nothing is to be heard of it."""
    node, _ = held()
    node.grants(R1)
    node.said.clear()
    node.later(20)
    assert node.told("person") == []


def test_waiting_person_hears_where_it_stands() -> None:
    """Q1: the command that waits says whom it waits for, like any other."""
    node, asked = held()
    node.stands(R1, "chat was asked to finish")
    assert fields(node.replies(asked)[-1])["why"] == "chat was asked to finish"


# --- releasing ------------------------------------------------------------------------------------


def holding() -> PlayedNode:
    """Return a node with an engine and a hold on gpu0, and a hold that waits on gpu1."""
    node = PlayedNode()
    node.holds("engine", "chat")
    node.calls("person", TakeHold(cards=("gpu0",)))
    node.grants(R2, GPU0)
    node.calls("other", TakeHold(cards=("gpu1",)))
    return node


def test_nothing_named_releases_every_hold_and_no_engine() -> None:
    """Q1: nothing named: every hold."""
    node = holding()
    said = fields(node.answer(node.calls("person", ReleaseHolds())))
    assert (said["released"], said["withdrawn"]) == (["L2"], ["r3"])
    assert released(node) == ["L2"]


@pytest.mark.parametrize(
    "target", [ReleaseHolds(target="L2"), ReleaseHolds(cards=("0",)), ReleaseHolds(target="hold")]
)
def test_hold_is_released_by_lease_by_card_and_by_name(target: ReleaseHolds) -> None:
    """Q1: `berth release [CARD…|all|LEASE]`; others stay."""
    node = holding()
    node.calls("person", target)
    assert released(node) == ["L2"]
    assert node.heard(WithdrawRequest, "gpu1") == []


def test_releasing_a_hold_that_waits_tells_the_command_that_waits_for_it() -> None:
    """Exactly one end per request, also by another shell."""
    node = holding()
    waits = str(node.numbers)
    node.calls("person", ReleaseHolds(cards=("gpu1",)))
    assert node.code(waits) is Code.WITHDRAWN
    assert [m.request for m in node.heard(WithdrawRequest, "gpu1")] == ["r3"]


def test_engine_is_not_released_by_a_person() -> None:
    """A lease of an engine ends with berth stop; the refusal says so."""
    node = holding()
    answer = node.answer(node.calls("person", ReleaseHolds(target="L1")))
    assert answer is not None
    assert answer.failure is not None
    assert answer.failure.message == "L1 is no hold but the lease of chat"
    assert "berth stop L1" in answer.failure.hint
    assert released(node) == []


def test_card_that_nobody_holds_is_told() -> None:
    """A wrong card must not pass for a release."""
    node = PlayedNode()
    assert node.code(node.calls("person", ReleaseHolds(cards=("gpu0",)))) is Code.NOT_FOUND
    assert node.code(node.calls("person", ReleaseHolds(cards=("gpu9",)))) is Code.NO_CARD
    assert fields(node.answer(node.calls("person", ReleaseHolds())))["released"] == []


# --- reclaiming -----------------------------------------------------------------------------------


def test_reclaim_goes_to_the_lease_of_that_name() -> None:
    """H4: by name or by lease; what is not there is told."""
    node = holding()
    node.calls("person", Reclaim(target="chat"))
    assert [message.lease for message in node.heard(ReclaimLease)] == ["L1"]
    assert node.code(node.calls("person", Reclaim(target="nobody"))) is Code.NOT_FOUND


def test_reclaim_of_a_card_that_is_not_governed_is_told() -> None:
    """A lease of a card that berthd does not see cannot be closed by it."""
    node = PlayedNode()
    lease = node.holds("engine", "chat")
    node.node = type(node.node)(
        name="box", version="0", pid=1, started=node.now, cards=(), leases=node.node.leases
    )
    assert node.code(node.calls("person", Reclaim(target=lease))) is Code.NO_CARD
    assert CardName("gpu0") not in {card.name for card in node.node.cards}
    assert LeaseId("L1") in node.node.leases
