"""Lines of styled text: how wide they are, how they are cut, wrapped and painted.

A line is a list of spans, a span a text and a style. Widths are in cells of a terminal, in which a
character takes none, one or two.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from berth.words import cells, first_cells


class Style(Enum):
    """What a text means; the number is its SGR code, of the 16 that a terminal's palette has."""

    PLAIN = ""
    HEAD = "1"
    DIM = "2"
    ALARM = "1;31"
    MOVING = "33"
    ASIDE = "36"


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Where a screen is shown: its width in cells (None: uncut), its height, and what it can show.

    `ascii`: no character beyond ASCII is drawn (names keep theirs).
    """

    width: int | None = None
    height: int | None = None
    ascii: bool = False
    colour: bool = False

    @property
    def wide(self) -> bool:
        """Tell whether all columns have room."""
        return self.width is None or self.width >= WIDE

    @property
    def slim(self) -> bool:
        """Tell whether even a short row needs two lines."""
        return self.width is not None and self.width < NARROW


WIDE: Final = 80
NARROW: Final = 60

Span: TypeAlias = tuple[str, Style]
Line: TypeAlias = list[Span]


def line(*parts: str | Span) -> Line:
    """Return a line of spans; a bare text is plain."""
    return [(part, Style.PLAIN) if isinstance(part, str) else part for part in parts]


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text filled with spaces to a width; a longer one as it is."""
    fill = " " * max(0, width - cells(text))
    return fill + text if right else text + fill


def shortened(text: str, width: int, *, ascii_only: bool = False) -> str:
    """Return a text that fits, cut in the middle: both ends tell names apart."""
    if cells(text) <= width:
        return text
    mark = ".." if ascii_only else "…"
    room = width - len(mark)
    if room < 1:
        return first_cells(text, width)
    tail = first_cells(text[::-1], room // 2)[::-1]
    return first_cells(text, room - cells(tail)) + mark + tail


def wrapped(text: str, width: int | None, indent: int, first: str = "") -> list[str]:
    """Return a text in lines that fit, each under the other, the first one begun with `first`.

    `indent` is the column at which the text stands; a word longer than a line is cut into lines.
    """
    begin = padded(first, indent)
    if width is None:
        return [begin + text]
    room = max(8, width - indent)
    rows = [""]
    for word in _words(text, room):
        if rows[-1] and cells(rows[-1]) + 1 + cells(word) > room:
            rows.append(word)
        else:
            rows[-1] = f"{rows[-1]} {word}" if rows[-1] else word
    return [begin + rows[0], *(" " * indent + row for row in rows[1:])]


def _words(text: str, room: int) -> Iterable[str]:
    for word in text.split(" "):
        rest = word
        while cells(rest) > room:
            piece = first_cells(rest, room) or rest[:1]
            yield piece
            rest = rest[len(piece) :]
        yield rest


def apart(left: str, right: str, look: Look, most: int = 100) -> str:
    """Return two texts at the two ends of a line, or beside each other where it has no end."""
    if look.width is None:
        return f"{left}   {right}"
    room = min(look.width, most) - 1 - cells(left) - cells(right)
    return f"{left}{' ' * max(3, room)}{right}"


def painted(lines: Sequence[Line], look: Look) -> str:
    """Return lines as they go out. Nothing of a line is beyond the width; no trailing spaces."""
    return "".join(_painted(row, look) + "\n" for row in lines)


def _painted(row: Line, look: Look) -> str:
    spans = _cut(row, look.width) if look.width is not None else row
    text = "".join(span for span, _ in spans)
    end = len(text.rstrip())
    out = []
    for span, style in spans:
        shown = span[: max(0, end)]
        end -= len(span)
        if not shown:
            continue
        coloured = look.colour and style is not Style.PLAIN
        out.append(f"\x1b[{style.value}m{shown}\x1b[0m" if coloured else shown)
    return "".join(out)


def _cut(row: Line, width: int) -> Line:
    spans: Line = []
    room = width
    for text, style in row:
        shown = text if cells(text) <= room else first_cells(text, room)
        spans.append((shown, style))
        room -= cells(shown)
    return spans


def text_of(row: Line) -> str:
    """Return a line without its styles."""
    return "".join(text for text, _ in row).rstrip()
