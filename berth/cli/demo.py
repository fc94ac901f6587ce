"""`berth demo`."""

import json
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from berth.cli.context import Format, FormatOption, duration
from berth.errors import Exit, usage_error

if TYPE_CHECKING:
    from berth.demo.show import Audience, Show

_SECONDS: Final = "30"
_LONGEST: Final = 3600.0
_SIGNALLED: Final = 128


def demo(
    seconds: Annotated[
        str | None,
        typer.Option(metavar="DUR", help="how long it plays [env: BERTH_DEMO_SECONDS] [30]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="another seed is another play")] = 1,
    without: Annotated[
        bool, typer.Option("--without", help="the same load without Berth: what collides, measured")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> int:
    """See Berth work without a GPU: engines, a person and a training job share two cards.

    Chat engines take a card from each other while replies stream, an image engine has jobs, one
    engine spans both cards, somebody holds one, a browser leases nothing. The cards are simulated,
    those of this machine are not touched. It ends with what was measured.

    Examples:
      berth demo

      berth demo --without

      berth demo --seconds 90 --seed 7

      berth demo --format json | jq .collisions
    """
    length = duration(seconds or os.environ.get("BERTH_DEMO_SECONDS") or _SECONDS)
    if not 1.0 <= length <= _LONGEST:
        raise usage_error("--seconds: between a second and an hour")
    from berth.demo.show import Choice, Show

    choice = Choice(seconds=length, seed=seed, without=without)
    audience = _audience(format_)
    with _Ending() as ending:
        show = Show(choice, audience)
        ending.ends(show)
        try:
            _play(show, audience, format_)
        except BrokenPipeError as error:
            # One without a number: click would take it for its own, and end with 1.
            raise BrokenPipeError from error
    return ending.status


def _play(show: "Show", audience: "Audience", format_: Format) -> None:
    """Play it, and write what was measured."""
    from berth.demo.summary import summary_lines

    try:
        summary = show.play()
    finally:
        audience.close()
    if format_ is Format.JSON:
        print(json.dumps(summary.as_json()), flush=True)
    else:
        print("\n" + "\n".join(summary_lines(summary)), flush=True)


def _audience(format_: Format) -> "Audience":
    """Return who watches: a board where there is a screen, else lines; nobody for a script."""
    from berth.demo.lines import Lines, Nobody

    if format_ is Format.JSON:
        return Nobody()
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return Lines()
    from berth.demo.screen import Screen

    return Screen()


class _Ending:
    """Has a signal end the show, and everything that belongs to it, in good order."""

    _SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.status = int(Exit.OK)
        self._show: Show | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._hear) for number in self._SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def ends(self, show: "Show") -> None:
        """Let a signal end this show; one that has come already does."""
        self._show = show
        if self.status:
            show.stop()

    def _hear(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- Python's
        self.status = _SIGNALLED + number
        if self._show is not None:
            self._show.stop()
