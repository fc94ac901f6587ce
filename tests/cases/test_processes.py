"""Fights over a card that are about processes, names and starts: played with real ones."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.played import case
from tests.system.node import BERTH, Node, wait_for

pytestmark = pytest.mark.system


@pytest.fixture
def node_of(make_node: Callable[..., Node]) -> Callable[[str], Node]:
    """Return a maker of the node of a case, with its cards."""

    def make(number: str) -> Node:
        node = make_node(*(_declared(card) for card in case(number)["cards"]))
        node.start()
        return node

    return make


def _declared(card: dict[str, Any]) -> dict[str, Any]:
    shown = {"total_mib": card["mib"], "baseline_mib": card.get("baseline", 0)}
    names = {"uuid": card.get("uuid"), "pci": card.get("bus")}
    return {**shown, **{key: value for key, value in names.items() if value is not None}}


def test_hs12_card_whose_memory_cannot_be_read_is_named_and_grants_nothing(
    make_node: Callable[..., Node],
) -> None:
    """A size that is not known is not 0: no card of no memory, of which nothing is used."""
    entry = case("HS12")["engines"]["x"]
    node = make_node({"total_mib": 8192, "error": "no_memory"})
    node.start()
    (card,) = node.status()["cards"]
    figures = ("total_mib", "used_mib", "free_mib", "capacity_mib")
    assert (card["state"], [card[key] for key in figures]) == ("unmeasured", [None] * 4)
    asked = ("--needs-mib", str(entry["mib"]), "--priority", entry["class"], "--wait", "1s")
    run = node.berth("run", *asked, "--", "echo", "started")
    assert (run.returncode, run.stdout) == (75, "")
    assert "gpu0 cannot be read" in run.stderr


def test_hs13_engine_under_a_script_does_not_outlive_its_lease(
    node_of: Callable[[str], Node],
) -> None:
    """SIGTERM to the group, which it ignores, then SIGKILL: what is left of the tree is ended."""
    node = node_of("HS13")
    mib = case("HS13")["engines"]["m"]["mib"]
    engine = node.claiming(mib, "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
    script = node.folder / "script"
    script.write_text(f"trap '' TERM\n{' '.join(map(_quoted, engine))}\necho after\n")
    run = node.run("--as", "m", "--needs-mib", str(mib), "--", "bash", str(script))
    wait_for(lambda: (node.lease("m") or {}).get("used_mib") == mib)
    (pid,) = node.wait_state("m", "running")["pids"]
    os.killpg(run.pid, signal.SIGTERM)
    assert _accounted(node, pid), "it lives on, under its lease"
    os.killpg(run.pid, signal.SIGKILL)
    run.wait(timeout=20.0)
    wait_for(lambda: _accounted(node, pid) and not _lives(pid), why="berthd ends it")
    node.wait_gone("m")
    (freed,) = node.events("lease.freed")
    assert (freed["name"], node.status()["cards"][0]["used_mib"]) == ("m", 0)


def _accounted(node: Node, pid: int) -> bool:
    """Never is the engine alive without a lease and without a row. Fails where it is."""
    status = node.status()
    shown = [number for row in status["leases"] for number in row["pids"]]
    shown += [row["pid"] for row in status["stowaways"]]
    leased = any(row["name"] == "m" for row in status["leases"])
    assert leased or pid in shown or not _lives(pid), f"{pid} runs, and nobody knows: {status}"
    return True


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def test_hs14_second_start_waits_for_the_exit_of_the_first(node_of: Callable[[str], Node]) -> None:
    """An engine that ends slowly and is wanted again at once: one lease of that name at a time."""
    node = node_of("HS14")
    entry = case("HS14")["engines"]["q"]
    each = entry["mib"] // len(entry["cards"])
    held = node.folder / "container"
    slow = f"trap 'sleep 2; rmdir {held}; exit 0' TERM; while :; do sleep 0.05; done"
    command = ["sh", "-c", f"mkdir {held} || exit 125; {slow}"]
    for card in range(len(entry["cards"])):
        command = node.claiming(each, *command, card=card)
    asked = ("--as", "q", "--gpu", ",".join(entry["cards"]), "--needs-mib", str(each))

    def ask() -> "subprocess.Popen[bytes]":
        return node.run(*asked, "--wait", "60s", "--grace", "20s", "--", *command)

    first = ask()
    wait_for(held.exists)
    before = node.wait_state("q", "running")["lease"]
    first.send_signal(signal.SIGTERM)
    second = ask()
    waiting = wait_for(lambda: node.waiter("q"))
    assert (waiting["code"], first.poll()) == ("same_name", None)
    assert {row["lease"] for row in node.status()["leases"]} == {before}
    assert first.wait(timeout=20.0) == 0
    wait_for(held.exists, why="the second has the container's name")
    leases = wait_for(lambda: {row["lease"] for row in node.status()["leases"]})
    assert (len(leases), leases == {before}, second.poll()) == (1, False, None)
    told = [
        (event["kind"], event["lease"]) for event in node.events("lease.freed", "lease.granted")
    ]
    assert told[:4] == [("lease.granted", before)] * 2 + [("lease.freed", before)] * 2
    assert told[4:] == [("lease.granted", leases.pop())] * 2


@pytest.mark.parametrize("gpu", ["gpu1", "1", "09:00.0", "0000:09:00.0", "00000000:09:00.0"])
def test_hs15_card_is_the_one_that_was_named(node_of: Callable[[str], Node], gpu: str) -> None:
    """By its index or its address in either width, whatever order CUDA counts in; shown by UUID."""
    node = node_of("HS15")
    mib = case("HS15")["engines"]["e"]["mib"]
    shown = node.folder / "shown"
    command = ["sh", "-c", f'printf %s "$CUDA_VISIBLE_DEVICES" > {shown}; exec sleep 1000']
    asked = ("--as", "e", "--gpu", gpu, "--needs-mib", str(mib))
    node.run(*asked, "--", *node.claiming(mib, *command, card=1))
    wait_for(lambda: shown.exists() and shown.read_text() == "GPU-B")
    wait_for(lambda: (node.lease("e") or {}).get("used_mib") == mib)
    (lease,) = node.status()["leases"]
    assert (lease["card"], lease["cards"]) == ("gpu1", ["gpu1"])
    assert [card["used_mib"] for card in node.status()["cards"]] == [0, mib]


def test_hs15_environment_that_names_cards_is_left_alone(node_of: Callable[[str], Node]) -> None:
    """M3: whoever has set it knows why."""
    node = node_of("HS15")
    environment = {**node.environment, "CUDA_VISIBLE_DEVICES": "GPU-A"}
    say = ("sh", "-c", 'printf %s "$CUDA_VISIBLE_DEVICES"')
    run = node.berth("run", "--gpu", "gpu1", "--needs-mib", "9000", "--", *say, env=environment)
    assert (run.returncode, run.stdout) == (0, "GPU-A")


def test_hs20_berthd_starts_over_what_a_killed_one_left(node_of: Callable[[str], Node]) -> None:
    """Socket, lock and journal lie there: no person has to delete a file; the engine runs on."""
    node = node_of("HS20")
    mib = case("HS20")["engines"]["e"]["mib"]
    run = node.run("--as", "e", "--needs-mib", str(mib), "--", *node.claiming(mib, "sleep", "1000"))
    wait_for(lambda: (node.lease("e") or {}).get("used_mib") == mib)
    before = node.wait_state("e", "running")
    node.kill()
    assert node.socket.exists(), "what a killed one leaves"
    assert list((node.folder / "state").iterdir()) != []
    assert subprocess.run([*BERTH, "status"], env=node.environment, check=False).returncode == 69
    assert run.poll() is None
    node.start()
    after = node.wait_state("e", "running")
    assert [after[key] for key in ("lease", "pids")] == [before[key] for key in ("lease", "pids")]
    assert run.poll() is None
