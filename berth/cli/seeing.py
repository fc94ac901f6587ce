"""What the screen can show: how wide it is, whether it is one, which characters and colours."""

import os
import sys
from collections.abc import Mapping
from typing import Final, TextIO

from berth.cli.render.lines import Look
from berth.errors import usage_error
from berth.units import parse_count

WHEN: Final = ("auto", "always", "never")


def look_of(stream: TextIO, environ: Mapping[str, str], colour: str = "auto") -> Look:
    """Return what can be shown on a stream.

    A pipe is shown the same as a screen, uncut and without colour. `COLUMNS` counts where there is
    no screen to ask.

    Raises:
        BerthError: `colour` is none of auto, always, never.
    """
    if colour not in WHEN:
        raise usage_error(f"--color: {colour!r} is none of {', '.join(WHEN)}")
    is_screen = stream.isatty()
    return Look(
        width=_width(stream, environ, is_screen=is_screen),
        ascii=wants_ascii(stream, environ),
        colour=wants_colour(environ, colour, is_screen=is_screen),
    )


def _width(stream: TextIO, environ: Mapping[str, str], *, is_screen: bool) -> int | None:
    if is_screen:
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        if columns > 0:
            return columns
    return parse_count(environ.get("COLUMNS", "")) or None


def wants_ascii(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Tell whether only ASCII is to be drawn: wished for, or all that the stream can encode."""
    if environ.get("BERTH_ASCII", "") not in {"", "0"}:
        return True
    encoding = (stream.encoding or "ascii").lower().replace("-", "").replace("_", "")
    return encoding not in {"utf8", "utf8sig"}


def wants_colour(environ: Mapping[str, str], colour: str, *, is_screen: bool) -> bool:
    """Tell whether to paint: by the flag, then NO_COLOR, then FORCE_COLOR, then the stream."""
    if colour != "auto":
        return colour == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "") not in {"", "0"}:
        return True
    return is_screen and environ.get("TERM") != "dumb"


def screen() -> TextIO:
    """Return where a person looks."""
    return sys.stdout
