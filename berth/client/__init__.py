"""Berth for Python scripts, and the client's side of the socket.

    import berth

    with berth.lease(needs_mib=14000) as lease:
        ...

`berth.lease`, `berth.status` and `berth.events` are here; so is `Client`, one question and its
answer. What only scripts need is imported when they first ask for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from berth.client.call import Client, berthd_listens, nobody_there
from berth.client.refusals import LeaseRefused, LeaseStopped, NoBerth, WaitExpired
from berth.errors import BerthError, Code

if TYPE_CHECKING:
    from berth.client.asking import LeaseRequest, lease
    from berth.client.awaited import AsyncLease
    from berth.client.holder import Holder
    from berth.client.looking import Event, events, status
    from berth.client.messages import LeasedCard
    from berth.client.threaded import Lease

__all__ = [
    "AsyncLease",
    "BerthError",
    "Client",
    "Code",
    "Event",
    "Holder",
    "Lease",
    "LeaseRefused",
    "LeaseRequest",
    "LeaseStopped",
    "LeasedCard",
    "NoBerth",
    "WaitExpired",
    "berthd_listens",
    "events",
    "lease",
    "nobody_there",
    "status",
]

_LATER = {
    "AsyncLease": "awaited",
    "Event": "looking",
    "Holder": "holder",
    "Lease": "threaded",
    "LeaseRequest": "asking",
    "LeasedCard": "messages",
    "events": "looking",
    "lease": "asking",
    "status": "looking",
}


def __getattr__(name: str) -> object:
    """Import what only scripts need when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
