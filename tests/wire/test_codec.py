"""The one translator between the wire's JSON and what the actors say (spec 16, S4, S5)."""

import os
from typing import Any

import pytest

from berth.actors.card.messages import HolderWord
from berth.actors.node.codec import decode
from berth.actors.node.messages import (
    AskLease,
    AttachLease,
    ClientOp,
    GiveBack,
    ListCards,
    Pong,
    SayHello,
    ShowEvents,
    ShowStatus,
    Stop,
    TellStarted,
    TellWord,
    Wanted,
    Withdraw,
)
from berth.errors import Code
from berth.ids import Attempt, Key, LeaseId, ProcessId, RequestId
from berth.lease import Priority, Terms
from berth.probes.procfs import identify
from berth.units import MiB, Seconds
from tests.wire.framing import ME, PID, frame, refused

STRANGER = ProcessId(1 if PID != 1 else 2, 1)


def taken(op: str, peer: ProcessId = ME, **fields: Any) -> ClientOp:
    """Return what comes of a good message."""
    message_id, translated = decode(frame(op, **fields), peer)
    assert message_id == "7"
    return translated


def wanted(op: str = "lease.request", **fields: Any) -> Wanted:
    asked = taken(op, **({"name": "chat"} | fields))
    assert isinstance(asked, AskLease | AttachLease)
    return asked.wanted


# --- every operation ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "fields", "expected"),
    [
        ("hello", {}, SayHello()),
        ("status", {}, ShowStatus()),
        ("card.list", {}, ListCards()),
        ("events", {}, ShowEvents(after_seq=None, within=None, limit=1000)),
        (
            "events",
            {"since": 0, "last_s": 60, "limit": 5},
            ShowEvents(after_seq=0, within=Seconds(60.0), limit=5),
        ),
        (
            "lease.started",
            {"lease": "L7", "pids": [], "scope": "berth-L7.scope", "containers": []},
            TellStarted(lease=LeaseId("L7"), members=frozenset(), scope="berth-L7.scope"),
        ),
        (
            "lease.answer",
            {"lease": "L7", "attempt": 3, "state": "boundary", "mib": None, "why": "idle"},
            TellWord(lease=LeaseId("L7"), attempt=Attempt(3), word=HolderWord.BOUNDARY, why="idle"),
        ),
        ("lease.release", {"lease": "L7"}, GiveBack(lease=LeaseId("L7"))),
        ("withdraw", {"request": "r9"}, Withdraw(request=RequestId("r9"))),
        ("stop", {"name": "chat"}, Stop(target="chat", at_once=False)),
        ("stop", {"lease": "L7", "now": True}, Stop(target="L7", at_once=True)),
        ("pong", {"lease": "L7"}, Pong()),
        ("pong", {}, Pong()),
    ],
)
def test_operation_is_understood(op: str, fields: dict[str, Any], expected: ClientOp) -> None:
    """Spec 16: an op's fields stand beside `op`."""
    assert taken(op, **fields) == expected


def test_request_needs_only_a_name() -> None:
    """Spec 16: of `lease.request`'s fields only `name` must be there."""
    terms = Terms(name="chat", key=Key(""), priority=Priority.BATCH)
    assert wanted() == Wanted(terms=terms)


FULL = {
    "key": "k",
    "waited_s": 3,
    "needs_mib": 14000,
    "cards": ["gpu0"],
    "priority": "foreground",
    "wait_s": 12.5,
    "min_turn_s": 1,
    "pinned": True,
    "group": "llama-swap",
    "boundary": True,
    "park": None,
    "lend": False,
    "whole_machine": False,
    "drain_wait_s": 2,
    "grace_s": 3,
    "start_limit_s": 4,
    "fail_closed": True,
    "exclusive": True,
    "numbered": True,
    "wrapped": True,
    "containers": ["abc"],
    "resume": None,
}


@pytest.mark.parametrize("op", ["lease.request", "attach"])
def test_all_that_a_lease_is_asked_under_is_taken(op: str) -> None:
    """Spec 16: `attach` has `lease.request`'s fields; times in seconds, memory in MiB."""
    assert wanted(op, **FULL) == Wanted(
        terms=Terms(
            name="chat",
            key=Key("k"),
            priority=Priority.FOREGROUND,
            wait=Seconds(12.5),
            min_turn=Seconds(1.0),
            drain_wait=Seconds(2.0),
            grace=Seconds(3.0),
            start_limit=Seconds(4.0),
            pinned=True,
            boundary=True,
            fail_closed=True,
            wrapped=True,
            exclusive=True,
            group="llama-swap",
            containers=("abc",),
        ),
        mib=(MiB(14000),),
        cards=("gpu0",),
        waited=Seconds(3.0),
        numbered=True,
    )


@pytest.mark.parametrize(
    ("fields", "mib", "cards"),
    [
        ({}, (), ()),
        ({"needs_mib": None, "cards": None}, (), ()),
        ({"needs_mib": 5, "cards": "any"}, (5,), ("any",)),
        ({"needs_mib": [5], "cards": ["gpu0", "gpu1"]}, (5,), ("gpu0", "gpu1")),
        ({"needs_mib": [5, 6], "cards": ["gpu0", "gpu1"]}, (5, 6), ("gpu0", "gpu1")),
    ],
)
def test_sizes_and_cards_are_one_or_a_list(
    fields: dict[str, Any], mib: tuple[int, ...], cards: tuple[str, ...]
) -> None:
    """M2: one figure for each card, or a list in the order named."""
    asked = wanted(**fields)
    assert (asked.mib, asked.cards) == (mib, cards)


