"""The node's answers: at once, or by a call to a card; stopping, closing (see `node/core.py`)."""

from typing import Any

import pytest
from msgspec.structs import replace

from berth.actors.card.messages import (
    CloseCard,
    HolderAnswered,
    HolderStarted,
    HolderWord,
    ReleaseLease,
    StopLease,
    WithdrawRequest,
)
from berth.actors.journal.messages import ReadEvents
from berth.actors.node.messages import (
    ClientOp,
    CloseNode,
    EventsRead,
    EventTold,
    GiveBack,
    ListCards,
    Pong,
    Publish,
    SayHello,
    ShowEvents,
    SocketDied,
    Stop,
    TellStarted,
    TellWord,
    Withdraw,
)
from berth.errors import BerthBug, Code
from berth.ids import Attempt, CardName, LeaseId, ProcessId, RequestId
from berth.units import Seconds
from berth.wire import EventMessage
from tests.cores.playing_node import PlayedNode, fields

MEMBERS = frozenset({ProcessId(500, 1)})
EVENTS = ShowEvents(after_seq=3, within=Seconds(60.0), limit=10)


def started(lease: str) -> TellStarted:
    return TellStarted(lease=LeaseId(lease), members=MEMBERS, scope="berth-L1.scope")


def word(lease: str) -> TellWord:
    return TellWord(
        lease=LeaseId(lease), attempt=Attempt(3), word=HolderWord.BOUNDARY, why="idle twice"
    )


# --- answered at once -----------------------------------------------------------------------------


def test_hello_says_who_answers() -> None:
    """Spec 16: a client finds out version and protocol before anything else."""
    node = PlayedNode()
    said = fields(node.answer(node.calls("me", SayHello())))
    assert said == {"version": "0.1", "protocol": 1, "pid": 77, "node": "box"}


def test_cards_are_listed_with_what_a_client_needs_to_set_variables() -> None:
    """Spec 16, M3: card, UUID, index, vendor."""
    node = PlayedNode()
    cards: Any = fields(node.answer(node.calls("me", ListCards())))["cards"]
    assert [(c.card, c.uuid, c.index, c.vendor) for c in cards] == [
        ("gpu0", "GPU-0", 0, "nvidia"),
        ("gpu1", "GPU-1", 1, "amd"),
    ]


def test_pong_is_answered_and_nobody_else_is_told() -> None:
    """S5: the answer to a ping is an operation like any other: one answer."""
    node = PlayedNode()
    assert fields(node.answer(node.calls("me", Pong()))) == {}
    assert len(node.said) == 1


@pytest.mark.parametrize(
    "op",
    [
        started("L9"),
        word("L9"),
        GiveBack(lease=LeaseId("L9")),
        Withdraw(request=RequestId("r9")),
        Stop(target="nobody", at_once=False),
    ],
    ids=lambda op: type(op).__name__,
)
def test_what_is_not_there_is_not_found(op: ClientOp) -> None:
    """Spec 16: an unknown lease, request or name is `not_found`, at once and by its name."""
    node = PlayedNode()
    message_id = node.calls("me", op)
    assert node.code(message_id) is Code.NOT_FOUND
    reply = node.answer(message_id)
    assert reply is not None
    assert reply.failure is not None
    assert any(name in reply.failure.message for name in ("L9", "r9", "nobody"))


# --- passed on as a call --------------------------------------------------------------------------


def test_start_is_passed_to_the_leases_card() -> None:
    """S4: with the process that the kernel named, not one that the client names."""
    node = PlayedNode()
    lease = node.holds("engine", cards=("gpu1",))
    node.calls("engine", started(lease))
    (told,) = node.heard(HolderStarted, "gpu1")
    assert (told.lease, told.peer) == (lease, node.process("engine"))
    assert (told.members, told.scope) == (MEMBERS, "berth-L1.scope")


def test_word_is_passed_to_the_leases_card() -> None:
    """Spec 16: `lease.answer` carries attempt, state and reason."""
    node = PlayedNode()
    lease = node.holds("engine")
    node.calls("engine", word(lease))
    (told,) = node.heard(HolderAnswered)
    assert (told.lease, told.peer) == (lease, node.process("engine"))
    assert (told.attempt, told.word, told.why) == (3, HolderWord.BOUNDARY, "idle twice")


def test_release_is_passed_to_the_leases_card_with_its_peer() -> None:
    """Spec 16: another's lease is `not_yours`; only the card can tell, so it hears who asks."""
    node = PlayedNode()
    lease = node.holds("engine")
    node.calls("thief", GiveBack(lease=lease))
    (told,) = node.heard(ReleaseLease)
    assert (told.lease, told.peer, told.unseen) == (lease, node.process("thief"), False)


