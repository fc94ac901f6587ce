"""`--retell` writes the stories anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--retell", action="store_true", help="write what the cards say now")
