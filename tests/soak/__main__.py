"""`make soak`: real processes, struck at random for ten minutes; nothing may be lost.

    SOAK_SECONDS=600 make soak
    python -m tests.soak --seconds 120 --seed 7

A berthd on two simulated cards; engines under `berth run`, chats streaming from them; and `kill -9`
and SIGTERM to wrappers, engines and berthd itself. Ends with one line of JSON; status 1 when
anything collided, was cut, was lost, did not end, or leaked.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

from tests.soak.crew import ENDS_WITHIN, Listener, Member, Talker
from tests.soak.watching import Figures, Incarnation, Roll, figures
from tests.system.node import Node, Sampler, wait_for

TOTAL: Final = 24576
BASELINE: Final = 421
CREW: Final = 6
STRIKE_EVERY: Final = 5.0
STEADY_FROM: Final = 0.6
"""From which part of the time on berthd is left alone: only then can its growth be seen."""

GROWTH_ALLOWED: Final = 2.0  # MiB
CARD: Final = {"total_mib": TOTAL, "name": "RTX 4090 (simulated)", "baseline_mib": BASELINE}


class Soak:
    """One soak, from one seed."""

    def __init__(self, seconds: float, seed: int) -> None:
        self.seconds = seconds
        self.seed = seed
        self.rng = random.Random(seed)
        folder = Path(tempfile.mkdtemp(prefix="berth-soak-", dir="/tmp"))
        self.node = Node(folder, [CARD, CARD])
        self.listener = Listener(self.node.socket)
        self.samplers = [Sampler(self.node.sim, TOTAL - BASELINE, i, every=0.02) for i in (0, 1)]
        self.roll = Roll(self.node)
        self.crew: list[Member] = []
        self.talkers: list[Talker] = []
        self.incarnations: list[Incarnation] = []
        self.strikes: list[str] = []
        self.asked = 0
        self.unended: list[str] = []
        self.pause = threading.Event()

    def play(self) -> dict[str, Any]:
        """Play it to the end, and return what was measured."""
        self._start_berthd()
        fresh = figures(self.incarnations[-1].pid)
        self.listener.start()
        for sampler in self.samplers:
            sampler.start()
        begun = time.monotonic()
        next_strike, next_look = begun + STRIKE_EVERY, begun
        while (elapsed := time.monotonic() - begun) < self.seconds:
            self._man()
            if time.monotonic() >= next_strike:
                next_strike = time.monotonic() + self.rng.expovariate(1 / STRIKE_EVERY)
                self._strike(spare_berthd=elapsed > self.seconds * STEADY_FROM)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + 1.0
                self._look()
            self.pause.wait(0.1)
        self._wind_down()
        self.listener.stop()
        for sampler in self.samplers:
            sampler.stop()
        left_open = self._left_open(fresh)
        return self._summary(time.monotonic() - begun, left_open)

    # --- what happens -----------------------------------------------------------------------

    def _start_berthd(self) -> None:
        self.node.start()
        assert self.node.daemon is not None
        self.incarnations.append(Incarnation(self.node.daemon.pid))

    def _man(self) -> None:
        """Note who has ended, and start somebody where there is room in the crew."""
        self.crew = [one for one in self.crew if one.lives]
        if len(self.crew) < CREW and self.rng.random() < 0.2:
            self.asked += 1
            member = Member(self.node, f"m{self.asked}", self.rng)
            self.crew.append(member)
            if member.chats:
                self.talkers.append(Talker(member, self.listener, random.Random(self.rng.random())))
                self.talkers[-1].start()

    def _strike(self, *, spare_berthd: bool) -> None:
        number = self.rng.choice([signal.SIGKILL, signal.SIGTERM])
        whom = self.rng.choice(["wrapper", "engine", "engine", "berthd"])
        if whom == "berthd":
            if not spare_berthd:
                self.strikes.append(f"berthd {number.name}")
                self._restart_berthd(number)
        elif self.crew:
            member = self.rng.choice(self.crew)
            self.strikes.append(f"{whom} {number.name}")
            member.strike(number, engine=whom == "engine")

    def _restart_berthd(self, number: signal.Signals) -> None:
        daemon = self.node.daemon
        assert daemon is not None
        daemon.send_signal(number)
        daemon.wait(timeout=20.0)
        self.pause.wait(self.rng.choice([0.0, 0.5, 3.0]))
        self._start_berthd()

    def _look(self) -> None:
        assert self.node.daemon is not None
        if self.node.daemon.poll() is not None:
            raise SystemExit(f"berthd ended by itself; its log: {self.node.log_text()[-3000:]}")
        self.incarnations[-1].sample()
        self.roll.call(self.crew, self.incarnations[-1])

    # --- the end ----------------------------------------------------------------------------

    def _wind_down(self) -> None:
        """Ask nobody any more; whoever is there ends in its time, or is told to."""
        for member in self.crew:
            member.end()
        give_up = time.monotonic() + ENDS_WITHIN
        while any(one.lives for one in self.crew) and time.monotonic() < give_up:
            self._look()
            self.pause.wait(0.2)
        self.unended = [f"{one.name} (see {one.log})" for one in self.crew if one.lives]
        for talker in self.talkers:
            talker.join(timeout=5.0)
        wait_for(self._nobody_there, within=40.0, why="the books are empty")

    def _nobody_there(self) -> bool:
        status = self.roll.status()
        return status is not None and not status["leases"] and not status["waiting"]

    def _left_open(self, fresh: Figures) -> dict[str, int]:
        """Return by how much berthd has more open than when nobody had come yet."""
        pid = self.incarnations[-1].pid
        try:
            wait_for(lambda: _is_within(figures(pid), fresh), within=20.0)
        except AssertionError:
            now = figures(pid)
            return {"files": now.files - fresh.files, "threads": now.threads - fresh.threads}
        return {"files": 0, "threads": 0}

    def _summary(self, seconds: float, left_open: dict[str, int]) -> dict[str, Any]:
        grown = [g for one in self.incarnations if (g := one.growth()) is not None]
        collisions = [overlap for one in self.samplers for overlap in one.overdrawn]
        cut = [line for talker in self.talkers for line in talker.cut]
        return {
            "seconds": round(seconds, 1),
            "seed": self.seed,
            "engines": self.asked,
            "replies": sum(talker.replies for talker in self.talkers),
            "strikes": len(self.strikes),
            "berthds": len(self.incarnations),
            "roll_calls": self.roll.calls,
            "samples": sum(one.samples for one in self.samplers),
            "collisions": collisions[:5],
            "cut": cut,
            "lost": self.roll.lost,
            "not_ended": self.unended,
            "grown_mib": max(grown, default=None),
            "left_open": left_open,
            "crashes": [str(path) for path in self.node.folder.glob("state/crashes/*")],
        }


def _is_within(now: Figures, fresh: Figures) -> bool:
    return now.files <= fresh.files and now.threads <= fresh.threads


def broken(summary: dict[str, Any]) -> bool:
    """Tell whether anything that must be zero is not, or nothing was measured at all."""
    troubles = ("collisions", "cut", "lost", "not_ended", "crashes")
    grown = summary["grown_mib"]
    return (
        any(summary[trouble] for trouble in troubles)
        or any(summary["left_open"].values())
        or (grown is not None and grown >= GROWTH_ALLOWED)
        or not (summary["replies"] and summary["roll_calls"] and summary["samples"])
    )


def main() -> int:
    """Soak, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    default = float(os.environ.get("SOAK_SECONDS", "600"))
    parser.add_argument("--seconds", type=float, default=default, help="how long")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="to play it again")
    asked = parser.parse_args()
    print(f"soaking for {asked.seconds:.0f}s, seed {asked.seed}", flush=True)
    soak = Soak(asked.seconds, asked.seed)
    failed = True
    try:
        summary = soak.play()
        failed = broken(summary)
    finally:
        soak.node.close()
        if failed:
            print(f"what is left to look at: {soak.node.folder}", file=sys.stderr)
        else:
            shutil.rmtree(soak.node.folder, ignore_errors=True)
    print(json.dumps(summary))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