@pytest.mark.parametrize("build", [started, word, lambda lease: GiveBack(lease=LeaseId(lease))])
def test_call_is_answered_by_the_word_of_its_card(build: Any) -> None:
    """Spec 16: one final answer, when the card has decided and not before."""
    node = PlayedNode()
    lease = node.holds("engine")
    message_id = node.calls("engine", build(lease))
    assert node.answer(message_id) is None
    node.is_done(node.last_call, lease, "running")
    said = fields(node.answer(message_id))
    assert (said["lease"], said["state"]) == (lease, "running")
    node.is_done(node.last_call, lease, "running")
    node.later(10)
    assert len([r for r in node.replies(message_id) if r.last]) == 1


def test_call_that_fails_is_answered_with_its_code_and_hint() -> None:
    """Spec 16: `{"code","message","hint"}`, the card's own."""
    node = PlayedNode()
    lease = node.holds("engine")
    message_id = node.calls("thief", GiveBack(lease=lease))
    node.fails(node.last_call, Code.NOT_YOURS)
    reply = node.answer(message_id)
    assert reply is not None
    assert reply.failure is not None
    assert (reply.failure.code, reply.failure.message) == (Code.NOT_YOURS, "no")
    assert reply.failure.hint == "try another"


def test_call_that_no_card_answers_is_answered_as_failed_after_five_seconds() -> None:
    """3.9: the deadline of a call; it fires at 5 s and not before."""
    node = PlayedNode()
    lease = node.holds("engine", cards=("gpu1",))
    message_id = node.calls("engine", started(lease))
    node.later(4.75)
    assert node.answer(message_id) is None
    node.later(0.25)
    assert node.code(message_id) is Code.INTERNAL
    reply = node.answer(message_id)
    assert reply is not None
    assert reply.failure is not None
    assert reply.failure.message == "gpu1 did not answer in 5s; try again"


def test_answer_that_comes_too_late_is_no_second_one() -> None:
    """3.12: exactly one final answer for each operation."""
    node = PlayedNode()
    lease = node.holds("engine")
    message_id = node.calls("engine", started(lease))
    call = node.last_call
    node.later(5)
    node.is_done(call, lease)
    node.fails(call)
    assert node.code(message_id) is Code.INTERNAL


def test_events_are_asked_of_the_journal_and_answered_flat() -> None:
    """Spec 16: an event's own facts stand beside the fields that all have."""
    node = PlayedNode()
    message_id = node.calls("me", EVENTS)
    (read,) = [effect for effect in node.said if isinstance(effect, ReadEvents)]
    assert (read.after_seq, read.within, read.limit) == (3, 60.0, 10)
    event = EventMessage(
        seq=4, at="2026-11-30T12:00:00.000Z", kind="lease.queued", facts={"mib": 5}
    )
    node.hear(EventsRead(call=read.call, events=(event,)))
    (shown,) = (dict(one) for one in as_list(fields(node.answer(message_id))["events"]))
    assert (shown["seq"], shown["kind"], shown["mib"]) == (4, "lease.queued", 5)
    node.hear(EventsRead(call=read.call, events=()))
    assert len(node.replies(message_id)) == 1


def reads(node: PlayedNode) -> list[ReadEvents]:
    return [effect for effect in node.said if isinstance(effect, ReadEvents)]


def test_events_are_read_for_one_client_after_the_other() -> None:
    """The journal writes grants: it must never have more than one answer's worth to read first."""
    node = PlayedNode()
    one, gone, last = (node.calls(name, EVENTS) for name in ("one", "gone", "last"))
    node.leaves("gone")
    (first,) = reads(node)
    node.hear(EventsRead(call=first.call, events=()))
    assert fields(node.answer(one))["events"] == []
    (_, second) = reads(node)
    node.hear(EventsRead(call=second.call, events=()))
    assert fields(node.answer(last))["events"] == []
    assert node.answer(gone) is None
    assert node.node.reads == ()


def test_journal_that_was_silent_for_one_is_asked_for_the_next() -> None:
    """3.9: an answer that never comes must not end all reading."""
    node = PlayedNode()
    node.calls("one", EVENTS)
    node.later(3)
    two = node.calls("two", EVENTS)
    node.later(2)
    (_, second) = reads(node)
    node.hear(EventsRead(call=second.call, events=()))
    assert fields(node.answer(two))["events"] == []


def test_events_that_the_journal_does_not_read_are_answered_as_failed() -> None:
    """3.9: the same deadline holds where it is not a card that is silent."""
    node = PlayedNode()
    message_id = node.calls("me", EVENTS)
    node.later(4.75)
    assert node.answer(message_id) is None
    node.later(0.25)
    reply = node.answer(message_id)
    assert reply is not None
    assert reply.failure is not None
    assert reply.failure.message == "the journal did not answer in 5s; try again"


def test_event_that_happened_is_published() -> None:
    """S5: whoever listens on the PUB socket hears every event of the journal's sequence."""
    node = PlayedNode()
    event = EventMessage(seq=1, at="2026-11-30T12:00:00.000Z", kind="node.starting")
    assert node.hear(EventTold(event=event)) == [Publish(event=event)]


# --- stopping -------------------------------------------------------------------------------------


