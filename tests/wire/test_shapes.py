"""The shapes of what goes out: fields may be added, never lost or renamed (spec 16)."""

from typing import Any

import msgspec

from berth.actors.node.codec import BadRequest, encode, encode_refusal, encode_reply
from berth.actors.node.messages import CardGrant, Failure, Reply
from berth.errors import Code
from berth.ids import Connection
from berth.views import (
    BlockerView,
    CardStatus,
    LeaseView,
    NodeView,
    Status,
    StowawayView,
    WaiterView,
)
from berth.wire import EventMessage, OrderMessage
from tests.cores.describing import card_view

ME = Connection(b"me")


def sent(reply: Reply) -> dict[str, Any]:
    """Return a reply as a client reads it."""
    message: dict[str, Any] = msgspec.json.decode(encode_reply(reply))
    return message


def shape(message: dict[str, Any]) -> set[str]:
    return set(message)


def words(text: str) -> set[str]:
    return set(text.split())


# --- the envelope ---------------------------------------------------------------------------------


def test_answer_has_version_id_and_data() -> None:
    """Spec 16: `{"v":1,"id":"1","ok":true,"last":true,"data":{…}}`; no error is null."""
    assert sent(Reply(connection=ME, message_id="1", data={"version": "0.1"})) == {
        "v": 1,
        "id": "1",
        "ok": True,
        "last": True,
        "data": {"version": "0.1"},
        "error": None,
    }


def test_progress_is_not_the_last_answer() -> None:
    """Spec 16: a long op sends progress with `"last":false` first."""
    message = sent(Reply(connection=ME, message_id="1", data={"state": "queued"}, last=False))
    assert (message["ok"], message["last"]) == (True, False)


def test_failure_has_code_message_and_hint() -> None:
    """Spec 16: `{"code","message","hint"}`; R6: whether the wait ran out is told beside."""
    failure = Failure(code=Code.PINNED, message="a is pinned", hint="wait longer", waited_out=True)
    message = sent(Reply(connection=ME, message_id="1", failure=failure))
    assert (message["ok"], message["last"], message["data"]) == (False, True, None)
    assert message["error"] == {
        "code": "pinned",
        "message": "a is pinned",
        "hint": "wait longer",
        "waited_out": True,
    }


def test_refusal_at_the_door_looks_like_any_other() -> None:
    """Spec 16: a client needs one way of reading errors."""
    bad = BadRequest("1", Code.BAD_REQUEST, "op 'dance': …", "see docs/protocol.md")
    failure = Failure(code=Code.BAD_REQUEST, message="op 'dance': …", hint="see docs/protocol.md")
    assert msgspec.json.decode(encode_refusal(bad)) == sent(
        Reply(connection=ME, message_id="1", failure=failure)
    )


def test_refusal_codes_are_those_of_the_protocol() -> None:
    """Spec 16: scripts compare these."""
    codes = words(
        "no_card no_room too_big wait_expired outranked pinned claimed unmeasured shutting_down "
        "bad_request not_found not_yours multi_card_park no_journal"
    )
    assert codes <= {code.value for code in Code}


# --- what is pushed -------------------------------------------------------------------------------


def test_order_is_told_by_its_name() -> None:
    """Spec 16: `{"v":1,"order":"drain","lease":"L7","attempt":3,"grace_s":30,"why":…}`."""
    order = OrderMessage(order="drain", lease="L7", attempt=3, grace_s=30.0, why="for images")
    assert msgspec.json.decode(encode(order)) == {
        "v": 1,
        "order": "drain",
        "lease": "L7",
        "attempt": 3,
        "grace_s": 30.0,
        "why": "for images",
        "now": False,
    }


def test_event_carries_its_facts_beside_the_common_fields() -> None:
    """Spec 16: `{"seq","at","kind","card","lease","request","name", …}`; absent is null."""
    event = EventMessage(seq=4, at="2026-11-30T12:00:00.000Z", kind="node.started")
    message = msgspec.json.decode(encode(event.flat()))
    assert shape(message) >= words("seq at kind card lease request name why")
    assert (message["card"], message["lease"]) == (None, None)


