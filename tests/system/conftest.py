"""Fixtures of the system tests: a node of its own for each test, a real llama-server."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nvml_stub import NoCompilerError, StubCard, build
from tests.system.llama import Llama
from tests.system.node import Node
from tests.system.nvidia_node import REAL_DRIVER, NvidiaNode

CARD = {"total_mib": 24576, "name": "RTX 4090 (simulated)", "baseline_mib": 421}

pytestmark = pytest.mark.system


@pytest.fixture
def make_node() -> Iterator[Callable[..., Node]]:
    """Return a maker of nodes; all are torn down after the test. Socket paths must be short."""
    made: list[Node] = []

    def make(*cards: dict[str, Any]) -> Node:
        folder = Path(tempfile.mkdtemp(prefix="berth-", dir="/tmp"))
        node = Node(folder, cards or [CARD])
        made.append(node)
        return node

    yield make
    for node in made:
        node.close()
        shutil.rmtree(node.folder, ignore_errors=True)


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    """Return a running node with one simulated 24 GiB card."""
    made = make_node()
    made.start()
    return made


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stub of NVIDIA's library once."""
    if REAL_DRIVER.exists():
        pytest.skip("this machine's own NVIDIA cards would stand beside the stub's")
    try:
        return build(tmp_path_factory.mktemp("nvml"))
    except NoCompilerError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def make_nvidia_node(stub_library: Path) -> Iterator[Callable[..., NvidiaNode]]:
    """Return a maker of nodes on stub cards; all are torn down after the test."""
    made: list[NvidiaNode] = []

    def make(*cards: StubCard) -> NvidiaNode:
        folder = Path(tempfile.mkdtemp(prefix="berth-", dir="/tmp"))
        made.append(NvidiaNode(folder, stub_library, *cards))
        return made[-1]

    yield make
    for node in made:
        node.close()
        shutil.rmtree(node.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Llama:
    """Return a real llama-server's command, on a model written for the session."""
    return Llama(tmp_path_factory.mktemp("llama"))
