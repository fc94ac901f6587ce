"""Leases on several cards and on any card, with real processes on two simulated cards (M2, Q9)."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.system.node import Node, wait_for

pytestmark = pytest.mark.system

CARDS = (
    {"total_mib": 24576, "uuid": "GPU-A", "pci": "0000:41:00.0"},
    {"total_mib": 16384, "uuid": "GPU-B", "pci": "0000:09:00.0"},
)
EXITS_WITHIN = 30.0


@pytest.fixture
def two_cards(make_node: Callable[..., Node]) -> Node:
    """Return a running node with a card of 24 GiB and one of 16."""
    node = make_node(*CARDS)
    node.start()
    return node


def engine(node: Node, sizes: dict[int, int], shown: Path | None = None) -> list[str]:
    """Return a command that claims so much on each card, and writes which cards it was shown."""
    say = "" if shown is None else f'printf %s "$CUDA_VISIBLE_DEVICES" > {shown}; '
    command = ["sh", "-c", f"{say}exec sleep 1000"]
    for card, mib in sizes.items():
        command = node.claiming(mib, *command, card=card)
    return command


def start_pair(node: Node, *flags: str, shown: Path | None = None) -> "subprocess.Popen[bytes]":
    """Start a job on both cards: 9,000 MiB on gpu1, 15,000 on gpu0, in that order."""
    asked = ("--as", "pair", "--gpu", "gpu1,gpu0", "--needs-mib", "9000,15000", "--wait", "60s")
    return node.run(*asked, *flags, "--", *engine(node, {1: 9000, 0: 15000}, shown))


def start(node: Node, name: str, gpu: str, mib: int, *flags: str) -> "subprocess.Popen[bytes]":
    """Start a job on one card, which claims what it asks for."""
    card = {"gpu0": 0, "gpu1": 1}.get(gpu)
    claims = {} if card is None else {card: mib}
    asked = ("--as", name, "--gpu", gpu, "--needs-mib", str(mib), "--wait", "60s")
    return node.run(*asked, *flags, "--", *engine(node, claims))


def rows(node: Node, name: str) -> list[dict[str, Any]]:
    """Return the rows of a lease, one for each of its cards."""
    return [row for row in node.status()["leases"] if row["name"] == name]


def holds_both(node: Node) -> list[dict[str, Any]]:
    """Wait until the pair runs on both cards and is seen to use them; return its rows."""

    def seen() -> list[dict[str, Any]]:
        found = rows(node, "pair")
        used = sorted(row["used_mib"] for row in found)
        return found if used == [9000, 15000] else []

    both: list[dict[str, Any]] = wait_for(seen, why="the pair uses both cards")
    assert {row["state"] for row in both} <= {"starting", "running"}
    return both


def freed(node: Node) -> list[str]:
    """Return the cards that the pair was seen to have left."""
    told = node.events("lease.freed")
    return sorted(event["card"] for event in told if event["name"] == "pair")


def test_both_cards_are_granted_at_once_in_the_order_named(two_cards: Node) -> None:
    """M2, M3: one lease, a row on each card with its own size, and the command sees both."""
    shown = two_cards.folder / "shown"
    pair = start_pair(two_cards, shown=shown)
    both = {row["card"]: row for row in holds_both(two_cards)}
    assert {card: row["ask_mib"] for card, row in both.items()} == {"gpu0": 15000, "gpu1": 9000}
    assert both["gpu0"]["lease"] == both["gpu1"]["lease"]
    assert both["gpu0"]["cards"] == ["gpu1", "gpu0"]
    assert shown.read_text() == "GPU-B,GPU-A"
    granted = two_cards.events("lease.granted")
    assert sorted(event["card"] for event in granted) == ["gpu0", "gpu1"]
    assert two_cards.berth("stop", "pair").returncode == 0
    assert pair.wait(timeout=EXITS_WITHIN) == 143
    wait_for(lambda: freed(two_cards) == ["gpu0", "gpu1"], why="its exit frees both")


def test_it_holds_no_card_while_it_waits_for_another(two_cards: Node) -> None:
    """M2: gpu0 stays free for others meanwhile, as long as the pair would still fit beside them."""
    start(two_cards, "busy", "gpu1", 12000)
    two_cards.wait_state("busy", "running")
    pair = start_pair(two_cards)
    waiting = wait_for(lambda: two_cards.waiter("pair"))
    assert waiting["cards"] == ["gpu1", "gpu0"]
    assert rows(two_cards, "pair") == []
    start(two_cards, "small", "gpu0", 9000)
    two_cards.wait_state("small", "running")
    start(two_cards, "late", "gpu0", 12000)
    late = wait_for(lambda: two_cards.waiter("late"))
    assert "pair" in late["why"], "it would keep the pair out, so it comes after it"
    assert rows(two_cards, "pair") == []
    assert two_cards.berth("stop", "busy").returncode == 0
    holds_both(two_cards)
    assert two_cards.lease("late") is None
    assert pair.poll() is None


def test_drain_on_one_card_ends_it_and_frees_both(two_cards: Node) -> None:
    """M2: an engine cannot give one of its cards back; somebody above it gets his all the same."""
    pair = start_pair(two_cards)
    holds_both(two_cards)
    start(two_cards, "urgent", "gpu1", 12000, "--priority", "foreground")
    assert pair.wait(timeout=EXITS_WITHIN) == 143
    two_cards.wait_state("urgent", "running")
    wait_for(lambda: freed(two_cards) == ["gpu0", "gpu1"], why="both cards are free of it")
    told = [(e["kind"], e["name"], e["card"]) for e in two_cards.events()]
    left = told.index(("lease.freed", "pair", "gpu1"))
    assert left < told.index(("lease.granted", "urgent", "gpu1"))


def test_any_card_is_the_free_one(two_cards: Node) -> None:
    """Q9, M3: where it fits now, and the command is shown that card."""
    start(two_cards, "holder", "gpu0", 20000)
    two_cards.wait_state("holder", "running")
    shown = two_cards.folder / "shown"
    asked = ("--as", "any", "--gpu", "any", "--needs-mib", "9000")
    two_cards.run(*asked, "--", *engine(two_cards, {}, shown))
    assert two_cards.wait_state("any", "running")["card"] == "gpu1"
    wait_for(lambda: shown.exists() and shown.read_text() == "GPU-B", why="it is shown gpu1")


def test_any_card_is_the_one_where_the_switch_costs_least(two_cards: Node) -> None:
    """Q9: with both taken, the holder of the lower priority gives way, and the other runs on."""
    dear = start(two_cards, "dear", "gpu0", 20000, "--priority", "interactive")
    cheap = start(two_cards, "cheap", "gpu1", 12000, "--priority", "background")
    for name in ("dear", "cheap"):
        two_cards.wait_state(name, "running")
    start(two_cards, "urgent", "any", 9000, "--priority", "foreground")
    assert two_cards.wait_state("urgent", "running")["card"] == "gpu1"
    assert cheap.wait(timeout=EXITS_WITHIN) == 143
    assert dear.poll() is None


def test_killed_berthd_finds_it_on_both_cards_again(two_cards: Node) -> None:
    """S6, M2: one lease id, the same process, and what it holds counts on both."""
    pair = start_pair(two_cards)
    before = holds_both(two_cards)
    two_cards.kill()
    assert pair.poll() is None
    two_cards.start()
    wait_for(lambda: {row["state"] for row in rows(two_cards, "pair")} == {"running"})
    after = holds_both(two_cards)
    keys = ("card", "lease", "ask_mib", "pids", "cards")
    assert [[row[key] for key in keys] for row in after] == [
        [row[key] for key in keys] for row in before
    ]
    waiting = start(two_cards, "next", "gpu0", 12000)
    assert "pair" in wait_for(lambda: two_cards.waiter("next"))["why"]
    pair.send_signal(signal.SIGTERM)
    assert pair.wait(timeout=EXITS_WITHIN) == 128 + signal.SIGTERM
    wait_for(lambda: freed(two_cards) == ["gpu0", "gpu1"])
    two_cards.wait_state("next", "running")
    assert waiting.poll() is None


REFUSED = (
    (("--gpu", "gpu0,gpu7"), 76, "no card gpu7 on this node"),
    (("--gpu", "gpu0,0000:41:00.0"), 64, "0000:41:00.0 is gpu0, which is named twice"),
    (("--gpu", "gpu0,gpu1", "--needs-mib", "9000,17000"), 76, "more than gpu1 can hand out"),
    (("--gpu", "gpu0,gpu1", "--needs-mib", "9000,9000,9000"), 64, "3 figures for 2 cards"),
    (("--gpu", "gpu0", "--needs-mib", "9000,9000"), 64, "2 figures for 1 card"),
    (("--gpu", "any", "--needs-mib", "30000"), 76, "more than gpu0 can hand out"),
    (("--gpu", "gpu0,any"), 64, "any stands alone"),
    (("--gpu", "gpu0,"), 64, "leaves a card unnamed"),
    (("--gpu", ""), 64, "leaves a card unnamed"),
    (("--gpu", "gpu0,gpu0"), 64, "gpu0 is named twice"),
    (("--gpu", "gpu0,gpu1", "--needs-mib", "9000,0"), 64, "is no number of MiB"),
)


def test_holder_of_both_comes_back_to_a_berthd_that_governs_one(two_cards: Node) -> None:
    """S6, M1: not reached, it would be ended by force for the next one, in mid reply."""
    node = two_cards
    start_pair(node)
    holds_both(node)
    node.kill()
    node.declare(CARDS[:1])
    node.start()
    wait_for(lambda: [row["state"] for row in rows(node, "pair")] == ["running"])
    node.kill()
    node.declare(CARDS)
    node.start()
    wait_for(lambda: [row["state"] for row in rows(node, "pair")] == ["running", "running"])


@pytest.mark.parametrize(("flags", "status", "why"), REFUSED)
def test_what_cannot_be_is_one_sentence(
    two_cards: Node, flags: tuple[str, ...], status: int, why: str
) -> None:
    """R6: 76 when berthd refuses, 64 when what was typed makes no sense; nothing is started."""
    run = two_cards.berth("run", *flags, "--", "echo", "started")
    assert (run.returncode, run.stdout) == (status, "")
    lines = run.stderr.splitlines()
    assert why in lines[0]
    assert all(line.startswith("berth: ") for line in lines)
    assert len(lines) <= 2, "one sentence, and what to do"
    assert not two_cards.status()["waiting"]
