"""The routes of a simulated llama-server, and how it ends (shapes as measured on real ones)."""

import signal
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from berth.engines.llama import parse_deferred
from berth.run.boundary import Slots, call
from berth.run.messages import Seen
from tests.sim_engine.playing import Engine, until

pytestmark = pytest.mark.system

Play = Callable[..., Engine]


def test_every_route_says_that_it_loads(play: Play) -> None:
    """A boundary read while the engine loads must find what a real one answers."""
    engine = play("llama", "--mib", 500, "--load-s", 60)
    for path in ("/health", "/slots", "/v1/models", "/nothing"):
        answer = engine.get(path)
        assert answer.status == 503
        assert answer.json() == {
            "error": {"message": "Loading model", "type": "unavailable_error", "code": 503}
        }
        assert answer.headers["Server"] == "llama.cpp"
    assert engine.post("/v1/completions", prompt="").status == 503
    engine.signal(signal.SIGTERM)
    assert engine.ends() == 0


def test_what_a_detector_asks_is_answered(play: Play) -> None:
    """The fingerprint: header, health, props, models, and an envelope for what is not there."""
    engine = play("llama", "--mib", 500, "--slots", 3, "--residual", 100)
    engine.wait_loaded()
    assert engine.claims() == {engine.pid: 500}
    assert engine.get("/health").json() == {"status": "ok"}
    assert engine.get("/health").headers["Server"] == "llama.cpp"
    props = engine.get("/props").json()
    assert (props["total_slots"], props["is_sleeping"]) == (3, False)
    models = engine.get("/v1/models").json()
    assert models["data"][0]["owned_by"] == "llamacpp"
    assert models["models"][0]["capabilities"] == ["completion"]
    assert engine.get("/nothing").json()["error"]["type"] == "not_found_error"
    assert engine.get("/metrics").json()["error"]["type"] == "not_supported_error"


def test_slots_show_a_task_only_once_they_had_one(play: Play) -> None:
    """Whether a slot was ever used is how Berth sees that an engine has answered (Q11)."""
    engine = play("llama", "--mib", 500, "--slots", 2, "--token-s", 0.001)
    engine.wait_loaded()
    idle = {"id": 0, "n_ctx": 4096, "speculative": False, "is_processing": False}
    assert engine.get("/slots").json() == [idle, {**idle, "id": 1}]
    engine.complete(3)
    used, unused = engine.get("/slots").json()
    assert (used["id_task"], used["is_processing"]) == (0, False)
    assert used["next_token"][0]["n_decoded"] == 3
    assert "id_task" not in unused


def test_chat_is_streamed_to_its_last_token(play: Play) -> None:
    """A client counts on the order: role, pieces, the reason, usage if asked for, [DONE]."""
    engine = play("llama", "--mib", 500, "--token-s", 0.001)
    engine.wait_loaded()
    stream = engine.stream(5, model="mine", stream_options={"include_usage": True})
    assert stream.response.headers["Content-Type"] == "text/event-stream"
    first, *pieces, last, usage = stream.events()
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert len(pieces) == 5
    assert all(piece["choices"][0]["delta"]["content"] for piece in pieces)
    assert (last["choices"][0]["finish_reason"], last["timings"]["predicted_n"]) == ("length", 5)
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 5)
    assert {event["model"] for event in (first, *pieces, last, usage)} == {"mine"}
    assert stream.done


def test_text_is_streamed_too(play: Play) -> None:
    """Text completions have another shape, and end by themselves without a limit."""
    engine = play("llama", "--mib", 500, "--token-s", 0.001)
    engine.wait_loaded()
    body = engine.post("/v1/completions", prompt="Say it", stream=True).body.decode()
    assert body.endswith("data: [DONE]\n\n")
    assert '"text": "A"' in body
    assert '"finish_reason": "stop"' in body


def test_answers_come_whole_where_no_stream_is_asked_for(play: Play) -> None:
    """Many scripts do not stream."""
    engine = play("llama", "--mib", 500, "--token-s", 0.001)
    engine.wait_loaded()
    chat = engine.post("/v1/chat/completions", messages=[], max_tokens=4).json()
    assert chat["object"] == "chat.completion"
    assert chat["choices"][0]["message"]["content"] == "A berth is a"
    assert chat["usage"]["completion_tokens"] == 4
    text = engine.complete(2).json()
    assert (text["choices"][0]["text"], text["choices"][0]["finish_reason"]) == (
        "A berth",
        "length",
    )


def test_tokens_keep_their_pace(play: Play) -> None:
    """How long a request is in flight is what a drain is measured against."""
    engine = play("llama", "--mib", 500, "--token-s", 0.02)
    engine.wait_loaded()
    begun = time.monotonic()
    engine.complete(15)
    assert time.monotonic() - begun >= 0.3


def test_wrong_bodies_are_refused_in_the_envelope(play: Play) -> None:
    """A client's mistake is no 500 of ours, and the next request is answered."""
    engine = play("llama", "--mib", 500, "--token-s", 0.001)
    engine.wait_loaded()
    for body in ("{", "[]", '{"max_tokens": "many", "messages": []}', "{}"):
        answer = engine.call("POST", "/v1/chat/completions", body)
        assert answer.status == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"
    assert engine.call("POST", "/v1/completions", "{}").status == 400
    assert engine.complete(1).status == 200


