"""What cannot be taken is told at the door, naming what is wrong (spec 16, 3.8)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.actors.node.codec import BadRequest, decode, encode_refusal
from berth.actors.node.messages import TellWord
from berth.errors import Code
from tests.wire.framing import ME, frame, refused


@pytest.mark.parametrize(
    ("body", "message_id", "words"),
    [
        (frame("dance"), "7", "op 'dance': Invalid value 'dance'"),
        (frame(5), "7", "op 5: "),
        (b'{"v":1,"id":"7"}', "7", "missing required field `op`"),
        (frame("hello", mood="good"), "7", "op 'hello': Object contains unknown field `mood`"),
        (frame("withdraw"), "7", "op 'withdraw': Object missing required field `request`"),
        (frame("withdraw", request=9), "7", "Expected `str`, got `int` - at `$.request`"),
        (frame("lease.request"), "7", "missing required field `name`"),
        (frame("lease.request", name=""), "7", "`$.name`"),
        (frame("lease.request", name="x" * 201), "7", "`$.name`"),
        (frame("lease.request", name="a", needs_mib=0), "7", "`$.needs_mib`"),
        (frame("lease.request", name="a", needs_mib=[1, -1]), "7", "`$.needs_mib[1]`"),
        (frame("lease.request", name="a", needs_mib=1.5), "7", "`$.needs_mib`"),
        (frame("lease.request", name="a", wait_s=-1), "7", "`$.wait_s`"),
        (frame("lease.request", name="a", wait_s=1e12), "7", "`$.wait_s`"),
        (frame("lease.request", name="a", wait_s="5s"), "7", "`$.wait_s`"),
        (frame("attach", name="a", attempt=-1), "7", "`$.attempt`"),
        (frame("lease.started", lease="L7", pids=[0]), "7", "`$.pids[0]`"),
        (frame("events", limit=0), "7", "`$.limit`"),
        (frame("hello", id=7), "", "Expected `str`, got `int` - at `$.id`"),
        (b'{"v":1,"op":"hello"}', "", "missing required field `id`"),
    ],
)
def test_message_that_is_wrong_is_answered_with_what_is_wrong(
    body: bytes, message_id: str, words: str
) -> None:
    """Spec 16: unknown op, field or type: an error naming it, with the client's own id."""
    bad = refused(body)
    assert (bad.code, bad.message_id) == (Code.BAD_REQUEST, message_id)
    assert words in bad.message


@pytest.mark.parametrize(
    "body",
    [
        frame("hello", v=2),
        frame("hello", v=0),
        frame("hello", v=2, mood="good"),
        frame("dance", v=2),
        frame("hello", v="1"),
        b'{"id":"7","op":"hello"}',
    ],
)
def test_other_version_is_told_before_anything_else(body: bytes) -> None:
    """S5: versioned; a newer client's fields are not what is wrong."""
    bad = refused(body)
    assert (bad.code, bad.message_id) == (Code.BAD_REQUEST, "7")
    assert bad.message.startswith("berthd speaks protocol 1, this client ")
    assert bad.hint == "update the older of the two"


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"[]", b"5", b"null", b"{", b'{"v":1,"id":"\xff","op":"hello"}', b"\0"]
)
def test_what_is_no_json_object_is_a_bad_request(body: bytes) -> None:
    """Spec 16: what is no JSON is answered `bad_request`; there is no id to answer to."""
    bad = refused(body)
    assert (bad.code, bad.message_id) == (Code.BAD_REQUEST, "")
    assert bad.message.startswith("not a JSON object")


@pytest.mark.parametrize("field", ["op", "mood"])
def test_message_that_is_nested_without_end_is_a_bad_request(field: str) -> None:
    """Spec 16: an error, the connection lives on; no message may take berthd down."""
    nested = b"[" * 100_000 + b"]" * 100_000
    refused(b'{"v":1,"id":"7","op":"hello","' + field.encode() + b'":' + nested + b"}")


def test_number_that_does_not_fit_is_refused() -> None:
    """Spec 16: no message may take berthd down."""
    assert refused(frame("events", since=1 << 63)).code is Code.BAD_REQUEST


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["v", "id", "op", "name", "lease"]), inner, max_size=5)
    ),
    max_leaves=6,
)


@given(st.binary(max_size=64) | JSON.map(msgspec.json.encode))
def test_whatever_comes_is_an_operation_or_a_bad_request(body: bytes) -> None:
    """3.8: bad input is told at the door, and never ends an actor."""
    try:
        decode(body, ME)
    except BadRequest as bad:
        answer = msgspec.json.decode(encode_refusal(bad))
        assert (answer["ok"], answer["last"]) == (False, True)


FIELDS = st.sampled_from(
    ["name", "lease", "wait_s", "needs_mib", "cards", "state", "pids", "limit"]
)
OPS = st.sampled_from(["hello", "events", "lease.request", "attach", "stop", "lease.answer"])


@given(OPS, st.dictionaries(FIELDS, JSON, max_size=3), st.text(max_size=9))
def test_id_is_echoed_whatever_else_is_wrong(op: str, fields: dict[str, Any], own: str) -> None:
    """S5: a client finds the answer to its message by its own id."""
    body = frame(op, **{**fields, "id": own})
    try:
        message_id, _ = decode(body, ME)
    except BadRequest as bad:
        message_id = bad.message_id
    assert message_id == own


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mred", "bell\x07", "a\n", "\x9b1m"])
@pytest.mark.parametrize("op", ["lease.request", "attach"])
def test_name_with_control_characters_is_refused(op: str, name: str) -> None:
    """What a client calls itself is printed on everybody's terminal."""
    bad = refused(frame(op, name=name))
    assert bad.code is Code.BAD_REQUEST
    assert "one line without control characters - at `$.name`" in bad.message


def test_holders_reason_is_made_one_line() -> None:
    """An engine's last words may hold anything; they are told, and end no connection."""
    _, op = decode(frame("lease.answer", lease="L1", state="failed", why="no\n\x1b[2Jmemory"), ME)
    assert isinstance(op, TellWord)
    assert op.why.isprintable()
    assert op.why.endswith("memory")
