"""berthd's door under load and abuse: the connection lives on, or only that one ends."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import zmq

from tests.system.node import Node, wait_for
from tests.system.raw import Raw

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"\xff\x00 garbage", "not a JSON object"),
        (b"", "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"v":1,"id":"x","op":"nonsense"}', "nonsense"),
        (b'{"v":2,"id":"x","op":"status"}', "speaks protocol 1"),
        (b'{"v":1,"id":"x","op":"status","colour":"red"}', "colour"),
        (b'{"v":1,"id":"x","op":"lease.request","name":7}', "name"),
    ],
)
def test_nonsense_is_answered_and_the_connection_lives_on(
    node: Node, frame: bytes, says: str
) -> None:
    """Spec 16: an error that names what is wrong; the next message is heard as ever."""
    with Raw(node.socket) as raw:
        raw.socket.send(frame)
        answer = raw.hear()
        assert (answer["ok"], answer["last"]) == (False, True)
        assert says in answer["error"]["message"]
        assert raw.call("hello")["ok"]


def test_frame_above_a_mebibyte_ends_its_own_connection_only(node: Node) -> None:
    """Spec 16: a giant frame is not even read; everybody else is served."""
    with Raw(node.socket) as giant, Raw(node.socket) as other:
        giant.send("status", padding="x" * (2 << 20))
        assert other.call("hello")["ok"]
        assert not giant.socket.poll(500)
        assert giant.call("hello")["ok"], "it connects anew, and may speak again"


def test_bytes_that_are_no_zeromq_do_not_disturb_the_door(node: Node) -> None:
    """Anything can connect to a socket of ours: a browser, a mistaken tool."""
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(node.socket))
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
    assert node.status()["node"]["version"]


def test_five_hundred_clients_that_ask_and_vanish_leave_nothing_behind(node: Node) -> None:
    """S5: who is gone has withdrawn; the queue is empty again within two heartbeats."""
    with Raw(node.socket) as holder:
        holder.lease("holder", 24155, pinned=True, boundary=True)
        for number in range(500):
            with Raw(node.socket) as brief:
                brief.send("lease.request", name=f"brief-{number}", needs_mib=100, wait_s=600)
                brief.hear()
        wait_for(lambda: not node.status()["waiting"], why="all of them are withdrawn")
        assert len(node.status()["leases"]) == 1


def test_client_that_stops_reading_counts_as_gone_and_holds_nobody_up(node: Node) -> None:
    """S5: what waits for it is bounded; everybody else is served meanwhile."""
    with Raw(node.socket) as deaf, Raw(node.socket) as other:
        deaf.socket.set(zmq.RCVHWM, 1)
        for _ in range(5000):
            deaf.send("status")
        for _ in range(20):
            assert other.call("hello")["ok"]


def test_req_socket_will_do_for_operations_with_one_answer(node: Node) -> None:
    """Spec 16: its empty frame is accepted and mirrored."""
    with Raw(node.socket, zmq.REQ) as req:
        for _ in range(3):
            assert req.call("hello")["data"]["protocol"] == 1


def test_leases_of_another_process_are_not_ones_own(node: Node) -> None:
    """S4: who claims another's lease, or another's pids, is refused; nothing moves."""
    with Raw(node.socket) as mine:
        lease = mine.lease("mine", 1000, boundary=True)
        words = {
            "lease.release": {},
            "lease.answer": {"state": "released", "attempt": 1},
            "lease.started": {},
        }
        for op, fields in words.items():
            code = _from_another_process(node, op, {"lease": lease, **fields})
            assert code == "not_yours", op
        with_foreign_pid = mine.call("lease.started", lease=lease, pids=[1])
        assert with_foreign_pid["error"]["code"] == "not_yours"
        assert node.lease("mine") is not None


_ONE_CALL = (
    "import json, sys; from pathlib import Path; from tests.system.raw import Raw\n"
    "with Raw(Path(sys.argv[1])) as raw:\n"
    "    print(json.dumps(raw.call(sys.argv[2], **json.loads(sys.argv[3]))))\n"
)


def _from_another_process(node: Node, op: str, fields: dict[str, object]) -> str:
    call = [sys.executable, "-c", _ONE_CALL, str(node.socket), op, json.dumps(fields)]
    done = subprocess.run(
        call, env=node.environment, capture_output=True, text=True, timeout=30.0, check=True
    )
    code: str = json.loads(done.stdout)["error"]["code"]
    return code


_GHOST = (
    "import os, signal, sys; from pathlib import Path; from tests.system.raw import Raw\n"
    "raw = Raw(Path(sys.argv[1]))\n"
    "raw.send('lease.request', name='ghost', needs_mib=24000, wait_s=3600)\n"
    "os.read(0, 1)\n"
    "if os.fork() == 0:\n"
    "    os.read(0, 1); os._exit(0)\n"
    "os.kill(os.getpid(), signal.SIGKILL)\n"
)


@contextmanager
def _asking(node: Node) -> "Iterator[subprocess.Popen[bytes]]":
    """Let a process ask that can be killed while a child of it keeps its connection open."""
    asking = [sys.executable, "-c", _GHOST, str(node.socket)]
    with subprocess.Popen(asking, env=node.environment, stdin=subprocess.PIPE) as ghost:
        wait_for(lambda: node.waiter("ghost"), why="it asks")
        yield ghost


def _dies(ghost: "subprocess.Popen[bytes]", *, reaped: bool) -> None:
    assert ghost.stdin is not None
    ghost.stdin.write(b"d")
    ghost.stdin.flush()
    os.waitid(os.P_PID, ghost.pid, os.WEXITED | (0 if reaped else os.WNOWAIT))


@pytest.mark.parametrize("reaped", [True, False])
def test_waiter_whose_process_ended_has_withdrawn_though_its_connection_stands(
    node: Node, *, reaped: bool
) -> None:
    """S5: a child inherits every descriptor; the dead would come first in line for ever."""
    with ExitStack() as opened:
        job, small = (opened.enter_context(Raw(node.socket)) for _ in range(2))
        job.lease("job", 10000, pinned=True, boundary=True)
        ghost = opened.enter_context(_asking(node))
        message_id = small.send("lease.request", name="small", needs_mib=14000, wait_s=60)
        while "but then ghost" not in small.hear()["data"].get("why", ""):
            pass
        _dies(ghost, reaped=reaped)
        while not (heard := small.hear())["last"]:
            pass
        assert (heard["id"], heard["ok"]) == (message_id, True)
        (left,) = node.events("lease.withdrawn")
        assert (left["name"], left["why"]) == ("ghost", "its client is gone")


def test_hold_that_nobody_waits_for_outlives_the_command_that_asked_for_it(node: Node) -> None:
    """Q1: its process has ended as well, and that is as it should be."""
    with Raw(node.socket) as job:
        job.lease("job", 10000, boundary=True)
        assert node.berth("hold", "--no-wait").returncode == 0
        with _asking(node) as ghost:
            _dies(ghost, reaped=True)
            wait_for(lambda: not node.waiter("ghost"), why="the dead leave the line")
        assert node.waiter("hold")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_process_of_another_user_is_not_heard(node: Node) -> None:
    """S4: refused at accept, even where the file's rights would let it in."""
    node.folder.chmod(0o755)
    node.socket.chmod(0o666)
    script = (
        "import os, sys, zmq\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "dealer = zmq.Context().socket(zmq.DEALER); dealer.set(zmq.LINGER, 0)\n"
        "dealer.connect('ipc://' + sys.argv[1])\n"
        'dealer.send(b\'{"v":1,"id":"1","op":"hello"}\')\n'
        "sys.exit(7 if dealer.poll(1500) else 5)\n"
    )
    tried = subprocess.run(
        [sys.executable, "-c", script, str(node.socket)], timeout=30.0, check=False
    )
    assert tried.returncode == 5


