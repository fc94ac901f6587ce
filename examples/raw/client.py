"""A client of berthd in pyzmq alone: leases a card, works, gives way when it is asked to.

client.py NAME NEEDS_MIB PIECES: it does so many pieces of work, of a fifth of a second each.
"""

import itertools
import json
import os
import secrets
import sys
import time
from pathlib import Path

import zmq

OWN = f"/run/user/{os.getuid()}"
FOLDER = OWN if Path(OWN).is_dir() else f"/tmp/berth-{os.getuid()}"
SOCKET = (
    os.environ.get("BERTH_SOCKET") or (os.environ.get("XDG_RUNTIME_DIR") or FOLDER) + "/berth.sock"
)
SILENT_FOR_MS = 15_000  # berthd says something every 5 seconds

numbers = itertools.count(1)
socket = zmq.Context().socket(zmq.DEALER)
socket.set(zmq.LINGER, 500)
socket.connect(f"ipc://{SOCKET}")


def send(op: str, **fields: object) -> str:
    """Send an operation; return its id."""
    message_id = str(next(numbers))
    socket.send(json.dumps({"v": 1, "id": message_id, "op": op, **fields}).encode())
    return message_id


def answer_to(message_id: str) -> dict:
    """Wait for the last answer to an operation; end when it is an error."""
    while socket.poll(SILENT_FOR_MS):
        heard = json.loads(socket.recv())
        if heard.get("id") != message_id:
            continue
        if not heard["ok"]:
            sys.exit(f"{heard['error']['code']}: {heard['error']['message']}")
        if heard["last"]:
            return heard["data"]
        print("waiting:", heard["data"].get("why", "asked"), flush=True)
    sys.exit("berthd is silent")


def orders() -> list[dict]:
    """Return the orders that have come since; answer pings."""
    found = []
    while socket.poll(0):
        heard = json.loads(socket.recv())
        if heard.get("order") == "ping":
            send("pong", lease=heard["lease"])
        elif "order" in heard:
            send("lease.answer", lease=heard["lease"], attempt=heard["attempt"], state="heard")
            found.append(heard)
    return found


name, needs_mib, pieces = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
terms = {"name": name, "needs_mib": needs_mib, "boundary": True, "key": secrets.token_hex()}
lease = answer_to(send("lease.request", wait_s=60, **terms))["lease"]
answer_to(send("lease.started", lease=lease, pids=[os.getpid()]))
print("granted:", lease, flush=True)  # from here on the memory may be used

wanted = None
for _ in range(pieces):
    time.sleep(0.2)  # a piece of work; between two of them nothing is in flight
    for order in orders():
        wanted = None if order["order"] == "continue" else order
    if wanted:
        print("wanted:", wanted["why"], flush=True)
        break

# Here the memory is given back; only then is the lease.
if wanted:
    answer = {"lease": lease, "attempt": wanted["attempt"], "state": "released"}
    answer_to(send("lease.answer", **answer))
else:
    answer_to(send("lease.release", lease=lease))
print("released:", lease, flush=True)
