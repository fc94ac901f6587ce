"""`berth run` around real commands: what passes through, what it exits with, what it leaves."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.system.node import BERTH, Node, wait_for

pytestmark = pytest.mark.system

PYTHON = sys.executable


def test_status_of_the_command_is_the_status_of_the_run(node: Node) -> None:
    """R6: a script around it sees what it would have seen without Berth."""
    assert node.berth("run", "--", "sh", "-c", "exit 0").returncode == 0
    assert node.berth("run", "--", "sh", "-c", "exit 7").returncode == 7
    assert node.berth("run", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_command_that_is_not_there_is_127_and_one_not_executable_126(node: Node) -> None:
    """R6: as a shell says it, with one sentence and no traceback; the lease is gone again."""
    missing = node.berth("run", "--", "/no/such/command")
    assert missing.returncode == 127
    assert missing.stderr == "berth: /no/such/command: No such file or directory\n"
    plain = node.folder / "plain"
    plain.write_text("not a program")
    assert node.berth("run", "--", str(plain)).returncode == 126
    wait_for(lambda: not node.status()["leases"])


def test_megabyte_through_stdout_and_binary_stdin_pass_untouched(node: Node) -> None:
    """R1: stdin, stdout and stderr are the command's own, byte for byte."""
    payload = os.urandom(1 << 20)
    through = subprocess.run(
        [*BERTH, "run", "--", PYTHON, "-c", _COPY],
        env=node.environment,
        input=payload,
        capture_output=True,
        timeout=60.0,
        check=True,
    )
    assert through.stdout == payload
    assert through.stderr == b"its own words\n"


_COPY = (
    "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer); "
    "print('its own words', file=sys.stderr)"
)


def test_signals_reach_the_command(node: Node) -> None:
    """R1: what is sent to the wrapper is sent on to the command's group, which decides."""
    script = "trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.05; done"
    run = node.run("--", "bash", "-c", script)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGUSR1)
    assert run.stdout.readline() == b"got it\n"
    assert run.wait(timeout=20.0) == 5


def test_sigterm_to_the_wrapper_ends_the_command_with_its_own_status(node: Node) -> None:
    """R6: it was not Berth's signal, so it is 128 + 15 and not 143 by Berth's doing."""
    run = node.run("--", "sleep", "100")
    node.wait_state("sleep", "running")
    run.terminate()
    assert run.wait(timeout=20.0) == 128 + 15
    node.wait_gone("sleep")


def test_interrupt_while_queued_withdraws(node: Node) -> None:
    """R1: Ctrl-C while it waits takes the request back: exit 130, nothing was run."""
    node.run("--as", "holder", "--", "sleep", "100")
    node.wait_state("holder", "running")
    mark = node.folder / "ran"
    waiting = node.run("--as", "late", "--", "touch", str(mark))
    wait_for(lambda: node.waiter("late"))
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=20.0) == 130
    wait_for(lambda: node.waiter("late") is None)
    assert not mark.exists()
    assert node.events("lease.withdrawn")


def test_waiter_is_told_why_and_refused_when_its_wait_runs_out(node: Node) -> None:
    """Q3, R6: exit 75, with who stood in its way."""
    node.run("--as", "holder", "--", "sleep", "100")
    node.wait_state("holder", "running")
    late = node.berth("run", "--as", "late", "--wait", "1s", "--", "true")
    assert late.returncode == 75
    assert "holder is a job and runs to its end" in late.stderr
    assert "wait_expired" in late.stderr


def test_unknown_card_and_a_lease_larger_than_its_card_are_refused_at_once(node: Node) -> None:
    """R6, M1: exit 76, the name and what there is; the size and what the card has."""
    unknown = node.berth("run", "--gpu", "gpu7", "--", "true")
    assert unknown.returncode == 76
    assert "no card gpu7 on this node" in unknown.stderr
    assert "gpu0" in unknown.stderr
    large = node.berth("run", "--needs-mib", "30000", "--", "true")
    assert large.returncode == 76
    assert "29.3 GiB is more than gpu0 can hand out (23.6 GiB)" in large.stderr


