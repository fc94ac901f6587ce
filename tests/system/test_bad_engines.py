"""Engines that lie, are late, hang or leave things behind: nothing is granted over them."""

import os
import signal
import subprocess
from datetime import datetime

import pytest

from tests.system.llama import Chat, free_port, wait_until_healthy
from tests.system.node import BERTH, Node, Sampler, wait_for

pytestmark = pytest.mark.system

MIB = 14000
TOTAL = 24576 - 421


def start(node: Node, name: str, *misbehaviour: str, run: tuple[str, ...] = ()) -> int:
    """Start a simulated llama engine under `berth run`; return its port, once it is healthy."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    engine = [*BERTH, "sim", "engine", "--kind", "llama", "--mib", str(MIB), "--port", str(port)]
    process = node.run(
        *("--as", name, "--needs-mib", str(MIB), "--wait", "40s", "--drain-slots", url),
        *(*run, "--", *engine, *misbehaviour),
        stdout=subprocess.DEVNULL,
    )
    assert wait_until_healthy(port, process)
    return port


def claimed(node: Node) -> int:
    """Return what is claimed on the card, as the files say."""
    used: int = node.status()["cards"][0]["used_mib"] - 421
    return used


def test_engine_that_lies_about_its_unload_is_stopped(node: Node) -> None:
    """H1: "unloaded" is only a word: the command has to end, and the card to show it free."""
    port = start(node, "liar", "--lie-on-unload", run=("--grace", "1s", "--unload", _UNLOAD))
    del port
    start(node, "next")
    assert node.lease("liar") is None


_UNLOAD = "http://127.0.0.1:1/unload"


def test_memory_that_comes_back_three_seconds_late_is_waited_for(node: Node) -> None:
    """R9, H1: the engine is gone, what it left shows its memory: no grant until it does not."""
    sampler = Sampler(node.sim, TOTAL)
    sampler.start()
    start(node, "late", "--release-lag", "3")
    start(node, "next")
    sampler.stop()
    assert sampler.overdrawn == []
    told = {event["kind"]: event for event in node.events() if event["name"] == "late"}
    asked, freed = (
        datetime.fromisoformat(told[kind]["at"]) for kind in ("lease.draining", "lease.freed")
    )
    assert (freed - asked).total_seconds() >= 3.0


def test_engine_that_ignores_sigterm_is_killed_after_its_grace(node: Node) -> None:
    """H3: SIGTERM, the grace, then SIGKILL to the whole tree."""
    start(node, "stubborn", "--ignore-sigterm", run=("--grace", "1s"))
    start(node, "next")
    assert node.lease("stubborn") is None


def test_engine_whose_slots_hang_is_stopped_when_its_drain_wait_is_over(node: Node) -> None:
    """H2: a read that times out is busy, for as long as --drain-wait and not longer."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    node.run(
        *("--as", "hung", "--needs-mib", str(MIB), "--drain-slots", url, "--drain-wait", "2s"),
        *("--start-limit", "1s", "--", *BERTH, "sim", "engine", "--kind", "llama"),
        *("--mib", str(MIB), "--port", str(port), "--hang-slots"),
        stdout=subprocess.DEVNULL,
    )
    node.wait_state("hung", "running")
    start(node, "next")
    assert node.lease("hung") is None


def test_child_that_forked_away_keeps_the_card_until_it_is_ended(node: Node) -> None:
    """B6, R9: a daemon that holds the memory is still below the wrapper, and is ended with it."""
    start(node, "forker", "--double-fork")
    start(node, "next")
    assert node.lease("forker") is None
    assert claimed(node) == MIB


def test_engine_that_dies_while_loading_gives_its_lease_back(node: Node) -> None:
    """R9: whatever it had claimed is gone with it; who waits goes on."""
    engine = [*BERTH, "sim", "engine", "--kind", "plain", "--mib", str(MIB)]
    run = node.run("--as", "crash", "--", *engine, "--load-s", "5", "--crash-after", "1")
    assert run.wait(timeout=20.0) not in {0, 143}
    node.wait_gone("crash")
    assert claimed(node) == 0


def test_reply_in_flight_is_finished_before_the_engine_goes(node: Node) -> None:
    """H2: the boundary is no request in flight; a new engine waits for a whole reply."""
    port = start(node, "chat", "--token-s", "0.02")
    chat = Chat(port, tokens=100)
    chat.start()
    assert chat.begun.wait(20.0)
    start(node, "next")
    chat.join(timeout=20.0)
    assert chat.whole


def test_stowaway_is_counted_and_left_alone(node: Node) -> None:
    """A process without a lease is reported, never killed; what it uses is granted to nobody."""
    stranger = node.popen("sim", "claim", "--mib", "12000", "--", "sleep", "100")
    wait_for(lambda: claimed(node) == 12000)
    refused = node.berth("run", "--needs-mib", str(MIB), "--wait", "1s", "--", "true")
    assert refused.returncode == 75
    assert "sleep uses 11.7 GiB without a lease" in refused.stderr
    assert stranger.poll() is None
    row = node.status()["stowaways"][0]
    assert (row["pid"], row["used_mib"]) == (stranger.pid, 12000)


def test_stopped_wrapper_is_woken_and_drains(node: Node) -> None:
    """H6: a wrapper that is stopped hears nothing; berthd wakes it and the drain goes on."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    engine = [*BERTH, "sim", "engine", "--kind", "llama", "--mib", str(MIB), "--port", str(port)]
    sleeper = node.run(
        *("--as", "sleeper", "--needs-mib", str(MIB), "--drain-slots", url, "--", *engine),
        stdout=subprocess.DEVNULL,
    )
    assert wait_until_healthy(port, sleeper)
    node.wait_state("sleeper", "running")
    os.kill(sleeper.pid, signal.SIGSTOP)
    start(node, "next")
    assert sleeper.wait(timeout=20.0) == 143
