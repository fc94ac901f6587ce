"""What the node gathers, and what time does: status, heartbeats (see `node/core.py`)."""

from berth.actors.card.messages import (
    Describe,
)
from berth.actors.node.inbox import CallId, CardDescribed
from berth.actors.node.messages import (
    GiveBack,
    Reply,
    ShowStatus,
)
from berth.ids import CardName
from berth.lease import Order
from berth.standing import Blocker, How
from berth.units import Seconds
from berth.views import Status
from tests.cores.describing import card_status
from tests.cores.playing_node import PlayedNode, fields, pushed_message

# --- gathered -------------------------------------------------------------------------------------


def described(call: CallId, card: str, index: int) -> CardDescribed:
    return CardDescribed(call=call, card=CardName(card), status=card_status(card, index))


def shown_cards(reply: Reply | None) -> list[str]:
    assert reply is not None
    assert isinstance(reply.data, Status)
    return [card.card for card in reply.data.cards]


def test_status_is_gathered_from_all_cards_in_their_order() -> None:
    """Spec 16: one answer once the last card has spoken, the first card first."""
    node = PlayedNode()
    node.later(12.5)
    message_id = node.calls("me", ShowStatus())
    (ask,) = node.heard(Describe, "gpu1")
    assert node.heard(Describe, "gpu0") == [ask]
    node.hear(described(ask.call, "gpu1", 1))
    assert node.answer(message_id) is None
    node.hear(described(ask.call, "gpu0", 0))
    reply = node.answer(message_id)
    assert shown_cards(reply) == ["gpu0", "gpu1"]
    assert reply is not None
    assert isinstance(reply.data, Status)
    shown = reply.data.node
    assert (reply.data.v, shown.name, shown.version, shown.pid) == (1, "box", "0.1", 77)
    assert shown.uptime_s == 12.5


def test_status_is_answered_after_a_second_with_what_has_come() -> None:
    """3.9: the deadline of a gathering; one card that hangs hides no other."""
    node = PlayedNode()
    message_id = node.calls("me", ShowStatus())
    (ask,) = node.heard(Describe, "gpu1")
    node.hear(described(ask.call, "gpu1", 1))
    node.later(0.75, step=0.25)
    assert node.answer(message_id) is None
    node.later(0.25, step=0.25)
    assert shown_cards(node.answer(message_id)) == ["gpu1"]
    node.hear(described(ask.call, "gpu0", 0))
    assert len(node.replies(message_id)) == 1


def test_card_that_describes_itself_twice_counts_once() -> None:
    """A repeated part is no second card, so the missing one is still waited for."""
    node = PlayedNode()
    message_id = node.calls("me", ShowStatus())
    (ask,) = node.heard(Describe, "gpu0")
    node.hear(described(ask.call, "gpu0", 0))
    node.hear(described(ask.call, "gpu0", 0))
    assert node.answer(message_id) is None


def describe_all(node: PlayedNode) -> None:
    """Let both cards answer what they were asked last."""
    call = node.heard(Describe, "gpu0")[-1].call
    node.hear(described(call, "gpu0", 0))
    node.hear(described(call, "gpu1", 1))


def test_who_asks_while_a_status_is_made_gets_the_next_one() -> None:
    """It must show what was done before it was asked for; all who ask meanwhile share it."""
    node = PlayedNode()
    one = node.calls("me", ShowStatus())
    two, three = node.calls("you", ShowStatus()), node.calls("them", ShowStatus())
    assert len(node.heard(Describe, "gpu0")) == 1
    describe_all(node)
    assert shown_cards(node.answer(one)) == ["gpu0", "gpu1"]
    assert node.answer(two) is None
    assert len(node.heard(Describe, "gpu0")) == 2
    describe_all(node)
    assert shown_cards(node.answer(two)) == shown_cards(node.answer(three)) == ["gpu0", "gpu1"]
    assert node.node.gathering is None


def test_next_status_begins_though_a_card_was_silent_for_this_one() -> None:
    """3.9: the deadline of a gathering ends it for those who wait for the next one, too."""
    node = PlayedNode()
    node.calls("me", ShowStatus())
    two = node.calls("you", ShowStatus())
    node.later(1.0)
    describe_all(node)
    assert shown_cards(node.answer(two)) == ["gpu0", "gpu1"]


