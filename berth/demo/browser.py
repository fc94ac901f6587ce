"""The stowaway of the demo: a program that takes card memory and has never heard of Berth."""

import os
import signal
from pathlib import Path

from berth.demo.crew import BROWSER
from berth.sim.claims import Claim


def main() -> None:
    """Take the memory under the name that a browser has, and stay."""
    Path("/proc/self/comm").write_text(BROWSER.name)
    Claim(Path(os.environ["BERTH_SIM_DIR"]), BROWSER.cards[0]).set(BROWSER.mib)
    signal.pause()


if __name__ == "__main__":
    main()