def test_stop_by_name_is_passed_to_the_leases_card() -> None:
    """S7: `berth stop NAME`; `--now` skips the boundary (H6)."""
    node = PlayedNode()
    lease = node.holds("engine", "chat")
    message_id = node.calls("person", Stop(target="chat", at_once=True))
    (told,) = node.heard(StopLease)
    assert (told.lease, told.at_once) == (lease, True)
    node.is_done(told.call, lease, "draining")
    assert fields(node.answer(message_id))["state"] == "draining"


def test_stop_takes_a_waiter_away_whose_client_says_nothing() -> None:
    """S7: it may be dead, with a child that keeps its connection open."""
    node = PlayedNode()
    request = node.asks("silent", "ghost")
    message_id = node.calls("person", Stop(target="ghost", at_once=False))
    answer = node.answer(message_id)
    assert answer is not None
    assert answer.data == {"stopped": [request]}
    assert [one.request for one in node.heard(WithdrawRequest)] == [request]
    assert not node.node.requests


def test_stop_by_lease_stops_that_lease_alone() -> None:
    """Spec 16: `stop` takes a name or a lease."""
    node = PlayedNode()
    node.holds("one", "chat")
    second = node.holds("two", "chat")
    node.calls("person", Stop(target=second, at_once=False))
    assert [told.lease for told in node.heard(StopLease)] == [second]


def test_stop_of_a_name_stops_all_that_go_by_it_and_answers_once() -> None:
    """S7: names may repeat without --as; the person meant all of them."""
    node = PlayedNode()
    leases = [node.holds(client, "chat") for client in ("one", "two")]
    message_id = node.calls("person", Stop(target="chat", at_once=False))
    told = node.heard(StopLease)
    assert [stop.lease for stop in told] == leases
    for stop in told:
        node.is_done(stop.call, stop.lease, "draining")
    assert fields(node.answer(message_id))["lease"] == leases[-1]


def test_stop_of_a_waiter_withdraws_it_and_tells_both() -> None:
    """S7, 3.12: the waiter's one end is `withdrawn`; its card forgets it."""
    node = PlayedNode()
    request = node.asks("me", "chat")
    asked = str(node.numbers)
    stopped = node.calls("person", Stop(target="chat", at_once=False))
    assert node.code(asked) is Code.WITHDRAWN
    assert fields(node.answer(stopped)) == {"stopped": [request]}
    assert [told.request for told in node.heard(WithdrawRequest)] == [request]
    assert request not in node.node.requests


def test_stop_takes_waiters_and_holders_of_a_name_together() -> None:
    """S7: nothing by that name is left to start again."""
    node = PlayedNode()
    lease = node.holds("one", "chat")
    request = node.asks("two", "chat")
    stopped = node.calls("person", Stop(target="chat", at_once=False))
    assert [told.request for told in node.heard(WithdrawRequest)] == [request]
    (told,) = node.heard(StopLease)
    node.is_done(told.call, lease, "draining")
    assert fields(node.answer(stopped))["lease"] == lease


@pytest.mark.parametrize("way", ["stop", "attach"])
def test_nothing_is_sent_to_a_card_that_is_not_governed(way: str) -> None:
    """S6, M1: `berth daemon --gpu gpu0` after one that governed all; holds and holders are kept."""
    node = PlayedNode()
    lease = node.holds("engine", key="k")
    away = replace(node.node.leases[lease], cards=(CardName("gpu7"),), connection=None)
    node.node = replace(node.node, leases={lease: away})
    node.said.clear()
    if way == "stop":
        node.calls("person", Stop(target=lease, at_once=False))
    else:
        node.attaches("engine", lease=lease, key="k")
    assert node.to_card("gpu7") == []


# --- closing and dying ----------------------------------------------------------------------------


def test_closing_node_closes_its_cards_and_refuses_who_comes() -> None:
    """A berthd that stops takes nobody in; holders and waiters hear from their cards."""
    node = PlayedNode()
    node.hear(CloseNode())
    assert node.heard(CloseCard, "gpu0")
    assert node.heard(CloseCard, "gpu1")
    assert not node.asks("me")
    assert node.code(str(node.numbers)) is Code.SHUTTING_DOWN


def test_closing_node_still_takes_a_release_and_an_attach() -> None:
    """R4: what gives memory back, or only tells the truth, is never refused."""
    node = PlayedNode()
    lease = node.holds("engine", key="k")
    node.hear(CloseNode())
    node.calls("engine", GiveBack(lease=lease))
    assert node.heard(ReleaseLease)
    node.attaches("engine", lease=lease, key="k")
    node.is_done(node.last_call, lease)
    assert fields(node.answer(str(node.numbers)))["lease"] == lease


def test_node_dies_with_its_socket() -> None:
    """3.7: a node that nobody can reach is started again, with a new socket thread."""
    with pytest.raises(BerthBug, match="the socket thread died: EMFILE"):
        PlayedNode().hear(SocketDied(cause="EMFILE"))


def as_list(value: object) -> list[Any]:
    assert isinstance(value, list)
    return value