@pytest.mark.parametrize("cards", [None, ["gpu0"], ["gpu0", "gpu1", "gpu2"]])
def test_sizes_for_other_cards_than_are_named_are_refused(cards: list[str] | None) -> None:
    """M2: nobody guesses which figure is for which card."""
    bad = refused(frame("lease.request", name="a", needs_mib=[5, 6], cards=cards))
    assert "needs_mib has 2 figures for" in bad.message


@pytest.mark.parametrize(
    ("fields", "priority"),
    [
        ({}, Priority.BATCH),
        ({"boundary": True}, Priority.INTERACTIVE),
        ({"boundary": True, "priority": "batch"}, Priority.BATCH),
        ({"priority": "background"}, Priority.BACKGROUND),
        ({"priority": "interactive"}, Priority.INTERACTIVE),
        ({"priority": "foreground"}, Priority.FOREGROUND),
    ],
)
def test_priority_is_the_one_named_or_that_of_its_kind(
    fields: dict[str, Any], priority: Priority
) -> None:
    """Q1: interactive is the default; for a job without a boundary: batch."""
    assert wanted(**fields).terms.priority is priority


@pytest.mark.parametrize("priority", ["hold", "urgent", "", "Foreground"])
def test_priority_that_nobody_can_ask_for_is_refused(priority: str) -> None:
    """Q1: `--priority` takes foreground, interactive, batch, background; a hold is a person's."""
    bad = refused(frame("lease.request", name="a", priority=priority))
    assert bad.code is Code.BAD_REQUEST
    assert f"{priority!r} is none of background, batch, interactive, foreground" in bad.message


def test_attach_brings_state_attempt_and_tree() -> None:
    """S6: `attach` brings what the wrapper knows about its engine."""
    attach = taken(
        "attach",
        name="chat",
        lease="L7",
        state="draining",
        attempt=4,
        pids=[PID],
        scope="s",
        started_s=9,
        lent_mib=0,
        container="abc",
    )
    assert isinstance(attach, AttachLease)
    assert (attach.lease, attach.state, attach.attempt) == ("L7", "draining", 4)
    assert (attach.members, attach.scope, attach.ran_for) == (frozenset({ME}), "s", 9.0)


def test_attach_without_a_lease_is_of_a_run_that_has_none() -> None:
    """R4: what ran unprotected attaches as soon as berthd answers."""
    attach = taken("attach", name="chat", lease=None)
    assert isinstance(attach, AttachLease)
    assert (attach.lease, attach.state, attach.members) == (None, "running", frozenset())


@pytest.mark.parametrize("state", ["parked", "releasing", "", "Running"])
def test_state_that_nobody_can_attach_in_is_refused(state: str) -> None:
    """Spec 16: unknown words are errors that name them, and those there are."""
    bad = refused(frame("attach", name="a", state=state))
    assert bad.message == f"attach: state {state!r} is none of draining, running, starting"


@pytest.mark.parametrize("word", [word.value for word in HolderWord])
def test_holders_words_are_understood(word: str) -> None:
    """Spec 16: `heard`, `boundary`, `released`, `failed`; Q11: ready and served."""
    told = taken("lease.answer", lease="L7", state=word)
    assert isinstance(told, TellWord)
    assert (told.word.value, told.attempt) == (word, 0)


def test_word_that_is_none_is_refused() -> None:
    """Spec 16: an error naming it, and those there are."""
    bad = refused(frame("lease.answer", lease="L7", state="tired"))
    assert bad.message.startswith("lease.answer: state 'tired' is none of heard, boundary, ")


@pytest.mark.parametrize("fields", [{}, {"name": "", "lease": ""}, {"now": True}])
def test_stop_of_nothing_is_refused(fields: dict[str, Any]) -> None:
    """S7: an empty name must not stop everything."""
    assert refused(frame("stop", **fields)).message == "stop: name a lease or an engine"


# --- processes ------------------------------------------------------------------------------------


def test_own_processes_are_kept_with_their_start_times() -> None:
    """S4: pids named are kept with start times, so that no later process is taken for them."""
    told = taken("lease.started", lease="L7", pids=[PID, PID])
    assert isinstance(told, TellStarted)
    assert told.members == {ME}


@pytest.mark.parametrize("op", ["lease.started", "attach"])
def test_foreign_processes_are_not_yours(op: str) -> None:
    """S4: pids named in a message must be the peer's own or descend from it."""
    fields = {"name": "a"} if op == "attach" else {"lease": "L7"}
    bad = refused(frame(op, pids=[PID, STRANGER.pid], **fields))
    assert (bad.code, bad.message) == (Code.NOT_YOURS, f"process {STRANGER.pid} is not yours")
    assert bad.message_id == "7"


def test_process_that_is_below_the_peer_is_its_own() -> None:
    """B6: a wrapper names the command that it started."""
    parent = identify(os.getppid())
    if parent is None:
        pytest.skip("this process has no parent that can be seen")
    told = taken("lease.started", peer=parent, lease="L7", pids=[PID])
    assert isinstance(told, TellStarted)
    assert told.members == {ME}


def test_process_of_a_peer_that_is_gone_is_not_yours() -> None:
    """S4: another process has the peer's pid by now."""
    gone = ProcessId(PID, ME.start + 1)
    assert refused(frame("lease.started", lease="L7", pids=[PID]), gone).code is Code.NOT_YOURS


def test_process_that_has_ended_is_left_out() -> None:
    """A short-lived child may be gone before its message is read."""
    told = taken("lease.started", lease="L7", pids=[PID, 2**22 + 7])
    assert isinstance(told, TellStarted)
    assert told.members == {ME}
