"""Columns: as wide as what stands in them, left out by rank when there is no room."""

from collections.abc import Sequence

import msgspec

from berth.cli.render.lines import Line, Look, Style, padded, shortened
from berth.words import cells

LONGEST_NAME = 28


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column. `gives_way`: the lower, the sooner it goes, 0 never. `least`: its least width.

    A column without a least width is never cut.
    """

    head: str
    texts: Sequence[str]
    right: bool = False
    styles: Sequence[Style] = ()
    gives_way: int = 0
    least: int | None = None

    @property
    def width(self) -> int:
        """Return how wide it is, uncut."""
        return max(cells(self.head), *(cells(text) for text in self.texts))

    @property
    def blank(self) -> bool:
        """Tell whether there is nothing in it."""
        return not any(self.texts)


def grid(marks: Sequence[str], columns: Sequence[Column], look: Look) -> tuple[Line, list[Line]]:
    """Return the heads and the rows. `marks` stand before the rows, one to each.

    Columns with nothing in them are left out; then, as long as it is too wide, the one that gives
    way first; at last what may be cut is cut in the middle.
    """
    shown = [column for column in columns if not column.blank]
    indent = max((cells(mark) for mark in marks), default=1) + 1
    while look.width is not None and _width(shown, indent) > look.width:
        yielding = [column for column in shown if column.gives_way]
        if not yielding:
            break
        shown.remove(min(yielding, key=lambda column: column.gives_way))
    widths = _fitted(shown, indent, look)
    heads: Line = [(" " * indent, Style.PLAIN)]
    heads += [(_cell(c.head, w, c, look), Style.DIM) for c, w in zip(shown, widths, strict=True)]
    rows: list[Line] = []
    for number, mark in enumerate(marks):
        row: Line = [(padded(mark, indent), Style.PLAIN)]
        for column, width in zip(shown, widths, strict=True):
            style = column.styles[number] if column.styles else Style.PLAIN
            row.append((_cell(column.texts[number], width, column, look), style))
        rows.append(row)
    return heads, rows


def _width(columns: Sequence[Column], indent: int) -> int:
    """Return how wide the columns are side by side, the longest names cut."""
    widths = (
        column.width if column.least is None else min(column.width, LONGEST_NAME)
        for column in columns
    )
    return indent + sum(width + 1 for width in widths) - 1


def _fitted(columns: Sequence[Column], indent: int, look: Look) -> list[int]:
    widths = [column.width for column in columns]
    for number, column in enumerate(columns):
        if column.least is None:
            continue
        if look.width is not None:
            widths[number] = min(widths[number], LONGEST_NAME)
            beyond = indent + sum(widths) + len(widths) - 1 - look.width
            widths[number] = max(column.least, widths[number] - max(0, beyond))
    return widths


def _cell(text: str, width: int, column: Column, look: Look) -> str:
    shown = shortened(text, width, ascii_only=look.ascii) if column.least is not None else text
    return padded(shown, width, right=column.right) + " "
