"""WAIT: who waits, in order of turn, and under each why."""

from typing import Any

from berth.cli.render.figures import (
    Row,
    ask_of,
    exact,
    folded,
    likely_on_all,
    on_cards,
    with_letters,
)
from berth.cli.render.grid import Column, grid
from berth.cli.render.lines import Line, Look, Style, line, shortened, wrapped
from berth.words import plain

_NAME_LEAST = 9
_WHY_AT = 2
_LIKELY_MOST = 22


def wait_entries(
    status: dict[str, Any], letters: dict[str, str], look: Look
) -> tuple[list[Line], list[list[Line]]]:
    """Return the heads, and for each waiter its lines; none when nobody waits."""
    waiting = folded(status["waiting"], "request")
    if not waiting:
        return [], []
    several = len(status["cards"]) > 1
    heads = [line(("WAIT", Style.HEAD))]
    if look.wide:
        marks = [str(row["position"]) for row, _ in waiting]
        columns, rows = grid(marks, _columns(waiting, several=several), look)
        heads.append(columns)
    else:
        rows = []
    entries = []
    for number, (row, parts) in enumerate(waiting):
        first = [rows[number]] if rows else _short(row, parts, look, several=several)
        whys = [wrapped(why, look.width, _WHY_AT) for why in _reasons(parts, letters)]
        entries.append([*first, *(line(text) for why in whys for text in why)])
    return heads, entries


def _reasons(parts: list[Row], letters: dict[str, str]) -> list[str]:
    """Return why one waits: of several cards, what each of those says that have no room."""
    if len(parts) == 1:
        return [with_letters(parts[0], letters)]
    busy = [part for part in parts if part["code"] != "other_cards"] or parts[:1]
    return [f"{plain(part['card'])}: {with_letters(part, letters)}" for part in busy]


def _columns(waiting: list[tuple[Row, list[Row]]], *, several: bool) -> list[Column]:
    rows = [row for row, _ in waiting]
    return [
        Column(head="ENGINE", texts=[plain(row["name"]) for row in rows], least=_NAME_LEAST),
        Column(head="CARD", texts=[on_cards(parts) if several else "" for _, parts in waiting]),
        Column(head="PRIORITY", texts=[f"{row['priority']:<11}" for row in rows], gives_way=3),
        Column(head="ASK", texts=[f"{ask_of(row):>4}" for row in rows], right=True, gives_way=4),
        Column(head="WAITED", texts=[exact(row["waited_s"]) for row in rows], right=True),
        Column(head="LEFT", texts=[f"{_left(row):>6}" for row in rows], right=True, gives_way=2),
        Column(head="LIKELY", texts=[_likely(parts) for _, parts in waiting]),
    ]


def _likely(parts: list[Row]) -> str:
    return shortened(likely_on_all(parts), _LIKELY_MOST)


def _left(row: Row) -> str:
    """Return how long it still waits; who waits as long as it takes has no figure."""
    return "-" if row["wait_left_s"] is None else exact(row["wait_left_s"])


def _short(row: Row, parts: list[Row], look: Look, *, several: bool) -> list[Line]:
    """Return a waiter in one line, or in two where even that is too long."""
    card = f"{on_cards(parts)} " if several else ""
    facts = f"{card}{row['priority']} {ask_of(row)}, {likely_on_all(parts)}"
    mark = f"{row['position']} "
    name = plain(row["name"])
    if look.slim:
        room = 99 if look.width is None else look.width - len(mark)
        short = shortened(name, room, ascii_only=look.ascii)
        return [line(mark + short), *(line(text) for text in wrapped(facts, look.width, _WHY_AT))]
    room = 99 if look.width is None else max(_NAME_LEAST, look.width - len(mark) - len(facts) - 2)
    return [line(f"{mark}{shortened(name, room, ascii_only=look.ascii)}  {facts}")]


def more_waiters(number: int, status: dict[str, Any], shown: int, look: Look) -> Line:
    """Return the line for those that have no room."""
    card = plain(folded(status["waiting"], "request")[shown][0]["card"])
    verb = "waits" if number == 1 else "wait"
    begin = f"  {number} more {verb}; "
    whole = f"{begin}taller or wider window, or berth status {card}"
    if look.width is None or len(whole) <= look.width:
        return line(whole)
    return line(f"{begin}berth status {card}")
