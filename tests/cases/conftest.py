"""Cases about processes are played on the nodes of the system tests."""

from tests.system.conftest import make_node

__all__ = ["make_node"]
