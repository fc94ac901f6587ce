"""The cards: a line each, with its memory as a bar."""

from typing import Any

from berth.cli.render import bar
from berth.cli.render.figures import (
    NOT_READ,
    Row,
    counts,
    gib,
    letters_of,
    product_of,
    room_of,
    span,
)
from berth.cli.render.lines import Line, Look, Style, line, padded, shortened, wrapped
from berth.words import cells, plain

_BAR_AT_80 = 26
_BAR_NARROW = 18
_BAR_MOST = 40
_BAR_LEAST = 8
_ROOMY_FROM = 100
_PRODUCT_MOST = 24
_PRODUCT_LEAST = 9


def card_lines(status: dict[str, Any], look: Look) -> list[Line]:
    """Return the cards. One card has no name; its product says enough."""
    cards = status["cards"]
    if not cards:
        return [line("No card is governed: see berth daemon --gpu")]
    layout = _Layout(cards, look)
    return [row for card in cards for row in _card(status, card, layout, look)]


class _Layout:
    """How the lines of all cards are divided: they stand under each other."""

    def __init__(self, cards: list[Row], look: Look) -> None:
        self.names = len(cards) > 1
        self.name = max(cells(plain(card["card"])) for card in cards) if self.names else 0
        self.free = max(len(_free(card)) for card in cards)
        self.health = max(len(_health(card)) for card in cards) if look.wide else 0
        self.product = 0
        if look.wide:
            longest = max(cells(product_of(card)) for card in cards)
            self.product = min(_PRODUCT_MOST, longest)
        self.size = self._bar(look)

    def _bar(self, look: Look) -> int:
        """Return how long the bars are; a product's name gives way before them."""
        if look.width is None:
            return _BAR_AT_80
        if look.slim:
            return max(_BAR_LEAST, min(_BAR_NARROW, look.width - 2))
        health = self.health + 2 if self.health else 0
        others = (self.name + 1 if self.names else 0) + 2 + self.free + health
        if look.wide:
            # A bar of a good length first, then the product whole, then all that is left.
            room = look.width - others - 1 - _BAR_AT_80
            self.product = min(self.product, max(_PRODUCT_LEAST, room))
            left = look.width - others - 1 - self.product
            return max(_BAR_LEAST, min(left, _BAR_MOST if look.width > _ROOMY_FROM else _BAR_AT_80))
        return max(_BAR_LEAST, min(_BAR_NARROW, look.width - others))


def _card(status: dict[str, Any], card: Row, layout: _Layout, look: Look) -> list[Line]:
    name = padded(plain(card["card"]), layout.name) + " " if layout.names else ""
    if look.slim:
        return _slim(status, card, layout, look, name)
    product = ""
    if layout.product:
        short = shortened(product_of(card), layout.product, ascii_only=look.ascii)
        product = padded(short, layout.product) + " "
    begin = f"{name}{product}["
    style = Style.ALARM if card["state"] in {"unmeasured", "lost"} else Style.PLAIN
    drawn = card_bar(status, card, layout.size, look)
    if card["state"] != "ok":
        rows = wrapped(_unread(card), look.width, cells(begin) + layout.size + 3)
        # A long reason goes under the bar, not into a column of one word a line.
        if len(rows) > 2:  # noqa: PLR2004 -- two lines are still read as one
            rows = wrapped(_unread(card), look.width, cells(name) or 2)
            below = [line((row, style)) for row in rows]
            return [line(begin, drawn, "]"), *below]
        first = rows[0].strip()
        return [line(begin, drawn, "]  ", (first, style)), *([line((r, style)) for r in rows[1:]])]
    health = f"  {_health(card):>{layout.health}}" if layout.health else ""
    return [line(begin, drawn, "]", f"{_free(card):>{layout.free}}", health)]


def _slim(status: dict[str, Any], card: Row, layout: _Layout, look: Look, name: str) -> list[Line]:
    said = _unread(card) if card["state"] != "ok" else _free(card).strip()
    style = Style.ALARM if card["state"] in {"unmeasured", "lost"} else Style.PLAIN
    rows = wrapped(said, look.width, len(name), name)
    drawn = card_bar(status, card, layout.size, look)
    return [*(line((row, style)) for row in rows), line("[", drawn, "]")]


def card_bar(status: dict[str, Any], card: Row, size: int, look: Look) -> str:
    """Return a card's bar: who has how much of it."""
    total = card["total_mib"]
    if card["state"] != "ok" or not total:
        return bar.unread(size)
    letters = letters_of(status["leases"])
    here = card["card"]
    parts = [bar.Part(bar.BASELINE, card["baseline_mib"] or 0)]
    parts += [
        bar.Part(letters[row["lease"]], counts(row))
        for row in status["leases"]
        if row["card"] == here
    ]
    claimed = {claim["pid"] for claim in status.get("claims") or []}
    strangers = [row for row in status["stowaways"] if row["card"] == here]
    of_claim = sum(row["used_mib"] or 0 for row in strangers if row["pid"] in claimed)
    others = sum(row["used_mib"] or 0 for row in strangers if row["pid"] not in claimed)
    parts += [
        bar.Part(bar.CLAIM, of_claim),
        bar.Part(bar.STOWAWAY, others),
        bar.Part(bar.NOBODY, card["unexplained_mib"] or 0),
    ]
    drawn = bar.bar(parts, total, size, ascii_only=look.ascii)
    beyond = -(card.get("books_free_mib") or 0)
    return bar.overdrawn(drawn, beyond, total) if beyond > _SLACK else drawn


_SLACK = 64
"""How far over a card may be before its bar says so, in MiB: roundings and small contexts."""


def _free(card: Row) -> str:
    if card["state"] != "ok":
        return ""
    return f"  {gib(room_of(card)):>4} of {gib(card['capacity_mib']):>4} GiB free"


def _health(card: Row) -> str:
    if card["state"] != "ok":
        return ""
    warm, power = card["temperature_c"], card["power_w"]
    heat = "" if warm is None else f"{warm:.0f}°C"
    watts = "" if power is None else f"{power:.0f} W"
    return f"{heat:>4} {watts:>6}".rstrip() if heat or watts else ""


def _unread(card: Row) -> str:
    """Return why a card cannot be read, and since when."""
    why = plain(card["why"] or "")
    age = card["reading_age_s"]
    match card["state"]:
        case "asleep":
            return why or "asleep; a request wakes it"
        case "lost":
            return f"lost: {why}" if why else "lost"
        case _ if age is None:
            return f"{NOT_READ}: {why}" if why not in {"", NOT_READ} else NOT_READ
        case _:
            since = f"no reading for {span(age)}"
            return f"{since}: {why}" if why else since
