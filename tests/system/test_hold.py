"""A person takes the card, stops an engine, gives a stuck lease up: the real commands."""

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.system.node import BERTH, Node, wait_for


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_hold_waits_for_the_card_and_stays_over_a_restart_until_released(node: Node) -> None:
    """Q1: a job is stopped for a person; the hold outlives its command and berthd."""
    node.run("--as", "train", "--", "sleep", "100")
    node.wait_state("train", "running")
    taken = node.berth("hold", "--reason", "a game", "--for", "1h")
    assert taken.returncode == 0, taken.stderr
    assert "you hold gpu0 for 1h00m" in taken.stdout
    assert "train" in taken.stderr
    row = node.wait_state("hold", "running")
    assert row["priority"] == "hold"
    assert row["note"].startswith("a game; held by a person for ")
    node.kill()
    node.start()
    row = node.wait_state("hold", "running")
    assert 3000 < row["left_s"] <= 3600
    node.run("--as", "late", "--", "true")
    waiter = wait_for(lambda: node.waiter("late"))
    assert waiter["blockers"][0]["how"] == "held"
    assert node.berth("release").stdout == f"released {row['lease']}\n"
    node.wait_gone("hold")
    wait_for(lambda: node.waiter("late") is None)
    assert node.berth("release").stdout == "nobody holds a card\n"


def test_hold_that_nobody_waits_for_keeps_its_place_over_a_restart(node: Node) -> None:
    """Q1: `--no-wait`; berthd is killed, then stopped, and the hold waits on under its number."""
    running = node.run("--as", "busy", "--fail-closed", "--", "sleep", "100")
    node.wait_state("busy", "running")
    assert node.berth("hold", "--no-wait", "--reason", "a game").returncode == 0
    wait_for(lambda: node.waiter("hold"))
    node.kill()
    node.start()
    wait_for(lambda: node.waiter("hold"))
    node.wait_state("busy", "running")
    node.stop()
    node.start()
    row = wait_for(lambda: node.waiter("hold"))
    node.wait_state("busy", "running")
    running.terminate()
    lease = node.wait_state("hold", "running")
    assert lease["lease"] == row["request"].replace("r", "L")
    assert lease["note"].startswith("a game")
    node.kill()
    node.start()
    node.wait_state("hold", "running")
    assert node.waiter("hold") is None


def test_hold_ends_by_itself_when_its_time_is_over(node: Node) -> None:
    """Q1: `--for`; nobody has to remember."""
    node.berth("hold", "--for", "0.5s")
    node.wait_gone("hold")
    assert node.events("lease.released")[-1]["why"] == "its time is over"


def test_interrupt_while_a_hold_waits_takes_it_back(node: Node) -> None:
    """Ctrl-C: exit 130, and the engine that was asked runs on."""
    node.run("--as", "busy", "--fail-closed", "--", "sleep", "100")
    node.wait_state("busy", "running")
    waiting = node.popen("hold")
    wait_for(lambda: node.waiter("hold"))
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=20.0) == 130
    assert node.waiter("hold") is None
    assert node.events("lease.withdrawn")[-1]["why"] == "its client withdrew it"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_does_not_wait_any_longer_keeps_no_card_of_several(
    make_node: Callable[..., Node], number: signal.Signals
) -> None:
    """At the moment its prompt is back nobody gives way for it, and the card it had is free."""
    node = make_node({"total_mib": 16000}, {"total_mib": 16000})
    node.start()
    node.run("--as", "busy", "--gpu", "gpu1", "--fail-closed", "--", "sleep", "100")
    node.wait_state("busy", "running")
    waiting = subprocess.Popen(
        [*BERTH, "hold", "all"], env=node.environment, stderr=subprocess.PIPE, text=True
    )
    node.wait_state("hold", "running")
    wait_for(lambda: node.waiter("hold-2"))
    waiting.send_signal(number)
    _, said = waiting.communicate(timeout=20.0)
    assert waiting.returncode == 128 + number
    assert said.splitlines()[-1] == "berth: withdrawn"
    assert node.waiter("hold-2") is None
    node.wait_gone("hold")
    node.wait_state("busy", "running")


