"""Scripts that lease with `berth.lease`: a real berthd, its restarts, their own ends."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import berth
from berth.client import Lease
from tests.system.node import Node, Sampler, wait_for

pytestmark = pytest.mark.system

TAKING_TURNS = str(Path(__file__).with_name("taking_turns.py"))
ROUNDS = 11


def script(node: Node, *arguments: str) -> "subprocess.Popen[str]":
    """Start a Python program on the node."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=node.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    node.processes.append(process)
    return process


def holding(node: Node, body: str, name: str = "script") -> "subprocess.Popen[str]":
    """Start a script that leases 20000 MiB and does `body` with it; return once it holds."""
    code = f"import berth\nwith berth.lease(needs_mib=20000, name={name!r}) as lease:\n    {body}\n"
    process = script(node, "-c", code)
    node.wait_state(name, "running")
    return process


WAITS = "import threading; threading.Event().wait(60)"


@pytest.mark.parametrize("second", ["threads", "async"])
def test_two_scripts_give_way_to_each_other_and_never_overlap(node: Node, second: str) -> None:
    """S5: the card goes back and forth at their own boundaries; nobody loads beside the other."""
    sampler = Sampler(node.sim, 24576)
    sampler.start()
    one = script(node, TAKING_TURNS, "one", str(ROUNDS))
    two = script(node, TAKING_TURNS, "two", str(ROUNDS), second)
    told = one.communicate(timeout=60.0)[0] + two.communicate(timeout=60.0)[0]
    sampler.stop()
    assert (one.returncode, two.returncode) == (0, 0), told
    assert sampler.overdrawn == []
    assert sampler.samples > 100
    turns = [line.split()[:2] for line in told.splitlines()]
    assert len(turns) == len({tuple(turn) for turn in turns}) >= 2 * ROUNDS - 1, told
    # Who has given way for the last time comes back once more, to leave.
    assert 0 <= len(node.events("lease.granted")) - len(turns) <= 2
    assert node.events("lease.contested", "lease.stuck") == []
    node.wait_gone("one")
    node.wait_gone("two")


def test_scripts_go_on_taking_turns_when_berthd_is_killed_among_them(node: Node) -> None:
    """S6: the holder attaches, the waiter finds its place, and no turn is lost or doubled."""
    sampler = Sampler(node.sim, 24576)
    sampler.start()
    one = script(node, TAKING_TURNS, "one", str(ROUNDS))
    two = script(node, TAKING_TURNS, "two", str(ROUNDS))
    assert one.stdout is not None
    for _ in range(ROUNDS // 2):
        one.stdout.readline()
    node.kill()
    node.start()
    told = one.communicate(timeout=60.0)[0] + two.communicate(timeout=60.0)[0]
    sampler.stop()
    assert (one.returncode, two.returncode) == (0, 0), told
    assert sampler.overdrawn == []
    assert f"two {ROUNDS - 1}" in told or f"one {ROUNDS - 1}" in told
    node.wait_gone("one")
    node.wait_gone("two")


def test_waiting_script_keeps_its_place_and_its_wait_over_a_restart(node: Node) -> None:
    """S6: it asks again under its key, with what it has waited."""
    holder = holding(node, WAITS, "holder")
    waiter = script(node, TAKING_TURNS, "waiter", "1")
    wait_for(lambda: (w := node.waiter("waiter")) and w["waited_s"] > 1.0)
    node.kill()
    node.start()
    again = wait_for(lambda: node.waiter("waiter"))
    assert again["waited_s"] > 1.0
    node.wait_state("holder", "draining")
    holder.kill()
    assert waiter.stdout is not None
    assert waiter.stdout.readline().startswith("waiter 0")


def test_memory_of_the_script_and_its_children_counts_to_its_lease(node: Node) -> None:
    """The process that asked is the holder; what it starts belongs to it (B6)."""
    claim = ", ".join(repr(word) for word in node.claiming(9000, "sleep", "60"))
    holding(node, f"import subprocess; subprocess.run([{claim}])")
    wait_for(lambda: node.lease("script")["used_mib"] == 9000)  # type: ignore[index]
    assert node.status()["stowaways"] == []


def test_script_that_crashes_gives_its_card_back_by_dying(node: Node) -> None:
    """S5: no wrapper, no release; the kernel says that it is gone."""
    crashing = holding(node, WAITS)
    crashing.kill()
    node.wait_gone("script")


def test_error_in_the_block_releases_and_is_raised(node: Node) -> None:
    """The lease is no reason to lose a traceback."""
    failed = script(
        node, "-c", "import berth\nwith berth.lease(needs_mib=100) as lease:\n    1 / 0\n"
    )
    assert "ZeroDivisionError" in failed.communicate(timeout=30.0)[0]
    assert [event["name"] for event in node.events("lease.released")] == ["python"]


def test_interrupted_script_releases_and_ends_as_interrupted(node: Node) -> None:
    """Ctrl-C reaches the script itself, whichever of its threads is at work."""
    process = holding(node, WAITS)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=30.0)[0]
    assert process.returncode == -signal.SIGINT
    assert node.events("lease.released")[0]["why"] == "given back"


