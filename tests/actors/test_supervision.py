"""Actors of a real berthd, in threads, that crash, hang and do not start."""

import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from berth.actors.card import core as card_core
from berth.actors.journal.messages import Happened, Kept, Record
from berth.actors.node import requests
from berth.client import Client
from berth.daemon import JOURNAL_NAME, Daemon, DaemonOptions
from berth.errors import BerthError
from berth.locks import OnlyOne
from berth.probes.simulated import simulated_cards
from tests.system.raw import Raw

WITHIN = 20.0


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """Return a berthd in this process, on one simulated card."""
    with tempfile.TemporaryDirectory(prefix="berth-", dir="/tmp") as name:
        folder = Path(name)
        (folder / "cards.toml").write_text("[[card]]\ntotal_mib = 1000\n")
        options = DaemonOptions(
            socket=folder / "b.sock", state=folder / "state", cards=simulated_cards(folder)
        )
        with locked(folder / "b.sock.lock") as door, locked(folder / "lock") as state:
            started = Daemon(options, door, state)
            started.start()
            wait_for(lambda: card_is_ok(started))
            yield started
            started.stop()


def locked(path: Path) -> OnlyOne:
    return OnlyOne(path, "it", hint="", way_out="")


def wait_for(what: Callable[[], Any], within: float = WITHIN) -> Any:
    pause = threading.Event()
    give_up = time.monotonic() + within
    while not (found := what()):
        assert time.monotonic() < give_up, "not in time"
        pause.wait(0.02)
    return found


def status(daemon: Daemon) -> dict[str, Any] | None:
    try:
        with Client(daemon.options.socket) as client:
            return client.call("status")
    except BerthError:
        return None


def card_is_ok(daemon: Daemon) -> bool:
    shown = status(daemon)
    return shown is not None and [card["state"] for card in shown["cards"]] == ["ok"]


def actor_of(daemon: Daemon, role: str) -> Any:
    """Return the actor itself, to look into it: a reference does not lead there."""
    ref = daemon.roles[role].slot.ref
    assert ref is not None
    actor = ref._actor_weakref()
    assert actor is not None
    return actor


class Poison:
    """A message that no core knows: matching it fails, as a bug would."""


ROLES = ["card gpu0", "probe gpu0", "trees", "node"]


@pytest.mark.parametrize("role", ROLES)
def test_actor_that_crashes_is_started_again_and_berthd_goes_on(daemon: Daemon, role: str) -> None:
    """3.7: its neighbours hold the same address, and a client sees no more than a pause."""
    slot = daemon.roles[role].slot
    before = slot.ref
    slot.tell(Poison())
    wait_for(lambda: slot.is_alive() and slot.ref is not before)
    wait_for(lambda: card_is_ok(daemon))
    reports = list((daemon.options.state / "crashes").glob("crash-*.txt"))
    assert len(reports) == 1
    assert "Poison" in reports[0].read_text()


def test_node_that_starts_again_goes_on_from_the_numbers_of_the_one_that_failed(
    daemon: Daemon,
) -> None:
    """What a card answers to a node that failed must not be taken for what the next one asked."""
    slot = daemon.roles["node"].slot
    with Raw(daemon.options.socket) as line:
        granted = line.call("lease.request", name="a", key="k1", needs_mib=10)
    status(daemon)
    before, ref = actor_of(daemon, "node").state, slot.ref
    slot.tell(Poison())
    wait_for(lambda: slot.is_alive() and slot.ref is not ref)
    after = actor_of(daemon, "node").state
    assert after.last_call >= before.last_call > 0
    assert after.last_number == before.last_number == int(granted["data"]["lease"][1:])


def test_card_that_crashes_four_times_is_closed_and_the_node_goes_on(daemon: Daemon) -> None:
    """3.7: three restarts in a minute; a fourth death closes the card, and nothing else."""
    slot = daemon.roles["card gpu0"].slot
    for _ in range(4):
        wait_for(slot.is_alive)
        before = slot.ref
        slot.tell(Poison())
        wait_for(partial(lambda old: slot.ref is not old, before))
    shown = wait_for(lambda: status(daemon))
    assert shown["cards"] == []