def test_command_sees_its_card_only_when_it_names_one(node: Node) -> None:
    """M3: the UUID is shown, never over what the environment says already."""
    shown = ("sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}")
    assert node.berth("run", "--", *shown).stdout == "unset\n"
    assert node.berth("run", "--gpu", "0000:01:00.0", "--", *shown).stdout == "SIM-0\n"
    named = {**node.environment, "CUDA_VISIBLE_DEVICES": "3"}
    assert node.berth("run", "--gpu", "0", "--", *shown, env=named).stdout == "3\n"


def test_killed_wrapper_takes_its_whole_tree_and_frees_the_card(node: Node) -> None:
    """R5: the command dies with it, and so do a daemon that left its session and its children."""
    pids = node.folder / "pids"
    family = str(Path(__file__).with_name("family.py"))
    run = node.run("--as", "tree", "--", *node.claiming(9000, PYTHON, family, str(pids)))
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 3)
    node.wait_state("tree", "running")
    members = [int(pid) for pid in pids.read_text().split()]
    run.kill()
    run.wait(timeout=20.0)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in members), why="all are dead")
    node.wait_gone("tree")
    assert node.status()["cards"][0]["used_mib"] == 421


def test_killed_berthd_leaves_engines_alone_and_grants_nothing_over_them(node: Node) -> None:
    """R4, S6: engines run on, come back under their old leases, and count as before."""
    run = node.run(
        "--as", "chat", "--needs-mib", "20000", "--", *node.claiming(20000, "sleep", "100")
    )
    before = node.wait_state("chat", "running")
    node.kill()
    assert run.poll() is None
    node.start()
    late = node.run("--as", "late", "--needs-mib", "20000", "--priority", "batch", "--", "true")
    after = node.wait_state("chat", "running")
    assert after["lease"] == before["lease"]
    wait_for(lambda: node.waiter("late"))
    assert run.poll() is None
    run.terminate()
    assert late.wait(timeout=20.0) == 0
    freed = [e["name"] for e in node.events("lease.freed", "lease.granted")]
    assert freed == ["chat", "chat", "late", "late"]


def test_waiter_keeps_its_place_over_a_killed_berthd(node: Node) -> None:
    """S6: a waiter asks again with its own key, and never turns unprotected (R4)."""
    run = node.run("--as", "chat", "--", *node.claiming(20000, "sleep", "100"))
    node.wait_state("chat", "running")
    mark = node.folder / "ran"
    late = node.run("--as", "late", "--", "touch", str(mark))
    wait_for(lambda: node.waiter("late"))
    node.kill()
    node.start()
    wait_for(lambda: node.waiter("late"), why="late waits again")
    assert not mark.exists()
    run.terminate()
    assert late.wait(timeout=20.0) == 0
    assert mark.exists()


def test_what_a_command_leaves_behind_keeps_its_lease_while_it_holds_memory(node: Node) -> None:
    """R9: a start script that ends well keeps the card for the engine that it put behind itself."""
    pid_file = node.folder / "pid"
    claim = " ".join(node.claiming(9000, "sleep", "100"))
    run = node.run("--as", "script", "--", "sh", "-c", f"{claim} & echo $! > {pid_file}; sleep 0.5")
    wait_for(lambda: node.status()["cards"][0]["used_mib"] == 9421)
    engine = int(pid_file.read_text())
    pause = threading.Event()
    pause.wait(2.0)
    assert run.poll() is None
    assert node.lease("script") is not None
    os.kill(engine, signal.SIGKILL)
    assert run.wait(timeout=20.0) == 0
    node.wait_gone("script")


def test_engine_that_loads_after_its_start_command_has_ended_has_the_card(node: Node) -> None:
    """R9: a command that daemonises ends before its engine has any memory."""
    claim = " ".join(node.claiming(9000, "sleep", "100"))
    run = node.run("--as", "script", "--", "sh", "-c", f"(sleep 3; exec {claim}) & exit 0")
    wait_for(lambda: node.status()["cards"][0]["used_mib"] == 9421)
    (row,) = node.status()["leases"]
    assert (row["name"], row["used_mib"], run.poll()) == ("script", 9000, None)
    run.terminate()
    node.wait_gone("script")


