"""The demo on a terminal: the live board, drawn anew several times a second."""

import os
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace
from rich.console import Console
from rich.live import Live
from rich.text import Text

from berth.cli.render.lines import Look, painted
from berth.cli.seeing import look_of
from berth.client import Client
from berth.demo.board import Scene, board_lines
from berth.demo.hand_offs import HandOff
from berth.demo.lines import clock
from berth.demo.show import Show
from berth.demo.tally import Summary
from berth.demo.unleased import status_of_claims
from berth.errors import BerthError
from berth.words import plain

_SHOWN: Final = frozenset({
    *("lease.queued", "lease.draining", "lease.granted", "lease.kept"),
    *("lease.refused", "lease.stuck", "lease.contested", "stowaway.seen"),
})  # fmt: skip
_KEPT: Final = 40
_ANSWER_WITHIN: Final = 1.0


class Screen:
    """Draws the board. Told from several threads, drawn on the main one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._news: deque[str] = deque(maxlen=_KEPT)
        self._status: dict[str, Any] | None = None
        self._client: Client | None = None
        self._out = sys.stdout
        self._live = Live(
            console=Console(file=self._out),
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def tell(self, at: float, text: str) -> None:
        """Note what happens."""
        with self._lock:
            self._news.append(f"{clock(at)} {text}")

    def event(self, at: float, event: dict[str, Any], hand_off: HandOff | None) -> None:
        """Note what berthd tells."""
        if event["kind"] not in _SHOWN:
            return
        kind = event["kind"].removeprefix("lease.")
        name, why = plain(event["name"] or ""), plain(event["why"])
        if hand_off is not None:
            why = f"{why.partition('; ')[2]}; hand-off {hand_off.seconds:.1f}s".removeprefix("; ")
        self.tell(at, f"{event['card'] or '':<4} {kind:<13} {name:<9} {why}".rstrip())

    def look(self, show: Show) -> None:
        """Draw it all.

        Raises:
            BrokenPipeError: the terminal is gone.
        """
        status = self._ask(show) if show.stage.with_berth else status_of_claims(show)
        if status is None:
            return
        with self._lock:
            news = list(self._news)
        counted = show.counted()
        scene = Scene(
            at=min(show.at, show.choice.seconds),
            seconds=show.choice.seconds,
            with_berth=show.stage.with_berth,
            status=status,
            news=news,
            counts=_counts(counted),
            alarm=bool(counted.collisions or counted.requests_cut),
        )
        look = look_of(self._out, os.environ)
        try:
            self._draw(scene, look)
        except OSError as error:
            raise BrokenPipeError from error

    def _draw(self, scene: Scene, look: Look) -> None:
        if not self._live.is_started:
            self._live.start()
        height = os.get_terminal_size(self._out.fileno()).lines
        fitting = replace(look, height=height - 1)
        drawn = painted(board_lines(scene, fitting)[: height - 1], fitting)
        self._live.update(Text.from_ansi(drawn, no_wrap=True), refresh=True)

    def _ask(self, show: Show) -> dict[str, Any] | None:
        """Return how the node stands; as it stood last, while berthd does not say."""
        with suppress(BerthError):
            if self._client is None:
                self._client = Client(show.stage.socket, _ANSWER_WITHIN).__enter__()
            self._status = self._client.call("status")
        return self._status

    def close(self) -> None:
        """Leave the last board where it is."""
        if self._client is not None:
            self._client.close()
            self._client = None
        with suppress(OSError):
            self._live.stop()


def _counts(counted: Summary) -> str:
    parts = [f"collisions {counted.collisions}", f"requests {counted.requests}"]
    parts.append(f"cut {counted.requests_cut}")
    if counted.requests_failed or counted.without:
        parts.append(f"failed {counted.requests_failed}")
    if not counted.without:
        parts.insert(0, f"hand-offs {counted.handoffs}")
    if counted.handoff_median_s is not None:
        parts.append(f"median hand-off {counted.handoff_median_s:.1f}s")
    return "   ".join(parts)