def test_request_sent_again_with_its_key_finds_its_place_and_its_lease(node: Node) -> None:
    """S6: never a second grant for one request, however often it is asked."""
    with Raw(node.socket) as raw, Raw(node.socket) as again:
        granted = raw.call("lease.request", name="one", needs_mib=20000, key="k1", boundary=True)
        once_more = again.call("lease.request", name="one", needs_mib=20000, key="k1")
        assert granted["data"]["lease"] == once_more["data"]["lease"]
        raw.send(
            "lease.request", name="two", needs_mib=20000, key="k2", wait_s=600, priority="batch"
        )
        wait_for(lambda: node.waiter("two"))
        again.send("lease.request", name="two", needs_mib=20000, key="k2", wait_s=600)
        assert again.hear()["data"]["state"] == "queued"
        assert len(node.status()["waiting"]) == 1


def test_script_is_asked_gives_way_and_comes_back(node: Node) -> None:
    """S5: a script's lease is a few messages: any language that has ZeroMQ and JSON can do it."""
    with Raw(node.socket) as script, Raw(node.socket) as urgent:
        lease = script.lease("script", 20000, boundary=True)
        urgent.send("lease.request", name="urgent", needs_mib=20000, priority="foreground")
        order = script.order("drain")
        assert (order["lease"], order["why"]) == (lease, "for urgent")
        script.call("lease.answer", lease=lease, attempt=order["attempt"], state="heard")
        script.call("lease.answer", lease=lease, attempt=order["attempt"], state="released")
        while not (heard := urgent.hear())["last"]:
            pass
        assert heard["data"]["cards"][0]["card"] == "gpu0"


