"""Holders at the node: coming back, orders, and a card that was started again (R4, S6)."""

from msgspec.structs import replace

from berth.actors.card.messages import (
    AttachHolder,
    SeekLease,
)
from berth.actors.journal.messages import Kept
from berth.actors.node.messages import CardRestarted, Push, Reply
from berth.actors.node.recovery import parties
from berth.errors import Code
from berth.ids import CardName, Key, LeaseId, RequestId
from berth.lease import WHOLE_CARD, Held, Running, Terms
from berth.units import Instant, Seconds
from tests.cores.playing_node import GPU0, PlayedNode, connection_of, fields

# --- coming back ----------------------------------------------------------------------------------


def test_known_lease_is_attached_at_its_card() -> None:
    """S6: the wrapper is right about its engine, so all it says goes to the card."""
    node = PlayedNode()
    lease = node.holds("me", key="k", cards=("gpu1",))
    node.leaves("me")
    message_id = node.attaches("me again", lease=lease, key="k", state="draining")
    (told,) = node.heard(AttachHolder, "gpu1")
    assert (told.lease, told.request, told.holder) == (lease, "r1", node.process("me again"))
    assert (told.state, told.attempt, told.ran_for) == ("draining", 2, 60.0)
    node.is_done(told.call, lease, "draining")
    assert fields(node.answer(message_id))["state"] == "draining"
    node.orders(lease)
    assert node.pushed("me again") == ["drain"]


def test_unknown_lease_is_attached_as_a_new_one() -> None:
    """R4: what ran unprotected, or before the journal was lost, is taken in under a new number."""
    node = PlayedNode()
    node.asks("other")
    node.attaches("me", lease="L99", key="k")
    (told,) = node.heard(AttachHolder)
    assert (told.lease, told.request) == (None, "r2")
    node.is_done(told.call, "L2", "running")
    assert node.node.leases[LeaseId("L2")].key == "k"


def test_run_without_a_lease_is_found_by_its_key() -> None:
    """S6: it was attached before; a second attach is no second lease."""
    node = PlayedNode()
    node.attaches("me", lease=None, key="k")
    node.is_done(node.heard(AttachHolder)[0].call, "L1")
    node.attaches("me again", lease=None, key="k")
    assert node.heard(AttachHolder)[-1].lease == "L1"


def test_lease_is_not_handed_over_before_its_card_has_agreed() -> None:
    """S6: `attach` with a wrong key is `not_yours`, and the rightful holder stays reachable."""
    node = PlayedNode()
    lease = node.holds("me", key="k")
    message_id = node.attaches("thief", lease=lease, key="guessed")
    (told,) = node.heard(AttachHolder)
    assert (told.lease, told.terms.key) == (lease, "guessed")
    node.fails(told.call, Code.NOT_YOURS)
    assert node.code(message_id) is Code.NOT_YOURS
    node.orders(lease)
    assert (node.pushed("me"), node.pushed("thief")) == (["drain"], [])


def test_attach_keeps_the_name_that_the_lease_has() -> None:
    """R10: `llama-server-2` stays that, though its command's name is `llama-server`."""
    node = PlayedNode()
    node.holds("a", "llama-server", numbered=True)
    lease = node.holds("b", "llama-server", numbered=True, key="k")
    node.attaches("b", "llama-server", lease=lease, key="k")
    assert node.heard(AttachHolder)[0].terms.name == "llama-server-2"


def test_attach_to_a_card_that_is_not_there_is_refused_by_name() -> None:
    """M1: a run that names a card which is gone has no lease there."""
    node = PlayedNode()
    message_id = node.attaches("me", key="k", cards=("gpu7",))
    assert node.code(message_id) is Code.NO_CARD


def test_holder_of_a_card_that_is_not_governed_now_is_taken_in_on_the_others() -> None:
    """S6, M1: `berth daemon --gpu gpu0` after one with both; it must be asked, not just killed."""
    node = PlayedNode(cards=(GPU0,))
    message_id = node.attaches("me", key="k", cards=("gpu1", "gpu0"), mib=(9000, 4000))
    (told,) = node.heard(AttachHolder)
    assert (told.cards, told.ask) == (("gpu0",), 4000)
    node.is_done(told.call, "L1")
    assert fields(node.answer(message_id))["lease"] == "L1"
    node.orders(LeaseId("L1"))
    assert node.pushed("me") == ["drain"]


