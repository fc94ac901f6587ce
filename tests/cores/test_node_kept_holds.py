"""Holds that wait without a client: no client asks for them again, so the journal keeps them."""

from msgspec.structs import replace

from berth.actors.card.messages import SeekLease, WithdrawRequest
from berth.actors.journal.messages import DropHold, Kept, Record, SaveHold
from berth.actors.node.messages import CardRestarted, ReleaseHolds, TakeHold
from berth.actors.node.recovery import waiting
from berth.errors import Code
from berth.ids import CardName, LeaseId, RequestId
from berth.lease import Running
from berth.units import Instant, MiB, Seconds
from tests.actors.kept import HOLD
from tests.cores.playing_node import GPU0, GPU1, PlayedNode, fields

R1, R2 = RequestId("r1"), RequestId("r2")


def kept(node: PlayedNode) -> Kept:
    """Return what a journal knows that has heard this node."""
    holds: dict[str, SaveHold] = {}
    for said in node.said:
        for entry in said.entries if isinstance(said, Record) else ():
            if isinstance(entry, SaveHold):
                holds[entry.request] = entry
            elif isinstance(entry, DropHold):
                holds.pop(entry.request, None)
    return Kept(holds=tuple(holds.values()))


def dropped(node: PlayedNode) -> list[str]:
    """Return which holds the journal was told to forget."""
    entries = [entry for said in node.said if isinstance(said, Record) for entry in said.entries]
    return [entry.request for entry in entries if isinstance(entry, DropHold)]


def started_again(node: PlayedNode, known: Kept | None = None) -> PlayedNode:
    """Return another node in the place of this one, after a restart of berthd."""
    known = known or kept(node)
    again = PlayedNode(cards=node.cards, now=node.now)
    requests, holdings = waiting(known, node.cards)
    again.node = replace(again.node, requests=requests, holdings=holdings, last_number=9)
    for card in node.cards:
        again.hear(CardRestarted(card=card.name))
    return again


def unattended(*cards: str, everything: bool = False) -> PlayedNode:
    node = PlayedNode()
    op = TakeHold(
        cards=cards,
        everything=everything,
        patient=False,
        mib=(MiB(4000),),
        hold_for=Seconds(60.0),
        reason="a game",
    )
    node.calls("person", op)
    return node


def test_hold_that_waits_without_a_client_is_asked_for_again_as_it_was() -> None:
    """`berth hold --no-wait`, then a new berthd: it has its number, its terms and its place."""
    node = unattended("gpu1")
    (first,) = node.heard(SeekLease, "gpu1")
    node.now = Instant(node.now + 30.0)
    again = started_again(node)
    (seek,) = again.heard(SeekLease, "gpu1")
    assert replace(seek, again=False) == first
    assert again.heard(SeekLease, "gpu0") == []


def test_hold_of_all_cards_is_one_hold_still() -> None:
    """All or none, also where a restart came in between."""
    node = started_again(unattended(everything=True))
    assert [len(node.heard(SeekLease, card)) for card in ("gpu0", "gpu1")] == [1, 1]
    node.refuses(R1, Code.TOO_BIG)
    assert [m.request for m in node.heard(WithdrawRequest, "gpu1")] == ["r2"]
    assert dropped(node) == [R1, R2]


def test_hold_that_was_granted_just_before_is_not_asked_for_twice() -> None:
    """A kill after its grant was written: what it waited for, it has."""
    node = unattended("gpu0")
    lease = replace(HOLD, held=replace(HOLD.held, id=LeaseId("L1")))
    assert isinstance(lease, Running)
    known = replace(kept(node), leases={GPU0.key: (lease,)})
    assert started_again(node, known).heard(SeekLease) == []


def test_hold_of_a_card_that_is_not_governed_waits_in_the_journal() -> None:
    """S6: `berth daemon --gpu gpu0` after one that governed both."""
    node = unattended("gpu1")
    node.cards = (GPU0,)
    again = started_again(node)
    assert again.node.requests == {}
    assert again.node.holdings == {}


def test_released_while_it_waits_it_is_forgotten() -> None:
    """`berth release` means the hold that waits, too; a restart must not bring it back."""
    node = started_again(unattended("gpu0"))
    said = fields(node.answer(node.calls("person", ReleaseHolds())))
    assert said["withdrawn"] == ["r1"]
    assert dropped(node) == [R1]


def test_refused_by_its_card_it_is_forgotten() -> None:
    """What can never be granted must not come back with every restart."""
    node = unattended("gpu0")
    node.refuses(R1, Code.TOO_BIG)
    assert kept(node).holds == ()


def test_berthd_that_stops_does_not_take_it_back() -> None:
    """An upgrade is no reason to lose a place in the queue."""
    node = unattended(everything=True)
    before = kept(node).holds
    node.refuses(R1, Code.SHUTTING_DOWN)
    node.refuses(R2, Code.SHUTTING_DOWN)
    assert kept(node).holds == before
    assert len(before) == 2


def test_hold_that_is_waited_for_is_not_kept() -> None:
    """Its command says that berthd went away, and asks again if its person wants that."""
    node = PlayedNode()
    node.calls("person", TakeHold(cards=("gpu0",)))
    assert kept(node).holds == ()


def test_granted_after_a_restart_nobody_is_answered_and_it_is_a_lease() -> None:
    """There is no client to hear of it."""
    node = started_again(unattended("gpu0", "gpu1"))
    node.grants(R1, GPU0)
    node.grants(R2, GPU1)
    assert node.node.requests == {}
    assert node.node.holdings == {}
    assert {party.cards for party in node.node.leases.values()} == {
        (CardName("gpu0"),),
        (CardName("gpu1"),),
    }
