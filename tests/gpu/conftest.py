"""A berthd on the first NVIDIA card of this machine; without one these tests are skipped."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.probes.nvidia_cards import FoundCards, nvidia_cards
from tests.system.node import Node


class GpuNode(Node):
    """One berthd that governs real cards."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [])
        del self.environment["BERTH_SIM_DIR"]

    def card(self) -> dict[str, Any]:
        """Return the first card's row of the status."""
        row: dict[str, Any] = self.status()["cards"][0]
        return row


@pytest.fixture(scope="session")
def found() -> FoundCards:
    """Return this machine's cards, at least one that can be governed."""
    cards = nvidia_cards()
    if not cards.cards:
        reasons = [card.why.detail for card in cards.refused]
        reasons += [] if cards.trouble is None else [cards.trouble.detail]
        pytest.skip(f"no NVIDIA card to test on: {'; '.join(dict.fromkeys(reasons))}")
    return cards


@pytest.fixture
def node(found: FoundCards) -> Iterator[GpuNode]:
    """Return a running node on the first card."""
    folder = Path(tempfile.mkdtemp(prefix="berth-", dir="/tmp"))
    made = GpuNode(folder)
    try:
        made.start("--gpu", found.cards[0].identity.name)
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
