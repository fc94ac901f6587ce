"""Berth decides who gets a GPU's memory on a workstation.

For scripts: `with berth.lease(needs_mib=14000) as lease`, `berth.status()`, `berth.events()`
(docs/scripts.md). They are imported when they are first asked for: `import berth` stays quick.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from berth.client import (
        AsyncLease,
        BerthError,
        Event,
        Lease,
        LeaseRefused,
        LeaseStopped,
        NoBerth,
        WaitExpired,
        events,
        lease,
        status,
    )

__version__ = "0.1.0"

__all__ = [
    "AsyncLease",
    "BerthError",
    "Event",
    "Lease",
    "LeaseRefused",
    "LeaseStopped",
    "NoBerth",
    "WaitExpired",
    "__version__",
    "events",
    "lease",
    "status",
]


def __getattr__(name: str) -> object:
    """Import what scripts use when they first ask for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("berth.client"), name)


class _Package(ModuleType):
    """`berth.lease(…)` is what scripts call, whether or not `berth/lease.py` was imported.

    An import sets a module's name in its package; this one keeps the function there.
    """

    @property
    def lease(self) -> object:
        return __getattr__("lease")

    @lease.setter
    def lease(self, module: ModuleType) -> None:
        """Leave the module of lease states to `from berth.lease import …`."""


sys.modules[__name__].__class__ = _Package
