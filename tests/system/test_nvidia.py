"""The whole broker on real pynvml: hand-overs, and every trouble that one card can be in."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml_stub import FOREVER, Nvml, Slice
from tests.system.node import wait_for
from tests.system.nvidia_node import CARD, NvidiaNode

MakeNode = Callable[..., NvidiaNode]

pytestmark = pytest.mark.system

HAND_OVERS = 2


@pytest.fixture
def node(make_nvidia_node: MakeNode) -> NvidiaNode:
    """Return a running node with two stub cards."""
    made = make_nvidia_node(CARD, CARD)
    made.start()
    return made


def holds(node: NvidiaNode, name: str, mib: int = 20000, *flags: str, card: int = 0) -> Any:
    """Start a job that holds memory on a card, and wait until the driver's row shows it."""
    run = node.run(
        *("--as", name, "--needs-mib", str(mib), "--gpu", f"gpu{card}", "--wait", "30s", *flags),
        *("--", *node.claiming(mib, "sleep", "99", card=card)),
    )
    wait_for(lambda: (node.lease(name) or {}).get("used_mib") == mib, why=f"{name} holds {mib}")
    return run


def granted(node: NvidiaNode, card: str, wait: str = "20s") -> "subprocess.CompletedProcess[str]":
    """Ask for a card, and give it back at once."""
    return node.berth("run", "--as", "asks", "--gpu", card, "--wait", wait, "--", "true")


def state_is(node: NvidiaNode, name: str, state: str, words: str = "") -> dict[str, Any]:
    """Wait until a card's row says that state, and those words."""

    def shown() -> dict[str, Any] | None:
        row = node.card(name)
        return row if row["state"] == state and words in (row["why"] or "") else None

    found: dict[str, Any] = wait_for(shown, why=f"{name} is {state}: {words}")
    return found


def worker_of(node: NvidiaNode, number: int) -> set[int]:
    """Return the pids of berthd's driver workers, those that are not dead."""
    assert node.daemon is not None
    children = Path(f"/proc/{node.daemon.pid}/task").glob("*/children")
    pids = {int(pid) for child in children for pid in child.read_text().split()}
    workers = {pid for pid in pids if _is_worker(pid)}
    assert len(workers) <= number
    return workers


def _is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_cards_hand_over_by_what_the_driver_shows(node: NvidiaNode) -> None:
    """H1, B6: rows of the driver are told to belong to leases, and free them."""
    assert [card["pci"] for card in node.status()["cards"]] == ["0000:41:00.0", "0000:42:00.0"]
    for number in range(HAND_OVERS):
        job = holds(node, f"job{number}", 20000, "--priority", "batch")
        engine = holds(node, f"engine{number}", 20000, "--priority", "foreground")
        assert job.wait(timeout=20.0) == 143
        engine.terminate()
        engine.wait(timeout=20.0)
    told = [(event["kind"], event["name"]) for event in node.events("lease.granted", "lease.freed")]
    for number in range(HAND_OVERS):
        freed = told.index(("lease.freed", f"job{number}"))
        assert freed < told.index(("lease.granted", f"engine{number}"))
    assert node.events("lease.contested", "lease.stuck", "stowaway.seen") == []


def test_process_without_a_lease_is_a_stowaway_by_its_name(node: NvidiaNode) -> None:
    """C3: who loads behind Berth's back is seen through the driver's row, and counted."""
    stranger = subprocess.Popen(node.claiming(9000, "sleep", "99"), env=node.environment)
    try:
        wait_for(lambda: node.status()["stowaways"])
        (row,) = node.status()["stowaways"]
        assert (row["name"], row["card"], row["used_mib"]) == ("sleep", "gpu0", 9000)
        assert row["pid"] == stranger.pid
    finally:
        stranger.kill()
        stranger.wait()
    wait_for(lambda: node.status()["stowaways"] == [])


