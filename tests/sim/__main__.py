"""`make sim N=1000000`: as many simulated events as asked, seed after seed.

python -m tests.sim --events 1000000          from seed 0 on
python -m tests.sim --seed 17 --steps 20000   one seed, again
"""

import argparse
import sys
import time

from tests.sim.scenario import ANY_NODE, MANY_CARDS, play
from tests.sim.world import Broken

STEPS = 20000


def main() -> int:
    """Simulate, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="how many, at least")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cards", action="store_true", help="many cards, wanted together")
    parser.add_argument("--steps", type=int, default=STEPS, help="troubled steps for each seed")
    asked = parser.parse_args()
    begun, events, seeds, replies, ended = time.monotonic(), 0, 0, 0, 0
    seed = asked.first if asked.seed is None else asked.seed
    try:
        while events < asked.events:
            world = play(seed, asked.steps, MANY_CARDS if asked.cards else ANY_NODE)
            events, seeds = events + world.steps, seeds + 1
            replies, ended = replies + world.replies, ended + world.ended
            seed += 1
            if asked.seed is not None:
                break
    except Broken as broken:
        print(broken)
        cards = " --cards" if asked.cards else ""
        print(f"again:  python -m tests.sim --seed {seed} --steps {asked.steps}{cards}")
        return 1
    pace = events / (time.monotonic() - begun)
    print(
        f"{events} events in {seeds} worlds, {pace:.0f} a second: 0 collisions, 0 cut replies of "
        f"{replies}, 0 lost leases, {ended} runs ended"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
