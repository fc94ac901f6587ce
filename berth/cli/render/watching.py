"""`berth status --watch` as a pure machine: keys, answers and events in, a screen out."""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from berth.cli.render.board import board
from berth.cli.render.happened import event_lines
from berth.cli.render.lines import Line, Look, Style, line, text_of
from berth.cli.render.sums import about_name
from berth.words import plain

_EVENTS: Final = 3
_MORE_EVENTS: Final = 12
_EVENTS_KEPT: Final = 50
_LEAST_ROWS: Final = 6
"""So many rows of the board stay, however many events are shown."""


class Watching(msgspec.Struct, frozen=True, kw_only=True):
    """What is watched: the last status and the last events.

    `gone` is since when berthd has not answered, as the clock showed it; `card` the only one shown,
    by its place; `name` what the sum is shown of instead of the board.
    """

    status: dict[str, Any] | None = None
    events: tuple[dict[str, Any], ...] = ()
    gone: str = ""
    paused: bool = False
    more: bool = False
    card: int | None = None
    name: str | None = None
    left: bool = False


def with_status(watching: Watching, status: dict[str, Any]) -> Watching:
    """Return it with a newer status; a paused screen keeps its own."""
    if watching.paused:
        return replace(watching, gone="")
    return replace(watching, status=status, gone="")


def with_event(watching: Watching, event: dict[str, Any]) -> Watching:
    """Return it with one more event."""
    if watching.paused:
        return watching
    return replace(watching, events=(*watching.events, event)[-_EVENTS_KEPT:])


def on_key(watching: Watching, key: str) -> Watching:
    """Return it after a key; unknown ones do nothing, for a screen is no place for accidents."""
    match key:
        case "q" | "\x03" | "\x04":
            return replace(watching, left=True)
        case "p":
            return replace(watching, paused=not watching.paused)
        case "e":
            return replace(watching, more=not watching.more)
        case _ if len(key) == 1 and key in "123456789":
            place = int(key) - 1
            cards = [] if watching.status is None else watching.status["cards"]
            if place >= len(cards):
                return watching
            return replace(watching, card=None if watching.card == place else place)
        case _:
            return watching


def screen(watching: Watching, look: Look) -> list[Line]:
    """Return the whole screen, no line more than it is high."""
    height = look.height or 24
    foot = _foot(watching, look)[: max(0, height - _LEAST_ROWS)]
    top = _top(watching, look)
    room = height - len(top) - len(foot)
    rows = _board(watching, replace(look, height=room)) if watching.status is not None else []
    if len(rows) > room:
        hidden = len(rows) - room + 1
        more = f"{'...' if look.ascii else '…'} {hidden} more, taller window"
        rows = [*rows[: room - 1], line((more, Style.DIM))]
    if watching.gone:
        rows = [line((text_of(row), Style.DIM)) for row in rows]
    fill: list[Line] = [[]] * max(0, room - len(rows))
    return [*top, *rows, *fill, *foot][:height]


def _top(watching: Watching, look: Look) -> list[Line]:
    if watching.gone:
        said = f"berthd is gone since {watching.gone}; trying again"
        return [line((said, Style.ALARM))]
    if watching.status is None:
        return [line("asking berthd …" if not look.ascii else "asking berthd ...")]
    if watching.paused:
        return [line(("paused; p goes on", Style.MOVING))]
    return []


def _board(watching: Watching, look: Look) -> list[Line]:
    status = watching.status or {}
    if watching.name is not None:
        lines = about_name(status, watching.name, look)
        return lines or [line(f"{plain(watching.name)} is not there (any more)")]
    return board(of_card(status, watching.card), look)


def of_card(status: dict[str, Any], place: int | None) -> dict[str, Any]:
    """Return a status with one card and what is on it only; with None as it is."""
    if place is None or place >= len(status["cards"]):
        return status
    card = status["cards"][place]
    parts = {
        part: [row for row in status[part] if row["card"] == card["card"]]
        for part in ("leases", "waiting", "stowaways")
    }
    return {**status, "cards": [card], **parts}


def _foot(watching: Watching, look: Look) -> list[Line]:
    """Return the last events, and below them what the keys do."""
    number = _MORE_EVENTS if watching.more else _EVENTS
    several = watching.status is not None and len(watching.status["cards"]) > 1
    uncut = look if look.slim else replace(look, width=None)
    rows = [
        row
        for event in watching.events[-number:]
        for row in event_lines(event, uncut, several=several)[:1]
    ]
    keys = "q leaves  p pauses  e events  1-9 one card"
    return [[], *rows, line((keys, Style.DIM))]
