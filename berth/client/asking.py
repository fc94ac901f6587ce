"""`berth.lease(…)`: what a script asks for, to be taken with `with`, `async with` or `take()`."""

import os
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from berth.client.awaited import AsyncLease
from berth.client.call import berthd_listens
from berth.client.holder import Holder
from berth.client.state import FOR_EVER, Wish
from berth.client.threaded import Lease
from berth.paths import berthd_ran_this_boot, check_socket_dir, socket_path
from berth.units import Seconds


class LeaseRequest:
    """What a script asks for, in a `with`, in an `async with`, or by `take()`.

    Whose lease it becomes is settled then: a forked child that takes it has a lease of its own.
    """

    def __init__(self, wish: Wish, path: Path, on_wanted: Callable[[Holder], None] | None) -> None:
        self._wish = wish
        self._path = path
        self._on_wanted = on_wanted
        self._lease: Lease | None = None
        self._async_lease: AsyncLease | None = None

    def take(self) -> Lease:
        """Wait for the card and return the lease: where a `with` does not fit, as in a notebook.

        Raises:
            LeaseRefused: berthd refused it; `WaitExpired` when the wait ran out.
            NoBerth: no berthd answers.
        """
        lease = Lease(self._own_wish(), self._path, self._on_wanted)
        lease.take()
        return lease

    def _own_wish(self) -> Wish:
        return replace(self._wish, key=secrets.token_hex(16), pid=os.getpid())

    def __enter__(self) -> Lease:
        self._lease = self.take()
        return self._lease

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lease is not None:
            self._lease.release()

    async def __aenter__(self) -> AsyncLease:
        self._async_lease = AsyncLease(self._own_wish(), self._path, self._on_wanted)
        await self._async_lease.take()
        return self._async_lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._async_lease is not None:
            await self._async_lease.release()


def lease(  # noqa: PLR0913 -- a lease has as many terms as `berth run` has flags
    *,
    needs_mib: int | Sequence[int] | None = None,
    cards: str | Sequence[str] | None = None,
    priority: str | None = None,
    name: str | None = None,
    wait_s: float | None = 120.0,
    min_turn_s: float = 0.0,
    pinned: bool = False,
    boundary: bool = True,
    on_wanted: Callable[[Holder], None] | None = None,
    socket: str | Path | None = None,
) -> LeaseRequest:
    """Ask for card memory for this process: `with berth.lease(needs_mib=14000) as lease`.

    Nothing is asked before the `with`, the `async with` or `take()`.

    Args:
        needs_mib: MiB on the card, or a figure for each of `cards`; None: the whole card.
        cards: `"gpu0"`, a PCI address, several of them, or `"any"`; None: the first.
        priority: foreground, interactive, batch or background; None: interactive with a boundary,
            batch without.
        name: what it is called in `berth status`; None: the script's own name, numbered.
        wait_s: how long to wait for the card, in seconds; None: as long as it takes.
        min_turn_s: how long it is not asked for the card by anybody but a person's hold.
        pinned: never asked for the card but by a hold.
        boundary: the script looks at `lease.wanted` and gives way. False: it runs to its end, and
            only a higher priority asks.
        on_wanted: called when the card is wanted, on the lease's own thread (or soon, in the event
            loop). It should set a flag, no more.
        socket: berthd's socket; None: `BERTH_SOCKET`, else where berthd listens by default.
    """
    path = socket_path(None if socket is None else str(socket), os.environ)
    check_socket_dir(path)
    wait = FOR_EVER if wait_s is None else Seconds(wait_s)
    terms: dict[str, Any] = {
        "name": name or _own_name(),
        "numbered": name is None,
        "needs_mib": needs_mib
        if needs_mib is None or isinstance(needs_mib, int)
        else list(needs_mib),
        "cards": [cards] if isinstance(cards, str) and cards != "any" else cards,
        "priority": priority,
        "min_turn_s": min_turn_s,
        "pinned": pinned,
        "boundary": boundary,
    }
    wish = Wish(
        terms=terms,
        wait=wait,
        berthd_seen=berthd_listens(path) or berthd_ran_this_boot(path),
    )
    return LeaseRequest(wish, path, on_wanted)


def _own_name() -> str:
    """Return what this script is called: `train` for `python train.py`."""
    program = Path(sys.argv[0] if sys.argv else "").stem
    return "python" if not program or program.startswith("-") else program
