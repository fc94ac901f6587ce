"""Options of the whole test suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what rewrites expected texts; the diff is there to be read."""
    parser.addoption("--retell", action="store_true", help="write the stories anew")
    parser.addoption("--redraw", action="store_true", help="draw the pages of docs/ anew")