def test_lease_adopted_after_its_client_was_cut_off_is_known() -> None:
    """S6, R4: the engine runs and its wrapper attaches again: it must find the lease it has."""
    node = PlayedNode()
    node.attaches("me", lease=None, key="k")
    (told,) = node.heard(AttachHolder)
    node.leaves("me")
    node.is_done(told.call, "L1")
    node.attaches("me again", lease=None, key="k")
    assert node.heard(AttachHolder)[-1].lease == "L1"


def kept(number: int, name: str, key: str) -> Running:
    terms = Terms(name=name, key=Key(key), exclusive=True)
    held = Held(
        id=LeaseId(f"L{number}"),
        terms=terms,
        ask=WHOLE_CARD,
        holder=None,
        granted=Instant(0.0),
        cards=(CardName("gpu0"),),
    )
    return Running(held=held, ready=Instant(0.0))


def test_node_that_starts_again_knows_the_leases_of_the_journal() -> None:
    """S6: names, keys and numbers outlive berthd, so a restart grants nothing twice."""
    node = PlayedNode()
    first = node.node.cards[0]
    outlived = parties(Kept(leases={first.key: (kept(7, "chat", "k"),)}), node.node.cards)
    node.node = replace(node.node, leases=outlived, last_number=7)
    assert node.asks("me", "chat", key="new", exclusive=True) == "r8"
    assert node.heard(SeekLease)[0].behind == "L7"
    node.asks("old", "chat", key="k", exclusive=True)
    node.is_done(node.last_call, "L7")
    assert fields(node.answer(str(node.numbers)))["lease"] == "L7"


# --- orders, and a card that was started again ----------------------------------------------------


def test_order_is_pushed_to_its_holder_as_the_protocol_says() -> None:
    """Spec 16: order, lease, attempt, grace, why."""
    node = PlayedNode()
    lease = node.holds("me")
    node.orders(lease, attempt=3)
    (push,) = [told for told in node.told("me") if isinstance(told, Push)]
    message = push.message
    assert (message.order, message.lease, message.attempt) == ("drain", lease, 3)
    assert (message.grace_s, message.why, message.now) == (10.0, "for images", False)


def test_order_for_an_unknown_lease_is_dropped() -> None:
    """S6: its holder will attach, and hear then what holds."""
    node = PlayedNode()
    node.orders(LeaseId("L9"))
    assert node.said == []


def test_restarted_card_is_asked_again_with_the_whole_wait() -> None:
    """3.7: it knows its leases and not its queue; waiters lose neither place nor time."""
    node = PlayedNode()
    request = node.asks("me", waited=Seconds(20.0))
    node.later(30)
    node.hear(CardRestarted(card=CardName("gpu0")))
    first, again = node.heard(SeekLease)
    assert (again.request, again.again, first.again) == (request, True, False)
    assert again.arrived == first.arrived
    assert again.terms == first.terms


def test_restarted_card_is_told_whom_a_waiter_is_behind_now() -> None:
    """R10: the request that it stood behind has become a lease meanwhile."""
    node = PlayedNode()
    first = node.asks("a", exclusive=True)
    node.asks("b", exclusive=True)
    lease = node.grants(first)
    node.hear(CardRestarted(card=CardName("gpu0")))
    assert node.heard(SeekLease)[-1].behind == lease


def test_holders_of_a_restarted_card_are_told_to_attach() -> None:
    """S6: an attach brings state, attempt and members; whoever is away comes by itself."""
    node = PlayedNode()
    lease = node.holds("me")
    node.holds("away", "other")
    node.leaves("away")
    node.holds("elsewhere", "third", cards=("gpu1",))
    node.hear(CardRestarted(card=CardName("gpu0")))
    assert node.pushed("me") == ["attach"]
    assert node.pushed("away") == node.pushed("elsewhere") == []
    (push,) = [told for told in node.told("me") if isinstance(told, Push)]
    assert (push.message.lease, push.message.attempt) == (lease, 0)


def test_waiter_of_another_card_is_not_asked_again() -> None:
    """Q8: cards are independent."""
    node = PlayedNode()
    node.asks("me", cards=("gpu1",))
    node.hear(CardRestarted(card=CardName("gpu0")))
    assert node.heard(SeekLease, "gpu0") == []
    assert len(node.heard(SeekLease, "gpu1")) == 1


def test_answers_go_to_the_connection_that_asked() -> None:
    """S5: one request, replies with its id, on its own connection."""
    node = PlayedNode()
    request = node.asks("me")
    asked = str(node.numbers)
    node.asks("you")
    node.grants(RequestId(request), GPU0)
    reply = node.answer(asked)
    assert isinstance(reply, Reply)
    assert reply.connection == connection_of("me")