@pytest.mark.parametrize("flag", ["threads", "async"])
def test_interrupted_waiter_withdraws(node: Node, flag: str) -> None:
    """Ctrl-C in the queue: the request is gone when the script is."""
    holding(node, WAITS, "holder")
    waiter = script(node, TAKING_TURNS, "waiter", "1", flag)
    wait_for(lambda: node.waiter("waiter"))
    waiter.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in waiter.communicate(timeout=30.0)[0]
    assert node.waiter("waiter") is None
    assert node.events("lease.withdrawn")[0]["why"] == "its client withdrew it"


def test_stopped_script_is_terminated_and_nobody_else_is(node: Node) -> None:
    """S5: `berth stop` sends SIGTERM to that pid alone."""
    process = holding(node, WAITS)
    assert node.berth("stop", "script").returncode == 0
    process.communicate(timeout=30.0)
    assert process.returncode == -signal.SIGTERM
    node.wait_gone("script")


def test_script_that_outlives_its_stop_is_told_when_it_gives_way(node: Node) -> None:
    """It caught SIGTERM to end in order: give_way says that the card does not come back."""
    body = (
        "import signal; signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "    print(lease.id, flush=True); lease.wait_wanted(30)\n"
        "    lease.give_way()"
    )
    process = holding(node, body)
    assert process.stdout is not None
    process.stdout.readline()
    node.berth("stop", "script")
    assert "LeaseStopped: script was stopped by a person" in process.communicate(timeout=30.0)[0]


def test_forked_child_neither_releases_nor_gives_way(node: Node) -> None:
    """A data loader forks: its workers leave the block too, and the lease stays its parent's."""
    code = (
        "import berth, os\n"
        "with berth.lease(needs_mib=100) as lease:\n"
        "    if os.fork() == 0:\n"
        "        try:\n"
        "            lease.give_way()\n"
        "        except berth.LeaseRefused as refused:\n"
        "            print(refused.code, flush=True)\n"
        "    else:\n"
        "        os.wait(); print(berth.status().leases[0].state, flush=True)\n"
    )
    told = script(node, "-c", code).communicate(timeout=30.0)[0]
    assert told.split() == ["not_yours", "running"]
    assert len(node.events("lease.released")) == 1


def test_forked_child_may_take_what_its_parent_was_going_to_ask_for(node: Node) -> None:
    """A pool of workers that forks: each has a lease of its own, and its parent too."""
    code = (
        "import berth, os\n"
        "asked = berth.lease(needs_mib=100, wait_s=20)\n"
        "child = os.fork()\n"
        "with asked as lease:\n"
        "    print(lease.id, flush=True)\n"
        "    if child: os.wait()\n"
    )
    told = script(node, "-c", code).communicate(timeout=30.0)[0]
    assert sorted(told.split()) == ["L1", "L2"]
    wait_for(lambda: len(node.events("lease.freed")) == 2)


def test_refusals_are_raised_with_code_sentence_and_kind(node: Node) -> None:
    """A script can tell what would help: another size, or a longer wait."""
    with pytest.raises(berth.LeaseRefused, match="more than gpu0 can hand out") as too_big:
        berth.lease(needs_mib=99999, socket=node.socket).take()
    assert too_big.value.code == "too_big"
    assert not isinstance(too_big.value, berth.WaitExpired)
    with pytest.raises(berth.LeaseRefused, match="no card gpu7 on this node"):
        berth.lease(cards="gpu7", socket=node.socket).take()
    with pytest.raises(berth.LeaseRefused, match="priority 'urgent' is none of"):
        berth.lease(priority="urgent", socket=node.socket).take()
    holding(node, WAITS, "holder")
    with pytest.raises(berth.WaitExpired, match="no room on gpu0") as expired:
        berth.lease(needs_mib=20000, wait_s=0.2, socket=node.socket).take()
    assert "wait_s" in expired.value.hint
    assert "--wait" not in expired.value.hint


def test_no_berthd_is_told_at_once_with_the_way_out(make_node: Callable[..., Node]) -> None:
    """R4, in a script's words."""
    node = make_node()
    with pytest.raises(berth.NoBerth, match="no berthd answers") as nobody:
        berth.lease(socket=node.socket).take()
    assert "berth daemon" in nobody.value.hint
    with pytest.raises(berth.NoBerth):
        berth.status(socket=node.socket)
    with pytest.raises(berth.NoBerth):
        berth.events(socket=node.socket)


