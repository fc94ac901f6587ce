"""A script that shares its card: it works in pieces, and gives way between two of them.

give_way.py NAME PIECES
"""

import os
import sys
import time
from pathlib import Path

import berth
from berth.sim.claims import Claim

NEEDS_MIB = 14000


def load() -> None:
    """Fill the card's memory: a claim on a simulated card, your model on a real one."""
    if sim := os.environ.get("BERTH_SIM_DIR"):
        Claim(Path(sim), 0).set(NEEDS_MIB)


def unload() -> None:
    """Give the memory back, all of it."""
    if sim := os.environ.get("BERTH_SIM_DIR"):
        Claim(Path(sim), 0).drop()


name, pieces = sys.argv[1], int(sys.argv[2])
with berth.lease(needs_mib=NEEDS_MIB, name=name, wait_s=600) as lease:
    load()
    for piece in range(pieces):
        time.sleep(0.5)  # a piece of work
        print(f"{name}: piece {piece + 1} of {pieces} done, as {lease.id}", flush=True)
        if lease.wanted:
            unload()
            lease.give_way()
            load()
    unload()
