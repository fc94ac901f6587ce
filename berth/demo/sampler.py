"""An independent look at the simulated cards: it reads the claims, and never asks berthd."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from berth.demo.crew import BASELINE_MIB, CARDS, TOTAL_MIB
from berth.probes.procfs import read_process
from berth.probes.simulated import CLAIMS_FOLDER

_EVERY: Final = 0.02  # seconds
ROOM_MIB: Final = TOTAL_MIB - BASELINE_MIB


class Sampler(threading.Thread):
    """Watches the claims of all cards, and counts how often one became overfull."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="sampler", daemon=True)
        self._folders = [folder / CLAIMS_FOLDER / str(card) for card in range(CARDS)]
        self._ended = threading.Event()
        self._overfull = [False] * CARDS
        self.samples = 0
        self.claims: list[dict[int, int]] = [{} for _ in range(CARDS)]
        """Who claimed how much on each card when last looked at: MiB by pid."""
        self.times_overfull = [0] * CARDS
        self.most_mib = [0] * CARDS

    def run(self) -> None:
        """Look again and again until stopped."""
        while not self._ended.wait(_EVERY):
            self.look()

    def look(self) -> None:
        """Look once at every card."""
        self.samples += 1
        for card, folder in enumerate(self._folders):
            claims = _claims(folder)
            overfull = sum(claims.values()) > ROOM_MIB
            if overfull:
                # Files are read one by one: between two of them one claim can have gone and
                # another come. What stands in a second look too was there at one time.
                claims = _both(claims, _claims(folder))
                overfull = sum(claims.values()) > ROOM_MIB
            self.claims[card] = claims
            self.most_mib[card] = max(self.most_mib[card], sum(claims.values()))
            self.times_overfull[card] += overfull and not self._overfull[card]
            self._overfull[card] = overfull

    def stop(self) -> None:
        """End sampling."""
        self._ended.set()
        if self.is_alive():
            self.join(timeout=1.0)


def _claims(folder: Path) -> dict[int, int]:
    """Return who claims how much, of those who live."""
    claims = {}
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 -- read fifty times a second
            if name.isdecimal() and name.isascii():
                with suppress(OSError, ValueError):
                    claims[int(name)] = int((folder / name).read_text())
    return {pid: mib for pid, mib in claims.items() if _lives(pid)}


def _lives(pid: int) -> bool:
    facts = read_process(pid)
    return facts is not None and not facts.dead


def _both(first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
    return {pid: min(mib, second[pid]) for pid, mib in first.items() if pid in second}