def test_events_are_published_as_they_happen_without_a_gap(node: Node) -> None:
    """W3: two frames, the kind and the JSON; seq rises by one."""
    context = zmq.Context()
    listener = context.socket(zmq.SUB)
    listener.set(zmq.SUBSCRIBE, b"lease.")
    listener.connect(f"ipc://{node.folder}/b.events.sock")
    with Raw(node.socket) as raw:
        wait_for(lambda: _heard_something(listener, raw))
        raw.lease("told", 100)
    found = []
    while listener.poll(500):
        kind, body = listener.recv_multipart()
        event = json.loads(body)
        assert event["kind"] == kind.decode()
        found.append(event["seq"])
    listener.close(linger=0)
    context.term()
    assert found == list(range(found[0], found[0] + len(found)))


def _heard_something(listener: "zmq.Socket[bytes]", raw: Raw) -> bool:
    """Make events until the subscription has arrived."""
    lease = raw.lease("probe", 100)
    raw.call("lease.release", lease=lease)
    return bool(listener.poll(50))


def test_socket_that_is_deleted_is_made_anew_and_holders_stay_connected(node: Node) -> None:
    """A tidy person must not shut berthd off for good: nobody could come any more."""
    events = node.socket.with_name("b.events.sock")
    with Raw(node.socket) as holder:
        lease = holder.lease("script", 5000)
        node.socket.unlink()
        events.unlink()
        wait_for(lambda: node.socket.exists() and events.exists())
        assert node.status()["leases"][0]["lease"] == lease
        assert node.socket.stat().st_mode & 0o777 == 0o600
        assert holder.call("lease.release", lease=lease)["ok"]


_THIEF = """
import sys
from pathlib import Path
from tests.system.raw import Raw
with Raw(Path(sys.argv[1])) as thief:
    lease = sys.argv[2]
    answers = [
        thief.call("attach", name="x", lease=lease, attempt=9, needs_mib=1),
        thief.call("attach", name="x", lease=lease, key="guessed", attempt=9, needs_mib=1),
        thief.call("lease.release", lease=lease),
        thief.call("lease.answer", lease=lease, attempt=1, state="released"),
        thief.call("lease.started", lease=lease),
    ]
print(*[answer["error"]["code"] if answer["error"] else "ok" for answer in answers])
"""


def test_lease_whose_id_is_guessed_stays_its_holders(node: Node) -> None:
    """S4, S6: also a lease that was asked for without a key: it belongs to its process alone."""
    with Raw(node.socket) as holder:
        lease = holder.lease("script", 5000)
        thief = [sys.executable, "-c", _THIEF, str(node.socket), lease]
        said = subprocess.run(
            thief, env=node.environment, capture_output=True, text=True, check=True, timeout=30.0
        )
        assert said.stdout.split() == ["not_yours"] * 5
        assert holder.call("attach", name="script", lease=lease, needs_mib=5000)["ok"]
        assert holder.call("lease.release", lease=lease)["ok"]
