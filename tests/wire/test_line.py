"""A client's line to berthd: a berthd that falls silent, one that comes back, answers of old."""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zmq

import berth
from berth.client import Client, awaited, line, threaded
from berth.client.line import Line, Presence
from berth.client.messages import Done, Granted, Queued, Refused, Send
from berth.client.said import Talk

WITHIN_MS = 10_000
SILENCE = 0.3


class Door:
    """A berthd's socket that says what the test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.bind(f"ipc://{path}")

    def hear(self) -> tuple[bytes, dict[str, Any]]:
        """Return the next message and who sent it."""
        assert self._router.poll(WITHIN_MS), "nobody says anything"
        client, body = self._router.recv_multipart()
        return client, json.loads(body)

    def answer(
        self, client: bytes, to: dict[str, Any], data: dict[str, Any], *, last: bool
    ) -> None:
        """Answer a request."""
        body = {"v": 1, "id": to["id"], "ok": True, "last": last, "data": data, "error": None}
        self._router.send_multipart([client, json.dumps(body).encode()])

    def close(self) -> None:
        self._router.close(linger=0)
        self._context.term()


@pytest.fixture
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """Return a door at a path that is short enough for a socket."""
    folder = tmp_path_factory.mktemp("d")
    folder.chmod(0o700)
    made = Door(folder / "b.sock")
    yield made
    made.close()


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a silent berthd count as gone soon."""
    monkeypatch.setattr(line, "SILENT_FOR", SILENCE)
    monkeypatch.setattr(awaited, "SILENT_FOR", SILENCE)


