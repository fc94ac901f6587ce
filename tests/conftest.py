"""Options of the whole test suite."""

import os
import signal

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what rewrites expected texts; the diff is there to be read."""
    parser.addoption("--retell", action="store_true", help="write the stories anew")
    parser.addoption("--redraw", action="store_true", help="draw the pages of docs/ anew")


# Workers of pytest-xdist are told a width that no terminal has; what the tests start is not.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)

# Started in the background by a shell, SIGINT is ignored, and so it would be in all that is started
# from here: Ctrl-C could not be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
