"""A command with a family: `python family.py FILE` writes the pid of each member there.

A child, a child in a session of its own, and a daemon that forked twice and left its session.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path


def note(path: Path) -> None:
    """Write the own pid down."""
    with path.open("a") as pids:
        pids.write(f"{os.getpid()}\n")


def main() -> None:
    """Start the family and stay."""
    path = Path(sys.argv[1])
    if sys.argv[2:] == ["member"]:
        note(path)
        signal.pause()
    member = [sys.executable, __file__, str(path), "member"]
    subprocess.Popen(member)
    subprocess.Popen(member, start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(member[0], member)
        os._exit(0)
    os.wait()
    signal.pause()


if __name__ == "__main__":
    main()
