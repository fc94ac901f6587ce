"""A script that shares a card: it claims memory while it has the lease, and gives way when asked.

Run as a program: `taking_turns.py NAME ROUNDS [async]`. It prints a line for each turn it had, and
ends when it gave way so often, or when nobody has wanted the card for a while.
"""

import asyncio
import os
import sys
from pathlib import Path

import berth
from berth.sim.claims import Claim

MIB = 20000
NOBODY_COMES_FOR = 6.0


def tell(line: str) -> None:
    """Tell whoever started this."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def take_turns(name: str, rounds: int) -> None:
    """Share with threads."""
    claim = Claim(Path(os.environ["BERTH_SIM_DIR"]), 0)
    with berth.lease(needs_mib=MIB, name=name) as lease:
        for number in range(rounds):
            claim.set(MIB)
            tell(f"{name} {number} {lease.id}")
            lease.served()
            if not lease.wait_wanted(NOBODY_COMES_FOR):
                break
            claim.drop()
            lease.give_way()


async def take_turns_in_a_loop(name: str, rounds: int) -> None:
    """Share in an event loop."""
    claim = Claim(Path(os.environ["BERTH_SIM_DIR"]), 0)
    async with berth.lease(needs_mib=MIB, name=name) as lease:
        for number in range(rounds):
            claim.set(MIB)
            tell(f"{name} {number} {lease.id}")
            lease.served()
            try:
                await asyncio.wait_for(lease.wait_wanted(), NOBODY_COMES_FOR)
            except TimeoutError:
                break
            claim.drop()
            await lease.give_way()


if __name__ == "__main__":
    if "async" in sys.argv:
        asyncio.run(take_turns_in_a_loop(sys.argv[1], int(sys.argv[2])))
    else:
        take_turns(sys.argv[1], int(sys.argv[2]))