def test_released_lease_says_so_and_may_be_released_again(node: Node) -> None:
    """A notebook's cells are run in any order."""
    lease = berth.lease(needs_mib=100, name="notebook", socket=node.socket).take()
    assert isinstance(lease, Lease)
    assert (lease.name, lease.cards[0].card, lease.wanted) == ("notebook", "gpu0", False)
    assert not lease.give_way()
    lease.release()
    lease.release()
    with pytest.raises(berth.LeaseRefused, match="holds no lease"):
        _ = lease.id
    assert not lease.wait_wanted(0.0)


def test_environment_shows_the_cards_unless_it_is_said_already(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M3: the cards' UUIDs, in the order of the lease."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with berth.lease(needs_mib=100, socket=node.socket) as lease:
        assert lease.environment() == {"CUDA_VISIBLE_DEVICES": lease.cards[0].uuid}
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
        assert lease.environment() == {}


def test_script_may_lease_several_cards_and_gives_all_of_them_away(
    make_node: Callable[..., Node],
) -> None:
    """M2: one lease, both cards; the drain of either asks for both."""
    node = make_node({"total_mib": 24576}, {"total_mib": 16384})
    node.start()
    sizes, both = [20000, 9000], ["gpu1", "gpu0"]
    with berth.lease(needs_mib=sizes[::-1], cards=both, socket=node.socket) as lease:
        assert [card.card for card in lease.cards] == both
        urgent = node.run("--gpu", "gpu1", "--priority", "foreground", "--", "echo", "mine")
        assert lease.wait_wanted(20.0)
        assert lease.give_way()
        assert urgent.communicate(timeout=20.0)[0] == b"mine\n"
        assert [card.card for card in lease.cards] == both


def test_callback_is_told_that_the_card_is_wanted(node: Node) -> None:
    """For a script that has a loop of its own; a callback that fails does not end the lease."""
    told: list[str] = []

    def wanted(lease: "berth.client.Holder") -> None:
        told.append(lease.wanted_why)
        raise RuntimeError("a bug in a script's callback")

    with berth.lease(needs_mib=20000, socket=node.socket, on_wanted=wanted) as lease:
        lease.served()
        script(node, TAKING_TURNS, "other", "1")
        assert lease.wait_wanted(20.0)
        wait_for(lambda: told)
        assert told == ["for other"]
        assert lease.wanted


def test_events_come_without_a_gap_over_a_restart_of_berthd(node: Node) -> None:
    """W3: `seq` rises by one, whatever the PUB socket has lost."""
    heard = berth.events(since=0, socket=node.socket)
    first = next(heard)
    assert first.seq == 1
    for name in ("before", "after"):
        with berth.lease(needs_mib=100, name=name, socket=node.socket):
            pass
        seqs = [first.seq]
        for event in heard:
            seqs.append(event.seq)
            if (event.kind, event.name) == ("lease.released", name):
                break
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
        if name == "before":
            first = event
            node.kill()
            node.start()
    heard.close()


def test_kept_events_can_be_read_by_kind(node: Node) -> None:
    """A script that looks back, and one that asks for a family of kinds."""
    with berth.lease(needs_mib=100, name="told", socket=node.socket):
        pass
    family = list(berth.events(kinds=["lease."], follow=False, socket=node.socket))
    assert [event.kind for event in family][:2] == ["lease.queued", "lease.granted"]
    granted = list(berth.events(kinds=["lease.granted"], follow=False, socket=node.socket))
    assert [event.facts["mib"] for event in granted] == [100]


def test_status_is_typed(node: Node) -> None:
    """A script reads fields, and its checker knows them."""
    shown = berth.status(socket=node.socket)
    assert shown.node.pid == node.daemon.pid  # type: ignore[union-attr]
    assert shown.cards[0].total_mib == 24576


def test_import_of_berth_stays_quick() -> None:
    """The command line imports `berth` first: scripts' needs must not slow it down."""
    code = "import berth, sys; print({'zmq', 'msgspec', 'asyncio'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_function_and_module_of_the_same_name_stand_side_by_side() -> None:
    """`berth.lease(…)` is the public name; `berth/lease.py` holds the states of a lease."""
    code = (
        "import berth\nfrom berth.lease import EDGES\nassert callable(berth.lease) and EDGES\n"
        "import berth.actors.card.core\nassert callable(berth.lease)\n"
        "from berth import lease\nassert lease is berth.lease\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30.0)


def test_what_is_not_there_is_an_attribute_error() -> None:
    """A typing mistake gets Python's own words."""
    for name in ("leese", "_private"):
        assert not hasattr(berth, name)
        assert not hasattr(berth.client, name)
