"""People are let in to an engine that is up, and held back while it is asked to finish."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from berth.demo.crew import CHAT, Role
from berth.demo.engine import ChatEngine
from berth.demo.stage import Stage

WITHIN = 10.0
SHORTLY = 0.2


class Keeper(ChatEngine):
    """An engine that is up, or has died, when the test says so."""

    def __init__(self, stage: Stage, over: threading.Event) -> None:
        self.died: list[Role] = []
        super().__init__(stage, CHAT, over, self.died.append)

    def comes_up(self, port: int) -> None:
        with self._changed:
            self._port = port
            self._changed.notify_all()


@pytest.fixture
def over() -> threading.Event:
    return threading.Event()


@pytest.fixture
def keeper(over: threading.Event) -> Iterator[Keeper]:
    stage = Stage(with_berth=False)
    found = Keeper(stage, over)
    yield found
    over.set()
    found.wake()
    stage.close()


@pytest.fixture
def somebody(keeper: Keeper) -> Iterator["Future[int | None]"]:
    """Return somebody who wants in, in a thread of their own."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool.submit(keeper.enter)
        keeper._over.set()
        keeper.wake()


def waits(somebody: "Future[int | None]") -> bool:
    with pytest.raises(TimeoutError):
        somebody.result(timeout=SHORTLY)
    return True


def test_nobody_is_let_in_before_it_is_up(keeper: Keeper, somebody: "Future[int | None]") -> None:
    """A request to a port that nobody listens on is none."""
    assert waits(somebody)
    keeper.comes_up(4711)
    assert somebody.result(timeout=WITHIN) == 4711


@pytest.mark.parametrize("end", ["lease.kept", "lease.granted"])
def test_nobody_is_let_in_while_it_finishes(
    keeper: Keeper, somebody: "Future[int | None]", end: str
) -> None:
    """A request that comes between its last reply and its end would be cut."""
    keeper.hear("lease.draining")
    keeper.comes_up(4711)
    assert waits(somebody)
    keeper.hear("lease.released")
    assert waits(somebody)
    keeper.hear(end)
    assert somebody.result(timeout=WITHIN) == 4711


def test_the_end_sends_everybody_home(
    keeper: Keeper, somebody: "Future[int | None]", over: threading.Event
) -> None:
    """Who waits for an engine must not keep the demo from ending."""
    assert waits(somebody)
    over.set()
    keeper.wake()
    assert somebody.result(timeout=WITHIN) is None


def test_who_waits_for_one_that_dies_loading_has_waited_in_vain(
    keeper: Keeper, somebody: "Future[int | None]"
) -> None:
    """It is a failed request, told once, and the engine is tried again only when it is wanted."""
    with keeper._stage.start(CHAT.name, ["sh", "-c", "echo out of memory >&2; exit 1"]) as process:
        keeper._live(process, port=1)
    assert somebody.result(timeout=WITHIN) is None
    assert keeper.died == [CHAT]


def test_one_that_was_stopped_while_it_loaded_has_not_failed(
    keeper: Keeper, somebody: "Future[int | None]"
) -> None:
    """Berth gave the card to somebody more urgent: whoever waits goes on waiting."""
    with keeper._stage.start(CHAT.name, ["sh", "-c", "exit 143"]) as process:
        keeper._live(process, port=1)
    assert waits(somebody)
    assert keeper.died == []
