"""From request to grant on a free card, through the socket, journal included.

Against a bare ZeroMQ round trip over ipc to another process, in turn in the same run.
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import msgspec
import zmq

from tests.bench.measuring import Timings, report, report_ratio, timed
from tests.system.node import Node

ROUNDS = 400

_ECHO = """
import sys, zmq
router = zmq.Context().socket(zmq.ROUTER)
router.bind(sys.argv[1])
while True:
    router.send_multipart(router.recv_multipart())
"""


def main() -> None:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="berth-", dir="/tmp") as name:
        folder = Path(name)
        node = Node(folder, [{"total_mib": 24576}])
        node.start()
        echo_at = f"ipc://{folder}/echo.sock"
        echo = subprocess.Popen([sys.executable, "-c", _ECHO, echo_at])
        try:
            _measure(node, echo_at)
        finally:
            echo.kill()
            echo.wait()
            node.close()


def _measure(node: Node, echo_at: str) -> None:
    context = zmq.Context()
    bare = context.socket(zmq.DEALER)
    bare.connect(echo_at)
    berthd = context.socket(zmq.DEALER)
    berthd.connect(f"ipc://{node.socket}")
    grants, trips = [], []
    for number in range(ROUNDS):
        trips.append(timed(lambda: (bare.send(b"x" * 200), bare.recv())))
        grants.append(timed(partial(_grant, berthd, number)))
        _release(berthd, number)
    for socket in (bare, berthd):
        socket.close(linger=0)
    context.term()
    ours, other = Timings(grants[20:]), Timings(trips[20:])
    report("request to grant", ours, "p99 <= 5 ms")
    report_ratio("request to grant", ours, other, "a bare ZeroMQ round trip", "<= 12 x")


_leases: dict[int, str] = {}


def _grant(berthd: "zmq.Socket[bytes]", number: int) -> None:
    ask = {
        "v": 1,
        "id": str(number),
        "op": "lease.request",
        "name": "bench",
        "key": f"bench-{number}",
        "needs_mib": 100,
        "wait_s": 10,
    }
    berthd.send(msgspec.json.encode(ask))
    while True:
        answer = msgspec.json.decode(berthd.recv())
        if answer.get("last"):
            _leases[number] = answer["data"]["lease"]
            return


def _release(berthd: "zmq.Socket[bytes]", number: int) -> None:
    give = {"v": 1, "id": f"x{number}", "op": "lease.release", "lease": _leases[number]}
    berthd.send(msgspec.json.encode(give))
    berthd.recv()


if __name__ == "__main__":
    main()
