"""The `berth` command itself."""

import subprocess
import sys

_LEAVES_A_CHILD = """
import multiprocessing, os, signal, time
from berth import __main__
from berth.cli import app
from berth.parentage import die_with_parent

def hang(pipe):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_with_parent()
    os.close(1)
    pipe.send("hangs")
    time.sleep(60)

def run_cli(arguments):
    here, there = multiprocessing.get_context("fork").Pipe()
    multiprocessing.get_context("fork").Process(target=hang, args=(there,), daemon=True).start()
    here.recv()
    print("done")
    return 7

app.run_cli = run_cli
__main__.main()
"""


def test_child_that_hangs_in_a_driver_does_not_keep_berth_from_ending() -> None:
    """A call stuck in the kernel outlives every signal; whoever stops berthd must not wait too."""
    done = subprocess.run(
        [sys.executable, "-c", _LEAVES_A_CHILD], stdout=subprocess.PIPE, timeout=20, check=False
    )
    assert (done.returncode, done.stdout) == (7, b"done\n")
