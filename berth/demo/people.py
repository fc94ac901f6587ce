"""The people of the demo: they think, ask, read the reply, and ask again."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from berth.demo.chat import Outcome, chat
from berth.demo.engine import ChatEngine

Report: TypeAlias = Callable[[str, Outcome], None]
"""Takes an engine's name and what became of one request to it."""


class Chatter(threading.Thread):
    """One person at one engine, with what they ask: how long they think, how long the reply is."""

    def __init__(
        self,
        engine: ChatEngine,
        chats: Iterable[tuple[float, int]],
        over: threading.Event,
        report: Report,
    ) -> None:
        super().__init__(name=f"somebody at {engine.role.name}", daemon=True)
        self._engine = engine
        self._chats = chats
        self._over = over
        self._report = report
        self.replying = False

    def run(self) -> None:
        """Chat until there is nothing more to ask, or the play is over."""
        for think, tokens in self._chats:
            if self._over.wait(think):
                return
            outcome = self._ask(tokens)
            if outcome is None:
                return
            self._report(self._engine.role.name, outcome)

    def _ask(self, tokens: int) -> Outcome | None:
        """Ask once, as often as it takes until somebody has taken it; None when all is over."""
        while not self._over.is_set():
            port = self._engine.enter()
            if self._over.is_set():
                return None
            if port is None:
                return Outcome.FAILED
            self.replying = True
            try:
                outcome = chat(port, tokens)
            finally:
                self.replying = False
            if outcome is not Outcome.UNSENT:
                return outcome
            self._over.wait(0.05)
        return None


class _Replying(Protocol):
    replying: bool


def let_finish(people: Iterable[_Replying], within: float, stopped: Callable[[], bool]) -> None:
    """Wait until nobody is in the midst of a reply, at most that long, or until `stopped`."""
    pause = threading.Event()
    give_up = time.monotonic() + within
    everybody = list(people)
    while any(one.replying for one in everybody) and time.monotonic() < give_up and not stopped():
        pause.wait(0.02)
