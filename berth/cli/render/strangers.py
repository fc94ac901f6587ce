"""STOWAWAYS: GPU processes without a lease. Reported, never killed."""

from typing import Any

from berth.cli.render.figures import UNKNOWN, Row, gib
from berth.cli.render.grid import Column, grid
from berth.cli.render.lines import Line, Look, Style, apart, line, padded, shortened, wrapped
from berth.words import cells, plain

_NAME_LEAST = 9
_PLACE = 17


def stowaway_lines(status: dict[str, Any], look: Look) -> list[Line]:
    """Return who is there without a lease; a claim's own process is told elsewhere."""
    claimed = {claim["pid"] for claim in status.get("claims") or []}
    found = [row for row in status["stowaways"] if row["pid"] not in claimed]
    if not found:
        return []
    several = len(status["cards"]) > 1
    which = "a card" if several else "the card"
    title = (
        "STOWAWAYS" if look.slim else apart("STOWAWAYS", f"on {which} without a lease", look, 80)
    )
    rows = [line((title[:9], Style.HEAD), (title[9:], Style.DIM))]
    if look.slim:
        return [*rows, *(text for row in found for text in _slim(row, look, several=several))]
    columns = [
        Column(head="", texts=[plain(row["name"]) for row in found], least=_NAME_LEAST),
        Column(head="", texts=[plain(row["card"]) if several else "" for row in found]),
        Column(head="", texts=[_size(row) for row in found]),
    ]
    _, table = grid([" "] * len(found), columns, look)
    return [*rows, *(_with_rest(begin, row, look) for begin, row in zip(table, found, strict=True))]


def _with_rest(begin: Line, row: Row, look: Look) -> Line:
    """Add where a stowaway lives, cut in the middle where it is too long, and what it does."""
    where, verdict = _where(row), _verdict(row, look)
    place = _PLACE
    if look.width is not None:
        room = look.width - cells("".join(text for text, _ in begin)) - 3 - cells(verdict)
        place = min(_PLACE, max(0, room))
        where = shortened(where, max(_NAME_LEAST, room), ascii_only=look.ascii)
    style = Style.MOVING if row["squatter"] else Style.PLAIN
    return [*begin, (f" {padded(where, place)}  ", Style.PLAIN), (verdict, style)]


def _size(row: Row) -> str:
    return f"{UNKNOWN:>5}    " if row["used_mib"] is None else f"{gib(row['used_mib']):>5} GiB"


def _where(row: Row) -> str:
    return plain(row["container"]) if row["container"] else f"pid {row['pid']}"


def _verdict(row: Row, look: Look) -> str:
    if row["used_mib"] is None:
        return "size unmeasured"
    if row["squatter"]:
        return "squatter"
    return "allowed, does not block" if look.wide else "allowed"


def _slim(row: Row, look: Look, *, several: bool) -> list[Line]:
    room = 99 if look.width is None else look.width - 2
    card = f"{plain(row['card'])} " if several else ""
    size = UNKNOWN if row["used_mib"] is None else f"{gib(row['used_mib'])} GiB"
    facts = f"{card}{size}, {_where(row)}, {_verdict(row, look)}"
    name = shortened(plain(row["name"]), room, ascii_only=look.ascii)
    return [line(f"  {name}"), *(line(text) for text in wrapped(facts, look.width, 4))]