def test_a_body_in_chunks_is_read(play: Play) -> None:
    """A proxy passes bodies on in chunks; several requests share a connection."""
    engine = play("llama", "--mib", 500, "--token-s", 0.001)
    engine.wait_loaded()
    connection = engine.connect()
    for _ in range(2):
        parts = iter([b'{"prompt": "Say it",', b' "max_tokens": 2}'])
        connection.request("POST", "/v1/completions", parts, encode_chunked=True)
        assert b'"text": "A berth"' in connection.getresponse().read()


def test_requests_beyond_the_slots_wait(play: Play) -> None:
    """One slot, three streams: one works, two are deferred, all are answered (as measured)."""
    engine = play("llama", "--mib", 500, "--metrics", "--token-s", 0.01)
    engine.wait_loaded()
    fields = {"prompt": "Say it", "max_tokens": 20}
    waiting = [engine.ask("/v1/completions", **fields) for _ in range(3)]
    until(lambda: parse_deferred(engine.get("/metrics").body) == 2, "two wait")
    assert b"llamacpp:requests_processing 1\n" in engine.get("/metrics").body
    assert engine.busy_slots() == 1
    assert engine.get("/slots?fail_on_no_slot=1").status == 503
    assert [connection.getresponse().status for connection in waiting] == [200] * 3
    assert parse_deferred(engine.get("/metrics").body) == 0
    assert b"llamacpp:tokens_predicted_total 60\n" in engine.get("/metrics").body


def test_slots_work_side_by_side(play: Play) -> None:
    """Two slots take two streams at once."""
    engine = play("llama", "--mib", 500, "--slots", 2, "--token-s", 0.01)
    engine.wait_loaded()
    streams = [engine.stream(10_000) for _ in range(2)]
    assert all(stream.first() for stream in streams)
    assert engine.busy_slots() == 2


def test_a_client_that_hangs_up_frees_its_slot(play: Play) -> None:
    """A reader who closes the window must not keep the boundary from coming; nor one in the queue.

    The waiter that hangs up is passed over.
    """
    engine = play("llama", "--mib", 500, "--metrics", "--token-s", 30)
    engine.wait_loaded()
    stream = engine.stream(10_000)
    stream.first()
    waiter = engine.ask("/v1/completions", prompt="Say it")
    until(lambda: parse_deferred(engine.get("/metrics").body) == 1, "one waits")
    waiter.close()
    until(lambda: parse_deferred(engine.get("/metrics").body) == 0, "none waits")
    assert engine.busy_slots() == 1
    stream.close()
    until(lambda: engine.busy_slots() == 0, "the slot is free")


def test_berths_own_readers_read_it(play: Play) -> None:
    """The stand-in serves `berth run` as the real server does: busy, then idle and served."""
    engine = play("llama", "--mib", 500, "--metrics", "--token-s", 0.01)
    engine.wait_loaded()
    slots = Slots(f"http://127.0.0.1:{engine.port}")
    fresh = slots.read()
    assert (fresh.seen, fresh.served) == (Seen.IDLE, False)
    stream = engine.stream(30)
    stream.first()
    assert slots.read().seen is Seen.BUSY
    assert len(list(stream.events())) == 31
    after = slots.read()
    assert (after.seen, after.served) == (Seen.IDLE, True)


def test_idle_it_ends_at_once(play: Play) -> None:
    """As measured: an idle connection that is kept alive keeps no server alive."""
    engine = play("llama", "--mib", 500, "--cut-after", 60)
    engine.wait_loaded()
    kept = engine.connect()
    kept.request("GET", "/health")
    kept.getresponse().read()
    engine.signal(signal.SIGTERM)
    assert engine.ends() == 0
    assert engine.claims() == {}


def test_a_stream_in_flight_is_cut_after_a_while(play: Play) -> None:
    """As measured: no new connection, no more tokens, then the cut without [DONE], exit 0."""
    engine = play("llama", "--mib", 500, "--token-s", 0.01, "--cut-after", 0.8)
    engine.wait_loaded()
    stream = engine.stream(10_000)
    stream.first()
    begun = time.monotonic()
    engine.signal(signal.SIGTERM)
    until(engine.refuses, "it refuses connections")
    assert engine.process.poll() is None
    tokens = len(list(stream.events()))
    assert engine.ends() == 0
    assert not stream.done
    assert time.monotonic() - begun >= 0.8
    assert tokens < 60  # 80 and more, had it gone on


def test_an_answer_that_is_not_streamed_keeps_it_alive(play: Play) -> None:
    """As measured: nothing cuts it, until its client hangs up; a waiting one is no other."""
    engine = play("llama", "--mib", 500, "--token-s", 0.01, "--cut-after", 0)
    engine.wait_loaded()
    working, waiting = (
        engine.ask("/v1/completions", prompt="Say it", max_tokens=10_000) for _ in range(2)
    )
    until(lambda: engine.busy_slots() == 1, "it works")
    engine.signal(signal.SIGTERM)
    until(engine.refuses, "it refuses connections")
    working.close()
    waiting.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        waiting.getresponse()
    assert engine.process.poll() is None
    waiting.close()
    assert engine.ends() == 0


