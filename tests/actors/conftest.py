"""Every actor that a test starts is stopped after it, and no thread of one is left."""

import threading
from collections.abc import Iterator

import pykka
import pytest


@pytest.fixture(autouse=True)
def _stop_all() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    pykka.ActorRegistry.stop_all(timeout=5.0)
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5.0)
        assert not thread.is_alive(), f"{thread.name} is left"