def test_what_a_failed_command_leaves_behind_is_stopped(node: Node) -> None:
    """R9: after a failure the leftovers get SIGTERM, and SIGKILL when they ignore it."""
    stubborn = (
        f"{PYTHON} -c 'import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(99)'"
    )
    run = node.run(
        "--as", "bad", "--grace", "1s", "--", "sh", "-c", f"{stubborn} & sleep 0.5; exit 3"
    )
    assert run.wait(timeout=20.0) == 3
    wait_for(lambda: not node.status()["leases"])


def test_no_berthd_since_boot_runs_unprotected_and_attaches_later(make_node: object) -> None:
    """R4: with no berthd since boot the command runs at once, and is taken in when one comes."""
    assert callable(make_node)
    node: Node = make_node()
    run = node.run("--as", "early", "--", *node.claiming(9000, "sleep", "100"))
    wait_for(lambda: list(node.sim.glob("claims/0/*")), why="it runs without a lease")
    node.start()
    lease = node.wait_state("early", "running")
    assert lease["used_mib"] == 9000
    run.terminate()
    run.wait(timeout=20.0)
    node.wait_gone("early")
    assert run.stderr is not None
    said = run.stderr.read().decode()
    assert "running without a lease" in said
    assert "attached as L1" in said


def test_fail_closed_without_berthd_runs_nothing(make_node: object) -> None:
    """R4, R6: exit 69."""
    assert callable(make_node)
    node: Node = make_node()
    refused = node.berth("run", "--fail-closed", "--", "touch", str(node.folder / "ran"))
    assert refused.returncode == 69
    assert not (node.folder / "ran").exists()


def test_second_run_of_a_name_waits_for_the_first_and_never_drains_it(node: Node) -> None:
    """R10: one lease at a time under a name given by --as, though the card has room for two."""
    first = node.run("--as", "chat", "--needs-mib", "5000", "--", "sleep", "100")
    node.wait_state("chat", "running")
    second = node.run("--as", "chat", "--needs-mib", "5000", "--", "true")
    waiter = wait_for(lambda: node.waiter("chat"))
    assert waiter["blockers"][0]["how"] == "same_name"
    first.terminate()
    assert second.wait(timeout=20.0) == 0


def test_names_made_from_the_command_are_numbered(node: Node) -> None:
    """R1, R10: two runs of one program are told apart."""
    for name in ("sleep", "sleep-2", "sleep-3"):
        node.run("--needs-mib", "1000", "--", "sleep", "100")
        node.wait_state(name, "running")


def test_entry_of_berth_toml_gives_defaults_and_the_command(node: Node) -> None:
    """R3: with no command, `--as NAME` runs what NAME's entry starts, as it says."""
    (node.folder / "berth.toml").write_text(
        '[[engine]]\nname = "chat"\nstart = "sh -c \'echo $WHERE; pwd\'"\nneeds_mib = 2000\n'
        f'env = {{ WHERE = "harbor" }}\ncwd = "{node.sim}"\n'
    )
    ran = node.berth("run", "--as", "chat")
    assert ran.stdout.split() == ["harbor", str(node.sim)]
    asked = node.events("lease.queued")[-1]
    assert (asked["name"], asked["mib"]) == ("chat", 2000)
    nothing = node.berth("run", "--as", "other")
    assert nothing.returncode == 64
    assert 'no [[engine]] "other"' in nothing.stderr


def test_events_of_a_run_are_written_as_json(node: Node) -> None:
    """R2: `--json` gives a program what a person reads."""
    target = node.folder / "run.jsonl"
    node.berth("run", "--needs-mib", "90000", "--json", str(target), "--", "true")
    assert '"event": "refused"' in target.read_text()
    assert '"code": "too_big"' in target.read_text()