_CUT = (Slice("MIG-1", 2**30), Slice("MIG-2", 2**30, instance=2))
TROUBLES: dict[str, tuple[dict[str, Any], str, str]] = {
    "lost": ({"error": Nvml.LOST}, "lost", "reboot"),
    "no handle": ({"error": Nvml.UNKNOWN, "handle_error": Nvml.UNKNOWN}, "lost", "dmesg"),
    "reset": ({"error": Nvml.RESET_REQUIRED}, "unmeasured", "nvidia-smi --gpu-reset"),
    "permission": ({"error": Nvml.NO_PERMISSION}, "unmeasured", "/dev/nvidia*"),
    "timeout": ({"error": 10}, "unmeasured", "asked again"),
    "not ready": ({"error": Nvml.NOT_READY}, "unmeasured", "asked again"),
    "no size": ({"memory_error": Nvml.UNKNOWN}, "unmeasured", "asked again"),
    "cut": ({"mig": True, "slices": _CUT}, "unmeasured", "nvidia-smi -mig 0"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_of_one_card_is_its_own(node: NvidiaNode, trouble: str) -> None:
    """B1: nothing is granted on it, its lease stays, the other goes on, and it heals by itself."""
    changes, state, way_out = TROUBLES[trouble]
    holder = holds(node, "holder", 9000)
    usual = {key: getattr(node.driver.cards[0], key) for key in changes}
    node.feeder.change(0, **changes)
    row = state_is(node, "gpu0", state, way_out)
    assert (row["free_mib"], "\n" in row["why"]) == (None, False)
    assert granted(node, "gpu1").returncode == 0
    refused = granted(node, "gpu0", "1s")
    assert (refused.returncode, "unmeasured" in refused.stderr) == (75, True)
    assert way_out in refused.stderr, "who waits reads what to do, without a look at the status"
    assert holder.poll() is None
    assert (node.lease("holder") or {})["state"] == "running"
    node.feeder.change(0, **usual)
    state_is(node, "gpu0", "ok")
    run = node.berth("run", "--needs-mib", "9000", "--gpu", "gpu0", "--wait", "20s", "--", "true")
    assert run.returncode == 0, run.stderr
    kinds = [e["kind"] for e in node.events() if e["card"] == "gpu0" and e["kind"] in CARD_KINDS]
    wrong = "card.lost" if state == "lost" else "card.unmeasured"
    first = ["card.unmeasured"] if trouble == "no handle" else []  # before it is looked up again
    assert kinds == ["card.ok", *first, wrong, "card.ok"]
    assert all(e["card"] != "gpu1" for e in node.events("card.unmeasured", "card.lost"))


CARD_KINDS = {"card.ok", "card.lost", "card.unmeasured"}


def test_call_that_takes_five_seconds_costs_its_worker_and_no_more(node: NvidiaNode) -> None:
    """B1: the worker is killed and replaced, the card unmeasured meanwhile, the other untouched."""
    before = worker_of(node, 2)
    assert len(before) == 2
    node.feeder.change(0, delay_ms=5000)
    state_is(node, "gpu0", "unmeasured", "hangs")
    assert granted(node, "gpu1").returncode == 0
    node.feeder.change(0, delay_ms=0)
    state_is(node, "gpu0", "ok")
    assert granted(node, "gpu0").returncode == 0
    assert len(worker_of(node, 2) & before) == 1
    assert node.card("gpu1")["state"] == "ok"


@pytest.mark.timeout(180)
def test_call_that_never_ends_keeps_one_worker_at_most(node: NvidiaNode) -> None:
    """B1: worker after worker is given up, none is left behind, and leases stay."""
    holder = holds(node, "holder", 9000)
    node.feeder.change(0, delay_ms=FOREVER)
    state_is(node, "gpu0", "unmeasured", "hangs")
    hung = worker_of(node, 2)
    wait_for(lambda: worker_of(node, 2) - hung, within=40.0, why="another worker is tried")
    assert granted(node, "gpu1").returncode == 0
    assert holder.poll() is None
    refused = granted(node, "gpu0", "1s")
    assert refused.returncode == 75
    node.feeder.change(0, delay_ms=0)
    state_is(node, "gpu0", "ok")
    assert (node.lease("holder") or {})["used_mib"] == 9000


def test_worker_that_crashes_is_replaced(node: NvidiaNode) -> None:
    """A library may end its process (WSL #11277): berthd lives on, and so does the card."""
    before = worker_of(node, 2)
    victim = min(before)
    os.kill(victim, signal.SIGSEGV)
    wait_for(lambda: len(worker_of(node, 2) - before) == 1 and len(worker_of(node, 2)) == 2)
    for name in ("gpu0", "gpu1"):
        state_is(node, name, "ok")
        assert granted(node, name).returncode == 0


def test_xid_is_an_event_of_its_card(node: NvidiaNode) -> None:
    """W3: what the card reports is told with what it means, once."""
    node.driver.throw_xid(1, 31)
    (event,) = wait_for(lambda: node.events("card.xid"))
    assert (event["card"], event["xid"], event["times"]) == ("gpu1", 31, 1)
    assert event["why"].startswith("Xid 31: a program used card memory")
