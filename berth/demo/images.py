"""The image engine of the demo: a script that leases its card, and gives way between two jobs.

It reads jobs from its input, a line each with how long one takes (seconds), and writes `begun` and
`whole` for each, or `failed`. The end of its input lets it finish the job in hand. With `--without`
it leases nothing, and keeps the card.
"""

import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Final

import berth
from berth.demo.crew import IMAGES, LOAD_S, TOTAL_MIB
from berth.sim.claims import Claim
from berth.sim.memory import claimed_on

_IDLE_FOR: Final = 0.5
"""How long it keeps the card when there is nothing to do."""

_CARD: Final = IMAGES.cards[0]
_Jobs = queue.SimpleQueue[float | None]
_ended = threading.Event()


def main() -> int:
    """Work off jobs until there are no more; return the exit status."""
    jobs: _Jobs = queue.SimpleQueue()
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    folder = Path(os.environ["BERTH_SIM_DIR"])
    claim = Claim(folder, _CARD)
    if "--without" in sys.argv[1:]:
        return _work_without(jobs, claim, folder)
    while (job := jobs.get()) is not None and not _ended.is_set():
        _work_leased(jobs, job, claim)
    return 0


def _read(jobs: _Jobs) -> None:
    for line in sys.stdin:
        jobs.put(float(line))
    _ended.set()
    jobs.put(None)


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def _load(claim: Claim) -> None:
    time.sleep(LOAD_S)
    claim.set(IMAGES.mib)


def _do(job: float) -> None:
    _say("begun")
    time.sleep(job)
    _say("whole")


def _work_leased(jobs: _Jobs, job: float, claim: Claim) -> None:
    """Have the card for as long as there are jobs, and give way between two of them."""
    with berth.lease(
        needs_mib=IMAGES.mib, name=IMAGES.name, cards=f"gpu{_CARD}", wait_s=None
    ) as lease:
        _load(claim)
        following: float | None = job
        while following is not None:
            _do(following)
            lease.served()
            following = _next(jobs)
            if following is not None and lease.wanted:
                claim.drop()
                lease.give_way()
                _load(claim)
        claim.drop()


def _next(jobs: _Jobs) -> float | None:
    """Return the next job, None when there is none or the input has ended."""
    try:
        job = jobs.get(timeout=_IDLE_FOR)
    except queue.Empty:
        return None
    return None if _ended.is_set() else job


def _work_without(jobs: _Jobs, claim: Claim, folder: Path) -> int:
    """Load at the first job, whoever is there, and stay; fail when the card is overfull then."""
    loaded = False
    while (job := jobs.get()) is not None and not _ended.is_set():
        if not loaded:
            _load(claim)
            loaded = True
            if claimed_on(folder, _CARD) > TOTAL_MIB:
                claim.drop()
                _say("failed")
                return 1
        _do(job)
    return 0


if __name__ == "__main__":
    sys.exit(main())