def test_request_that_kills_its_card_twice_is_set_aside_and_its_client_told(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.7: a bug that one request meets costs that request, not the card; others are served."""
    _fail_on_poison(monkeypatch, card_core, "_on_seek", lambda _, event: event.terms.name)
    with Raw(daemon.options.socket) as line:
        refused = line.call("lease.request", name="poison", key="k1", needs_mib=10)
        assert refused["error"]["code"] == "internal"
        assert "twice" in refused["error"]["message"]
        assert line.call("lease.request", name="good", key="k2", needs_mib=10)["ok"]
    assert len(list((daemon.options.state / "crashes").glob("crash-card*"))) == 2
    assert wait_for(lambda: status(daemon))["leases"][0]["name"] == "good"


def test_request_that_kills_the_node_twice_is_set_aside_when_it_comes_again(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.7: its client asks again, as `berth run` does; the third time it is told why."""
    _fail_on_poison(monkeypatch, requests, "on_ask", lambda _, __, wanted: wanted.terms.name)
    slot = daemon.roles["node"].slot
    for _ in range(2):
        before = slot.ref
        with Raw(daemon.options.socket) as line:
            line.send("lease.request", name="poison", key="k1", needs_mib=10)
            wait_for(partial(lambda old: slot.ref is not old, before))
        wait_for(lambda: card_is_ok(daemon))
    with Raw(daemon.options.socket) as line:
        refused = line.call("lease.request", name="poison", key="k1", needs_mib=10)
        assert refused["error"]["code"] == "internal"
        assert "twice" in refused["error"]["message"]
        assert line.call("lease.request", name="good", key="k2", needs_mib=10)["ok"]


def _fail_on_poison(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, whose: Callable[..., str]
) -> None:
    """Have a function of a core fail, as by a bug, for whoever is called `poison`."""
    real = getattr(module, name)

    def fail(*event: Any) -> Any:
        if whose(*event) == "poison":
            raise ZeroDivisionError("a bug, met by one request")
        return real(*event)

    monkeypatch.setattr(module, name, fail)


def test_journal_that_crashes_ends_berthd(daemon: Daemon) -> None:
    """3.7: without its sequence nothing may go on; engines run on for the next berthd."""
    daemon.roles["journal"].slot.tell(Poison())
    daemon.wait()
    assert "journal failed" in daemon.stop()


def test_journal_that_another_program_has_locked_keeps_nobody_waiting(daemon: Daemon) -> None:
    """S6: however many records come meanwhile; it is an alert, and clears by itself."""
    path = daemon.options.state / JOURNAL_NAME
    happened = Record(entries=(Happened(kind="card.ok", card=None),))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(60):
            daemon.journal.tell(happened)
        with Client(daemon.options.socket) as client:
            assert client.call("events")["events"]  # comes after all of them, and within its 5 s
    wait_for(lambda: {"alert.raised", "alert.cleared"} <= kinds(daemon))


def kinds(daemon: Daemon) -> set[str]:
    with Client(daemon.options.socket) as client:
        return {event["kind"] for event in client.call("events")["events"]}


def test_card_that_crashes_while_the_journal_cannot_be_read_comes_back(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal reads again; berthd must not end for a lock that another program has."""
    locked = sqlite3.OperationalError("database is locked")
    locked.sqlite_errorname = "SQLITE_BUSY"
    fails = [locked]
    real = daemon._store.kept

    def kept(boot_id: str) -> Kept:
        if fails:
            raise fails.pop()
        return real(boot_id)

    monkeypatch.setattr(daemon._store, "kept", kept)
    slot = daemon.roles["card gpu0"].slot
    before = slot.ref
    slot.tell(Poison())
    wait_for(lambda: slot.is_alive() and slot.ref is not before)
    wait_for(lambda: card_is_ok(daemon))
    assert not fails


def test_driver_worker_that_is_killed_is_replaced(daemon: Daemon) -> None:
    """B1: the card is unmeasured meanwhile, and read again a second later."""
    actor_of(daemon, "probe gpu0")._worker.process.kill()
    wait_for(lambda: not card_is_ok(daemon))
    wait_for(lambda: card_is_ok(daemon))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_socket_thread_that_dies_takes_the_node_and_both_come_back(daemon: Daemon) -> None:
    """The door is the node's: without it nobody would ever be heard again."""
    node = daemon.roles["node"].slot.ref
    actor_of(daemon, "node")._socket.tell("no message at all")
    wait_for(lambda: daemon.roles["node"].slot.ref is not node)
    wait_for(lambda: card_is_ok(daemon))


def test_actor_that_hangs_and_has_state_ends_berthd(daemon: Daemon) -> None:
    """3.7: its thread may still change things; only a new process is safe."""
    gate = threading.Event()

    def hang(*_: object) -> None:
        gate.wait(60.0)

    actor_of(daemon, "card gpu0")._decide = hang
    daemon.wait()
    gate.set()
    assert "has not handled a message" in daemon.stop()


def test_berthd_stops_in_order_and_leaves_no_thread(daemon: Daemon) -> None:
    """3.7: everything that was started is stopped, in reverse, each within its limit."""
    begun = time.monotonic()
    assert daemon.stop() == ""
    assert time.monotonic() - begun < 10.0
    assert not any(role.slot.is_alive() for role in daemon.roles.values())
