"""The names things go by: cards, requests, leases, processes, connections."""

from typing import NewType

import msgspec

CardName = NewType("CardName", str)
"""`gpu0`, `gpu1` …, or a PCI address for a card that was inside a VM at start-up."""

RequestId = NewType("RequestId", str)
"""`r9`: one request for a lease, from asking to its one final answer."""

LeaseId = NewType("LeaseId", str)
"""`L9`: an engine's right to card memory. Request `r9`, once granted, is lease `L9`."""

Attempt = NewType("Attempt", int)
"""Numbers the orders given to one holder, so that a late answer is told from the right one."""

Connection = NewType("Connection", bytes)
"""One client on the socket, as the ROUTER names it. It ends with the connection."""

Key = NewType("Key", str)
"""A client's own secret for one request; sent again, it finds the same request or lease."""


class ProcessId(msgspec.Struct, frozen=True, order=True):
    """A process that no other can be mistaken for.

    `start` is the kernel's start time in clock ticks since boot (`/proc/<pid>/stat`, field 22):
    a pid that the kernel hands out again has another one.
    """

    pid: int
    start: int


def lease_of(request: RequestId) -> LeaseId:
    """Return the id that `request` has once it is granted."""
    return LeaseId("L" + request.removeprefix("r"))


def number_of(request: RequestId) -> int:
    """Return a request's number: the node gives them in the order of asking."""
    return int(request.removeprefix("r"))


def request_of(lease: LeaseId) -> RequestId:
    """Return the request that `lease` was granted to."""
    return RequestId("r" + lease.removeprefix("L"))
