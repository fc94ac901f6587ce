"""Wait as a reader does who looks before typing on: berthd answers, and what was started runs.

python -m tests.docs.settle RUNS    so many `berth run` have been started until now
"""

import sys

import berth
from tests.system.node import wait_for


def settled(runs: int) -> bool:
    """Tell whether berthd has read its cards, has heard of every run, and nobody is starting."""
    try:
        shown = berth.status()
        asked = sum(1 for _ in berth.events(kinds=["lease.queued"], follow=False))
    except berth.NoBerth:
        return False
    read = all(card.state == "ok" for card in shown.cards)
    return read and asked >= runs and all(lease.state != "starting" for lease in shown.leases)


if __name__ == "__main__":
    wait_for(lambda: settled(int(sys.argv[1])), why="what was started runs")
