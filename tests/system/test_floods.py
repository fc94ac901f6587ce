"""Clients that ask for too much, and a journal with more in it than one answer holds."""

import json
import threading
from contextlib import ExitStack

import pytest

from berth.actors.journal.core import Batch
from berth.actors.journal.store import Store
from berth.wire import EventMessage
from tests.system.node import Node
from tests.system.raw import Raw

pytestmark = pytest.mark.system

MANY_EVENTS = 12_000


@pytest.fixture
def full(node: Node) -> Node:
    """Return a node whose journal is full of events of today."""
    node.stop()
    store = Store(node.folder / "state" / "journal.sqlite3")
    last = store.kept("").last_seq
    why = "images waits for the card and is next once chat has given its memory back " * 3
    events = tuple(
        EventMessage(seq=seq, at="2026-11-30T12:00:00.000Z", kind="lease.queued", why=why)
        for seq in range(last + 1, last + 1 + MANY_EVENTS)
    )
    store.write(Batch(events=events))
    store.close()
    node.start()
    return node


@pytest.mark.parametrize("since", [["--since", "0"], []])
def test_events_are_shown_however_many_there_are(full: Node, since: list[str]) -> None:
    """`berth events` of a busy day: more than a frame can hold, and not one of them missing."""
    shown = full.berth("events", "--format", "json", *since)
    assert shown.returncode == 0, shown.stderr
    seqs = [json.loads(line)["seq"] for line in shown.stdout.splitlines()]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert len(seqs) > MANY_EVENTS


def test_crowd_that_asks_for_events_keeps_nobody_from_a_card(full: Node) -> None:
    """The journal reads for one at a time; a grant that must be written comes in between."""
    pid = full.status()["node"]["pid"]
    with ExitStack() as stack:
        crowd = [stack.enter_context(Raw(full.socket)) for _ in range(60)]
        for one in crowd:
            one.send("events", since=0, limit=10000)
        assert full.berth("run", "--needs-mib", "100", "--", "true").returncode == 0
        answers = [one.hear() for one in crowd]
    assert all(answer["ok"] and answer["data"]["events"] for answer in answers)
    assert full.status()["node"]["pid"] == pid


@pytest.mark.parametrize("op", ["status", "hello", "events"])
def test_client_that_asks_without_end_delays_nobody(node: Node, op: str) -> None:
    """It waits with what it has to say; ZeroMQ hears everybody in turn."""
    pid = node.status()["node"]["pid"]
    stop = threading.Event()

    def flood() -> None:
        with Raw(node.socket) as raw:
            while not stop.is_set():
                if raw.socket.poll(5, 2):
                    raw.send(op)

    flooding = [threading.Thread(target=flood) for _ in range(2)]
    for thread in flooding:
        thread.start()
    try:
        for _ in range(3):
            assert node.berth("run", "--needs-mib", "100", "--", "true").returncode == 0
            assert node.status()["node"]["pid"] == pid
    finally:
        stop.set()
        for thread in flooding:
            thread.join(20.0)
    assert node.status()["node"]["pid"] == pid