def test_fact_never_takes_the_place_of_a_common_field() -> None:
    """S5: a gap in `seq` is how a listener finds out what it missed."""
    event = EventMessage(
        seq=4, at="2026-11-30T12:00:00.000Z", kind="lease.queued", facts={"seq": 99, "mib": 5}
    )
    flat = event.flat()
    assert (flat["seq"], flat["mib"]) == (4, 5)
    assert "facts" not in flat


# --- what is shown --------------------------------------------------------------------------------

LEASE = LeaseView(
    lease="L7",
    card="gpu0",
    cards=("gpu0",),
    name="chat",
    group=None,
    priority="interactive",
    state="running",
    ask_mib=None,
    used_mib=14000,
    lent_mib=0,
    since_s=1.5,
    turn_left_s=0.0,
    pinned=False,
    pids=(70,),
    containers=(),
    model=None,
    note=None,
)
WAITER = WaiterView(
    request="r9",
    card="gpu0",
    cards=("gpu0",),
    name="images",
    priority="batch",
    ask_mib=9000,
    position=1,
    waited_s=2.0,
    wait_left_s=118.0,
    code="pinned",
    why="chat is pinned",
    blockers=(BlockerView(who="chat", how="pinned", left_s=None, ref="L7"),),
    eta_s=None,
    eta_of=None,
)
STOWAWAY = StowawayView(
    card="gpu0", pid=90, name="game", container=None, used_mib=None, squatter=True
)


def test_status_has_all_that_the_protocol_lists() -> None:
    """Spec 16: cards, leases, waiters and stowaways, each with its fields; null for absent."""
    part = CardStatus(
        card=card_view("gpu0", 0), leases=(LEASE,), waiting=(WAITER,), stowaways=(STOWAWAY,)
    )
    status = Status(
        v=1,
        node=NodeView(name="box", version="0.1", pid=7, uptime_s=1.0),
        cards=(part.card,),
        leases=part.leases,
        waiting=part.waiting,
        stowaways=part.stowaways,
    )
    data = sent(Reply(connection=ME, message_id="1", data=status))["data"]
    assert shape(data) >= words("v node cards leases waiting stowaways")
    assert shape(data["node"]) == words("name version pid uptime_s")
    assert shape(data["cards"][0]) >= words(
        "card index uuid pci product vendor total_mib used_mib free_mib baseline_mib "
        "unexplained_mib capacity_mib state why reading_age_s utilisation_pct temperature_c power_w"
    )
    (lease,) = data["leases"]
    assert shape(lease) >= words(
        "lease card cards name group priority state ask_mib used_mib lent_mib since_s turn_left_s "
        "pinned pids containers model"
    )
    assert (lease["cards"], lease["pids"], lease["ask_mib"]) == (["gpu0"], [70], None)
    (waiter,) = data["waiting"]
    assert shape(waiter) >= words(
        "request card cards name priority ask_mib position waited_s wait_left_s code why blockers "
        "eta_s eta_of"
    )
    assert shape(waiter["blockers"][0]) >= words("who how left_s")
    assert shape(data["stowaways"][0]) == words("card pid name container used_mib squatter")


def test_card_of_a_grant_is_told_as_clients_need_it() -> None:
    """Spec 16, M3: `{"lease","cards":[{"card","uuid","index","vendor"}]}`."""
    card = CardGrant(card="gpu0", uuid="GPU-0", index=0, vendor="nvidia")
    reply = Reply(connection=ME, message_id="1", data={"lease": "L7", "cards": [card]})
    assert sent(reply)["data"]["cards"] == [
        {"card": "gpu0", "uuid": "GPU-0", "index": 0, "vendor": "nvidia"}
    ]
