from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sim_engine.playing import TOTAL, Engine, end_keepers


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Start engines on a card of 1000 MiB; whatever is left of them ends with the test."""
    (tmp_path / "cards.toml").write_text(f"[[card]]\ntotal_mib = {TOTAL}\n")
    engines: list[Engine] = []

    def start(kind: str, *flags: object) -> Engine:
        engines.append(Engine(tmp_path, kind, *flags))
        return engines[-1]

    yield start
    for engine in engines:
        engine.clear()
    end_keepers(tmp_path)
