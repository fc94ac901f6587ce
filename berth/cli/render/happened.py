"""Events as lines: when, on which card, what kind, who, and what; the text wraps under itself."""

from datetime import datetime, tzinfo
from typing import Any, Final

from berth.cli.render.lines import Line, Look, Style, line, padded, shortened, wrapped
from berth.words import cells, plain

_KIND: Final = 16
_NAME: Final = 10
_NAME_MOST: Final = 18
_ALARMS: Final = frozenset({"lease.stuck", "lease.refused", "lease.contested"})


def event_lines(
    event: dict[str, Any], look: Look, *, several: bool, zone: tzinfo | None = None
) -> list[Line]:
    """Return an event in lines. `several`: the node has several cards, so the card is named.

    `zone` is where the reader's clock is, None for this machine's.
    """
    clock = moment(event, zone).strftime("%H:%M:%S")
    card = f"{plain(event['card'] or ''):<4} " if several else ""
    kind = plain(event["kind"])
    name = shortened(plain(event["name"] or ""), _NAME_MOST, ascii_only=look.ascii)
    why = plain(event["why"])
    if not look.wide:
        head = f"{clock} {card}{kind} {name}".rstrip()
        below = wrapped(why, look.width, 2 if look.slim else len(clock) + 1) if why else []
        return [line((head, _style(kind))), *(line(text) for text in below)]
    begin = f"{clock} {card}{padded(kind, _KIND)} {padded(name, _NAME)} "
    first, *rest = wrapped(why, look.width, cells(begin), begin)
    at = len(clock) + 1 + len(card)
    return [
        line(first[:at], (first[at : at + len(kind)], _style(kind)), first[at + len(kind) :]),
        *(line(text) for text in rest),
    ]


def moment(event: dict[str, Any], zone: tzinfo | None = None) -> datetime:
    """Return when it happened, by the reader's clock."""
    return datetime.fromisoformat(event["at"]).astimezone(zone)


def _style(kind: str) -> Style:
    if kind in _ALARMS:
        return Style.ALARM
    return Style.MOVING if kind == "lease.draining" else Style.PLAIN


class Wanted:
    """Which events are shown: of these kinds (`lease`, or `lease.stuck`), this card, this name."""

    def __init__(self, kinds: str | None, card: str | None, name: str | None) -> None:
        self._kinds = tuple(word.strip() for word in kinds.split(",")) if kinds else ()
        self._card = card
        self._name = name

    def has(self, event: dict[str, Any]) -> bool:
        """Tell whether an event is among them."""
        kind: str = event["kind"]
        if self._kinds and not any(kind == k or kind.startswith(f"{k}.") for k in self._kinds):
            return False
        if self._card is not None and event["card"] != self._card:
            return False
        ids = {event["name"], event["lease"], event["request"]}
        return self._name is None or self._name in ids