def test_hold_that_is_not_waited_for_stays_in_line(node: Node) -> None:
    """`--no-wait`: the command is over at once, its request is not; release withdraws it."""
    node.run("--as", "busy", "--fail-closed", "--", "sleep", "100")
    node.wait_state("busy", "running")
    assert node.berth("hold", "all", "--no-wait").returncode == 0
    assert wait_for(lambda: node.waiter("hold"))["wait_left_s"] is None
    assert node.berth("release", "gpu0").stdout.startswith("withdrew r")
    wait_for(lambda: node.waiter("hold") is None)


def test_wrong_targets_are_told_in_a_sentence(node: Node) -> None:
    """M1: an unknown card by name; a lease that is no hold with what ends it."""
    unknown = node.berth("hold", "gpu7")
    assert (unknown.returncode, unknown.stderr.splitlines()[0]) == (
        76,
        "berth: no card gpu7 on this node",
    )
    node.run("--as", "chat", "--", "sleep", "100")
    lease = node.wait_state("chat", "running")["lease"]
    refused = node.berth("release", lease)
    assert f"{lease} is no hold but the lease of chat" in refused.stderr
    at_work = node.berth("reclaim", "chat")
    assert "chat is at work" in at_work.stderr
    assert node.wait_state("chat", "running")
    assert node.berth("hold", "--for", "soon").returncode == 64


def test_reclaim_kills_the_tree_of_a_holder_that_does_not_answer(
    make_node: Callable[..., Node],
) -> None:
    """H4: nothing of it lives on, the lease is closed, and the next is served by the reading."""
    node = make_node()
    node.start()
    pids = node.folder / "pid"
    command = f"echo $$ > {pids}; trap '' TERM; while :; do sleep 0.1; done"
    run = node.run(
        "--as", "deaf", "--grace", "600s", "--", *node.claiming(9000, "sh", "-c", command)
    )
    node.wait_state("deaf", "running")
    wait_for(lambda: pids.exists() and pids.read_text().strip())
    child = int(pids.read_text())
    node.berth("stop", "deaf")
    node.wait_state("deaf", "draining")
    reclaimed = node.berth("reclaim", "deaf")
    assert reclaimed.returncode == 0, reclaimed.stderr
    node.wait_gone("deaf")
    assert run.wait(timeout=20.0) == -signal.SIGKILL
    wait_for(lambda: not lives(child))
    assert node.events("lease.reclaimed")
    after = node.berth("run", "--needs-mib", "20000", "--wait", "15s", "--", "true")
    assert after.returncode == 0, after.stderr


def test_stop_now_asks_on_a_terminal_and_no_means_no(node: Node) -> None:
    """H6: cutting replies is not undone; a script is not asked."""
    node.run("--as", "chat", "--", "sleep", "100")
    node.wait_state("chat", "running")
    master, slave = pty.openpty()
    asked = subprocess.Popen(
        [*BERTH, "stop", "chat", "--now"],
        env=node.environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    os.write(master, b"n\n")
    assert asked.wait(timeout=20.0) == 130
    shown = os.read(master, 4096).decode()
    os.close(master)
    assert re.search(r"Stop chat now, and cut", shown)
    assert node.wait_state("chat", "running")
    assert node.berth("stop", "chat", "--now").returncode == 0
    node.wait_gone("chat")


def test_hold_and_release_speak_the_protocol(node: Node) -> None:
    """Spec 16: a script in any language can take the card for a person."""
    shown = node.berth("status", "--format", "json")
    assert json.loads(shown.stdout)["leases"] == []
    node.berth("hold", "--needs-mib", "4000")
    row = node.wait_state("hold", "running")
    assert row["ask_mib"] == 4000
    side = node.berth("run", "--needs-mib", "10000", "--wait", "10s", "--", "true")
    assert side.returncode == 0, side.stderr
