"""HOLD: the leases, a row each, and below them what a person should know of some."""

from typing import Any

from berth.cli.render.figures import (
    Row,
    ask_of,
    exact,
    folded,
    gib,
    on_cards,
    span,
    state_of,
    style_of,
    used_of,
)
from berth.cli.render.grid import Column, grid
from berth.cli.render.lines import Line, Look, Style, line, shortened, wrapped
from berth.words import plain

_NAME_LEAST = 9
_NOTE_AT = 5


def hold_lines(status: dict[str, Any], letters: dict[str, str], look: Look) -> list[Line]:
    """Return who holds; nothing when nobody does."""
    leases = folded(status["leases"], "lease")
    if not leases:
        return []
    several = len(status["cards"]) > 1
    rows = [line(("HOLD", Style.HEAD))]
    if look.slim:
        for row, parts in leases:
            rows += _slim(row, parts, letters[row["lease"]], look, several=several)
    else:
        marks = [letters[row["lease"]] for row, _ in leases]
        heads, table = grid(marks, _columns(leases, look, several=several), look)
        rows += [heads, *table]
    for row, parts in leases:
        noted = {part["note"]: part for part in parts if part.get("note")}
        rows += [
            text for part in noted.values() for text in _note(part, letters[row["lease"]], look)
        ]
    return rows


def _columns(leases: list[tuple[Row, list[Row]]], look: Look, *, several: bool) -> list[Column]:
    rows = [row for row, _ in leases]
    styles = [style_of(row["state"]) for row in rows]
    columns = [
        Column(head="ENGINE", texts=[plain(row["name"]) for row in rows], least=_NAME_LEAST),
        Column(head="CARD", texts=[on_cards(parts) if several else "" for _, parts in leases]),
        Column(
            head="STATE",
            texts=[state_of(row["state"], ascii_only=look.ascii) for row in rows],
            styles=styles,
        ),
        Column(head="GIB", texts=[_right(gib(used_of(parts))) for _, parts in leases], right=True),
    ]
    if look.wide:
        asks = [_right(ask_of(row)) for row in rows]
        columns.append(Column(head="ASK", texts=asks, right=True, gives_way=4))
    held = [_right(span(row["since_s"]), 5) for row in rows]
    columns.append(Column(head="FOR", texts=held, right=True, gives_way=5))
    if look.wide:
        turns = [exact(row["turn_left_s"]) if row["turn_left_s"] else "" for row in rows]
        models = [plain(row["model"] or "") for row in rows]
        columns.append(Column(head="TURN", texts=turns, right=True, gives_way=3))
        columns.append(Column(head="MODEL", texts=models, gives_way=1))
    return columns


def _right(text: str, width: int = 4) -> str:
    return f"{text:>{width}}"


def _slim(row: Row, parts: list[Row], letter: str, look: Look, *, several: bool) -> list[Line]:
    room = None if look.width is None else look.width - 2
    name = plain(row["name"])
    short = name if room is None else shortened(name, room, ascii_only=look.ascii)
    card = f"{on_cards(parts)} " if several else ""
    state = state_of(row["state"], ascii_only=look.ascii)
    facts = f" {gib(used_of(parts))} GiB, {span(row['since_s'])}"
    return [line(f"{letter} {short}"), line(f"  {card}", (state, style_of(row["state"])), facts)]


def _note(row: Row, letter: str, look: Look) -> list[Line]:
    """Return the sentence under a lease that is not simply at work, and the way out."""
    style = Style.ALARM if row["state"] == "stuck" else Style.PLAIN
    found = wrapped(plain(row["note"]), look.width, _NOTE_AT, f"  {letter}")
    rows = [line((text, style)) for text in found]
    if row.get("way_out"):
        way_out = f"way out:  {plain(row['way_out'])}"
        rows += [line(text) for text in wrapped(way_out, look.width, _NOTE_AT)]
    return rows