def test_client_that_is_gone_waits_for_no_status() -> None:
    """Nobody is asked for it, and nothing is sent to nobody."""
    node = PlayedNode()
    node.calls("me", ShowStatus())
    node.calls("you", ShowStatus())
    node.leaves("you")
    describe_all(node)
    assert len(node.heard(Describe, "gpu0")) == 1


def test_status_of_a_node_without_cards_is_answered_at_once() -> None:
    """Nobody is asked, so nobody is waited for."""
    node = PlayedNode(cards=())
    assert shown_cards(node.answer(node.calls("me", ShowStatus()))) == []


# --- heartbeats -----------------------------------------------------------------------------------


def test_holder_that_hears_nothing_is_pinged_every_five_seconds() -> None:
    """S5: a holder notices within 15 s that berthd is gone."""
    node = PlayedNode()
    lease = node.holds("engine")
    assert node.later(4.5) == []
    message = pushed_message(node.later(0.5))
    assert (message.order, message.lease, message.attempt) == ("ping", lease, 0)
    assert node.later(4.5) == []
    assert pushed_message(node.later(0.5)).order == "ping"


def test_waiter_that_hears_nothing_is_told_where_it_stands_every_five_seconds() -> None:
    """S5: progress is a waiter's heartbeat; a waiter that is gone is found out by it."""
    node = PlayedNode()
    request = node.asks("me")
    node.stands(request, "chat2 is pinned")
    assert node.later(4.5) == []
    (reply,) = node.later(0.5)
    assert isinstance(reply, Reply)
    assert not reply.last
    assert fields(reply)["why"] == "chat2 is pinned"
    assert len(node.later(10)) == 2


def test_heartbeat_is_left_out_when_something_else_was_said() -> None:
    """S5: an order, a progress or an answer shows as well that berthd lives."""
    node = PlayedNode()
    lease = node.holds("engine")
    request = node.asks("me")
    node.later(3)
    node.orders(lease, Order.DRAIN)
    node.stands(request)
    assert node.later(4.5) == []
    assert len(node.later(0.5)) == 2


def test_crowd_is_not_told_all_at_once() -> None:
    """Section 15: of two thousand who wait, each is told within 5 s, and no tick tells them all."""
    node = PlayedNode()
    clients = [f"client-{number}" for number in range(400)]
    for client in clients:
        node.stands(node.asks(client, name=client))
    heard = dict.fromkeys(clients, node.now)
    most = 0
    for _ in range(40):
        told = [effect for effect in node.later(0.5, step=0.5) if isinstance(effect, Reply)]
        most = max(most, len(told))
        for reply in told:
            heard[reply.connection.decode()] = node.now
        assert all(node.now - when <= 5.0 for when in heard.values())
    assert most <= len(clients) / 8 + 1


def test_time_that_is_told_is_the_time_that_is_left() -> None:
    """S5: a reason that names a time is put into words again; one that names none is sent again."""
    node = PlayedNode()
    timed, plain = node.asks("timed", name="timed"), node.asks("plain", name="plain")
    node.stands(
        timed,
        "chat keeps its turn for 1m",
        Blocker(who="chat", how=How.IN_TURN, left=Seconds(60.0)),
    )
    node.stands(plain, "chat is pinned", Blocker(who="chat", how=How.PINNED))
    later = [effect for effect in node.later(10.0) if isinstance(effect, Reply)]
    words = [str(fields(reply)["why"]) for reply in later]
    assert words.count("chat is pinned") == 2
    assert [word for word in words if "turn" in word] == [
        "chat keeps its turn for 55s",
        "chat keeps its turn for 50s",
    ]


def test_holder_that_is_away_is_not_pinged() -> None:
    """S5: nothing is sent to a connection that is gone."""
    node = PlayedNode()
    node.holds("engine")
    node.leaves("engine")
    assert node.later(20) == []


def test_client_that_got_its_answer_is_not_remembered() -> None:
    """Each `berth stop` and `berth events` is a new connection: a daemon of weeks must not grow."""
    node = PlayedNode()
    node.refuses(node.asks("one"))
    lease = node.holds("two")
    node.calls("three", GiveBack(lease=lease))
    node.is_done(node.last_call, lease)
    node.ends(lease)
    node.later(60)
    assert not node.node.told