def test_a_second_sigterm_ends_it_as_a_failure(play: Play) -> None:
    """As measured: exit 1, at once, whatever is in flight."""
    engine = play("llama", "--mib", 500, "--token-s", 0.01, "--cut-after", 60)
    engine.wait_loaded()
    stream = engine.stream(10_000)
    stream.first()
    engine.signal(signal.SIGTERM)
    until(engine.refuses, "it refuses connections")
    engine.signal(signal.SIGTERM)
    assert engine.ends() == 1
    assert engine.claims() == {}


def test_unload_frees_the_memory_and_ends_it(play: Play) -> None:
    """The claim is gone before the answer is read; what is in flight is not finished."""
    engine = play("llama", "--mib", 500, "--token-s", 0.01)
    engine.wait_loaded()
    stream = engine.stream(10_000)
    stream.first()
    assert engine.post("/unload").json() == {"success": True}
    assert engine.claims() == {}
    assert engine.ends() == 0
    list(stream.events())
    assert not stream.done


def test_a_liar_says_that_it_unloaded(play: Play) -> None:
    """No word of an engine replaces the reading (H1): this one keeps all, and serves on."""
    engine = play("llama", "--mib", 500, "--lie-on-unload", "--token-s", 0.001)
    engine.wait_loaded()
    assert engine.post("/unload").json() == {"success": True}
    assert engine.complete(2).status == 200
    assert engine.claims() == {engine.pid: 500}


def test_slots_hang_and_nothing_else_does(play: Play) -> None:
    """A read that times out is busy (H2); the hanging read keeps the engine from nothing."""
    engine = play("llama", "--mib", 500, "--hang-slots", "--token-s", 0.001)
    engine.wait_loaded()
    with pytest.raises(TimeoutError):
        call("GET", urlsplit(f"http://127.0.0.1:{engine.port}/slots"), 0.3)
    hanging = engine.connect()
    hanging.request("GET", "/slots")
    assert engine.get("/health").status == 200
    assert engine.complete(2).status == 200
    engine.signal(signal.SIGTERM)
    assert engine.ends() == 0


def test_a_leak_grows_by_each_request(play: Play) -> None:
    """What is measured may exceed what was asked for (B3), also after a request that was cut."""
    engine = play("llama", "--mib", 500, "--leak", 25, "--token-s", 0.001)
    engine.wait_loaded()
    engine.complete(1)
    assert engine.claimed() == 525
    list(engine.stream(1).events())
    assert engine.claimed() == 550
    cut = engine.stream(10_000)
    cut.first()
    cut.close()
    engine.wait_claimed(575)


def test_a_lag_keeps_what_leaked_too(play: Play) -> None:
    """What outlives an engine is all that it held, after an unload as well."""
    engine = play(
        *("llama", "--mib", 500, "--leak", 25, "--token-s", 0.001), *("--release-lag", 0.4)
    )
    engine.wait_loaded()
    engine.complete(1)
    (keeper,) = engine.claims()
    engine.post("/unload")
    assert engine.ends() == 0
    assert engine.claims() == {keeper: 525}
    until(lambda: engine.claims() == {}, "the memory is free")


def test_ignored_sigterm_leaves_it_serving(play: Play) -> None:
    """The engine that only SIGKILL ends goes on as if nothing had happened."""
    engine = play("llama", "--mib", 500, "--ignore-sigterm", "--token-s", 0.001)
    engine.wait_loaded()
    engine.signal(signal.SIGTERM)
    assert engine.complete(5).status == 200
    assert engine.process.poll() is None


def test_a_crash_cuts_what_is_in_flight(play: Play) -> None:
    """A client of an engine that died sees a broken answer, and no [DONE]."""
    engine = play("llama", "--mib", 500, "--token-s", 0.01, "--crash-after", 1)
    engine.wait_loaded()
    stream = engine.stream(10_000)
    list(stream.events())
    assert not stream.done
    assert engine.ends() == 1


def test_a_taken_port_is_told_in_a_sentence(play: Play) -> None:
    """Two engines on one port are a common mistake; exit 1, as measured, and nothing claimed."""
    engine = play("llama", "--mib", 500)
    engine.wait_loaded()
    second = play("llama", "--mib", 300, "--port", engine.port, "--double-fork")
    assert second.ends() == 1
    errors = second.errors()
    assert f"port {engine.port}" in errors
    assert "Traceback" not in errors
    assert engine.claims() == {engine.pid: 500}


def test_the_port_is_free_again_while_a_keeper_lives(play: Play) -> None:
    """What keeps the memory keeps nothing else: the next engine starts on the same port."""
    first = play("llama", "--mib", 500, "--double-fork")
    first.wait_loaded()
    first.signal(signal.SIGTERM)
    assert first.ends() == 0
    second = play("llama", "--mib", 300, "--port", first.port)
    second.wait_loaded()
    assert second.claimed() == 300
