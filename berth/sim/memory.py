"""The memory that a simulated engine holds on its card, and who claims it."""

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

from berth.errors import BerthError
from berth.probes.procfs import read_process
from berth.probes.simulated import CLAIMS_FOLDER
from berth.sim.claims import Claim


class Memory:
    """What an engine claims. Called from any thread.

    Kept memory is claimed under the pid of another process (keeper.py), from the start: were it
    handed over at the engine's end, the card would for a moment look free, or twice as full.
    """

    def __init__(self, folder: Path, card: int, keeper: int | None = None) -> None:
        self._claim = Claim(folder, card, keeper)
        self._kept = keeper is not None
        self._held = 0
        self._released = False
        self._lock = threading.Lock()
        if keeper is not None:
            self._begin(keeper)

    def _begin(self, keeper: int) -> None:
        """Claim nothing yet; a keeper whose claim cannot be written is not left behind."""
        try:
            self._claim.set(0)
        except BerthError:
            os.kill(keeper, signal.SIGKILL)
            raise

    def hold(self, mib: int) -> None:
        """Hold that many MiB."""
        with self._lock:
            self._held = mib
            self._claim.set(mib)

    def grow(self, mib: int) -> None:
        """Hold that many MiB more, unless all was given back already."""
        with self._lock:
            if mib and not self._released:
                self._held += mib
                self._claim.set(self._held)

    def release(self) -> None:
        """Give it all back; what another process keeps stays as it is."""
        with self._lock:
            self._released = True
            if not self._kept:
                self._claim.drop()


def claimed_on(folder: Path, card: int) -> int:
    """Return the sum of what living processes claim on a card, in MiB."""
    claimed = 0
    for claim in (folder / CLAIMS_FOLDER / str(card)).iterdir():
        if claim.name.isdecimal() and claim.name.isascii():
            claimant = read_process(int(claim.name))
            if claimant is not None and not claimant.dead:
                with suppress(OSError, ValueError):  # gone, or half written by some other program
                    claimed += int(claim.read_text())
    return claimed