def next_news(one: Line, poller: zmq.Poller) -> Presence | dict[str, Any]:
    """Wait for the next thing that happens on a line."""
    for _ in range(WITHIN_MS // 50):
        for news in one.news(poller):
            return news
        poller.poll(50)
    raise AssertionError("nothing happens on the line")


@pytest.mark.usefixtures("short_silence")
def test_silent_berthd_counts_as_gone_and_the_line_is_made_anew(door: Door) -> None:
    """S5: berthd may have given this connection up; the kernel would never say so."""
    poller = zmq.Poller()
    one = Line(door.path)
    one.register(poller)
    heard = [next_news(one, poller) for _ in range(3)]
    one.close()
    assert heard == [Presence.THERE, Presence.GONE, Presence.THERE]


def test_nothing_is_kept_for_a_berthd_that_is_away(tmp_path: Path) -> None:
    """What matters is said again when it is back; an old request must not come after it."""
    one = Line(tmp_path / "b.sock")
    assert not one.send(b"{}")
    one.close()


def _grant(door: Door) -> list[dict[str, Any]]:
    """Leave the first request without an answer, grant the second; return what was heard."""
    _, first = door.hear()
    client, again = door.hear()
    card = {"card": "gpu0", "uuid": "GPU-0", "index": 0, "vendor": "nvidia"}
    granted = {"lease": "L1", "name": "x", "cards": [card], "start_by": None}
    door.answer(client, again, {"request": "r1", "state": "queued"}, last=False)
    door.answer(client, again, granted, last=True)
    client, started = door.hear()
    door.answer(client, started, {"lease": "L1", "state": "running"}, last=True)
    client, released = door.hear()
    door.answer(client, released, {"lease": "L1", "state": "releasing"}, last=True)
    return [first, again, started, released]


def _same_request(heard: list[dict[str, Any]]) -> None:
    first, again, started, released = heard
    assert [one["op"] for one in (first, again)] == ["lease.request", "lease.request"]
    assert first["key"] == again["key"]
    assert again["waited_s"] > 0
    assert (started["op"], released["op"]) == ("lease.started", "lease.release")


def _in_a_thread(door: Door) -> None:
    with berth.lease(name="x", socket=door.path) as lease:
        assert lease.id == "L1"


def _in_a_loop(door: Door) -> None:
    async def lease_it() -> None:
        async with berth.lease(name="x", socket=door.path) as lease:
            assert lease.id == "L1"

    asyncio.run(lease_it())


@pytest.mark.usefixtures("short_silence")
@pytest.mark.parametrize("lease_it", [_in_a_thread, _in_a_loop])
def test_script_asks_a_silent_berthd_again_under_the_same_key(
    door: Door, lease_it: Callable[[Door], None]
) -> None:
    """A berthd that hangs must not keep a script waiting for ever, nor grant it twice."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        script = pool.submit(lease_it, door)
        heard = _grant(door)
        script.result(timeout=20.0)
    _same_request(heard)


def broken(*_: object) -> None:
    raise RuntimeError("a bug")


def test_bug_in_the_leases_thread_is_raised_in_the_script(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that dies alone would leave its script waiting for ever."""
    monkeypatch.setattr(threaded.Lease, "_take_news", broken)
    with pytest.raises(berth.LeaseRefused, match="the line to berthd broke: a bug") as told:
        _in_a_thread(door)
    assert told.value.code == "internal"


def test_bug_in_the_leases_task_is_raised_in_the_script(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same in an event loop."""
    monkeypatch.setattr(awaited, "presence_of", broken)
    with pytest.raises(berth.LeaseRefused, match="the line to berthd broke: a bug"):
        _in_a_loop(door)


# --- which answer belongs to what -----------------------------------------------------------------


def answered(number: int, data: dict[str, Any], *, last: bool = True) -> dict[str, Any]:
    return {"v": 1, "id": str(number), "ok": True, "last": last, "data": data}


def test_answers_find_what_was_asked() -> None:
    """Two ops under way: each answer belongs to one of them."""
    talk = Talk()
    talk.ask(Send(op="lease.request", fields={"name": "x"}))
    talk.ask(Send(op="lease.started", fields={"lease": "L1"}))
    assert talk.hear(answered(1, {"request": "r1"}, last=False)) == Queued(request="r1")
    assert talk.hear(answered(2, {})) == Done(op="lease.started", lease="L1")
    granted = talk.hear(answered(1, {"lease": "L1", "start_by": 5.0, "news": "of a newer berthd"}))
    assert isinstance(granted, Granted)
    assert (granted.lease, granted.start_by) == ("L1", 5.0)


def test_answer_to_nothing_is_no_event() -> None:
    """Sent twice, or to somebody who asked before this line was made."""
    talk = Talk()
    assert talk.hear(answered(7, {"lease": "L1"})) is None
    talk.ask(Send(op="withdraw", fields={"request": "r1"}))
    assert talk.hear(answered(1, {})) == Done(op="withdraw", lease="")
    assert talk.hear(answered(1, {})) is None


def test_error_keeps_its_code_sentence_and_way_out() -> None:
    """A code of a newer berthd too: it is told as it came."""
    talk = Talk()
    talk.ask(Send(op="lease.request", fields={"name": "x"}))
    error = {"code": "too_hot", "message": "gpu0 is at 104°C", "hint": "open a window"}
    refused = talk.hear({"v": 1, "id": "1", "ok": False, "last": True, "error": error})
    assert isinstance(refused, Refused)
    assert (refused.failure.code, refused.failure.hint) == ("too_hot", "open a window")
    assert not refused.failure.waited_out


def long_answer(door: Door, ask: Callable[[], dict[str, Any]]) -> tuple[int, int]:
    """Have a berthd say 5 MB to one question; return what arrives of it, and how much it was."""
    rows = ["x" * 500] * 10_000
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        client, request = door.hear()
        door.answer(client, request, {"waiting": rows}, last=True)
        return len(asked.result(timeout=WITHIN_MS / 1000)["waiting"]), len(rows)


def test_answer_is_taken_however_many_wait(door: Door) -> None:
    """A status of 10,000 who wait is larger than what berthd takes from a client."""

    def ask() -> dict[str, Any]:
        with Client(door.path) as client:
            return client.call("status")

    came, said = long_answer(door, ask)
    assert came == said


def test_line_takes_an_answer_however_many_wait(door: Door) -> None:
    """A line that ended there would come back, ask again, and end again."""
    one = Line(door.path)
    poller = zmq.Poller()
    one.register(poller)

    def ask() -> dict[str, Any]:
        assert next_news(one, poller) is Presence.THERE
        assert one.send(b'{"v":1,"id":"1","op":"status"}')
        answer = next_news(one, poller)
        assert isinstance(answer, dict), answer
        found: dict[str, Any] = answer["data"]
        return found

    came, said = long_answer(door, ask)
    one.close()
    assert came == said
