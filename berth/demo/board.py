"""The live board of the demo: the cards, who has them, who waits, what happened. Pure.

`Scene` in, lines out; the parts are those of `berth status`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from berth.cli.render.cards import card_bar
from berth.cli.render.figures import (
    Row,
    ask_of,
    exact,
    folded,
    gib,
    letters_of,
    on_cards,
    room_of,
    state_of,
    style_of,
    used_of,
    with_letters,
)
from berth.cli.render.lines import Line, Look, Style, apart, line, padded
from berth.demo.lines import clock
from berth.words import plain

_BAR: Final = 26
_BAR_LEAST: Final = 8
_BAR_MOST: Final = 48
_NAME: Final = 9
_BESIDE_BAR: Final = 46
"""What a card's line has beside its bar: its name, what is free, who gives it to whom."""
_REMARK_AT: Final = 42
_BRIEF: Final = {
    "draining": "{who} is finishing",
    "releasing": "{who} is giving it back",
    "starting": "{who} has only just started",
    "in_turn": "{who} keeps its turn{left}",
    "juggle": "juggle guard: {who} stays{left}",
    "first_in_line": "after {who}",
    "other_cards": "{who} is not free yet",
    "outranks": "{who} is more urgent",
    "busy": "{who} runs to its end",
    "held": "a person has the card",
}
"""What is in the way, in so few words that they fit beside the row."""

_ROWS: Final = 8
"""How many rows the engines have at least, so that what is below does not jump."""
_FRAME: Final = 8
"""Lines that are neither an engine's nor an event's."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown: how far the play is (seconds), the node's status, what happened, counts."""

    at: float
    seconds: float
    with_berth: bool
    status: dict[str, Any]
    news: Sequence[str]
    counts: str
    alarm: bool = False


def board_lines(scene: Scene, look: Look) -> list[Line]:
    """Return the board."""
    status = scene.status
    letters = letters_of(status["leases"])
    rows = [*_holders(status, letters, look), *_waiters(status, letters, look), *_strangers(status)]
    rows += [[]] * (_ROWS - len(rows))
    room = 6 if look.height is None else max(0, look.height - _FRAME - len(rows))
    news = [line((text, Style.DIM)) for text in scene.news[-room:]] if room else []
    counts = (scene.counts, Style.ALARM if scene.alarm else Style.HEAD)
    cards = [_card(status, card, look) for card in status["cards"]]
    foot = [*news, *([[]] * (room - len(news)))]
    return [_header(scene, look), [], *cards, [], *rows, [], *foot, [], line(counts)]


def _header(scene: Scene, look: Look) -> Line:
    what = "simulated node, 2 cards" if scene.with_berth else "the same load without Berth"
    name = f"berth demo   {what}"
    time = f"{clock(scene.at)} of {clock(scene.seconds)}"
    time += "   ctrl-c ends it" if look.wide else ""
    whole = apart(name, time, look)
    return line((whole[:10], Style.HEAD), whole[10:])


def _card(status: dict[str, Any], card: Row, look: Look) -> Line:
    size = _BAR if look.width is None else look.width - _BESIDE_BAR
    drawn = card_bar(status, card, max(_BAR_LEAST, min(_BAR_MOST, size)), look)
    total = f"{(card['total_mib'] or 0) // 1024} GiB"  # as it is sold
    free = gib(room_of(card))
    return line(f"{card['card']} {total} [{drawn}]  free {free:>4}   ", _giving(status, card))


def _giving(status: dict[str, Any], card: Row) -> str:
    """Return who is about to give a card to whom."""
    waiting = {row["request"]: row["name"] for row in status["waiting"]}
    for row in status["leases"]:
        if row["card"] == card["card"] and row.get("for") in waiting:
            return f"{plain(row['name'])} -> {plain(waiting[row['for']])}"
    return ""


def _row(mark: str, name: str, card: str, state: tuple[str, Style], gib_: str) -> Line:
    begin = f"{mark} {padded(plain(name), _NAME)} {padded(card, _NAME)} "
    return line(begin, (padded(state[0], 11), state[1]), f" {gib_:>4}   ")


def _holders(status: dict[str, Any], letters: dict[str, str], look: Look) -> list[Line]:
    found = []
    for row, parts in folded(status["leases"], "lease"):
        state = (state_of(row["state"], ascii_only=look.ascii), style_of(row["state"]))
        used = ask_of(row) if row["priority"] == "hold" else gib(used_of(parts))
        begin = _row(letters[row["lease"]], row["name"], on_cards(parts), state, used)
        found.append([*begin, *line(_remark(row, status))])
    return found


def _remark(row: Row, status: dict[str, Any]) -> str:
    """Return what is to be known of a holder just now."""
    if row["priority"] == "hold":
        left = row.get("left_s")
        return "a person" if left is None else f"a person, for {exact(max(1.0, left))} more"
    if row["state"] == "draining":
        waiting = {one["request"]: one["name"] for one in status["waiting"]}
        whom = f"for {plain(waiting[row['for']])}" if row.get("for") in waiting else ""
        in_flight = row.get("in_flight")
        if in_flight and in_flight["n"]:
            replies = "reply" if in_flight["n"] == 1 else "replies"
            return f"{in_flight['n']} {replies} in flight, none will be cut"
        return f"finishes {whom}" if row.get("boundary") else f"stops {whom}"
    if row["turn_left_s"]:
        return f"keeps its turn for {exact(max(1.0, row['turn_left_s']))}"
    return plain(row.get("note") or "") if row["state"] == "stuck" else ""


def _waiters(status: dict[str, Any], letters: dict[str, str], look: Look) -> list[Line]:
    state = (state_of("waiting", ascii_only=look.ascii), Style.PLAIN)
    found = []
    for row, parts in folded(status["waiting"], "request"):
        begin = _row(str(row["position"]), row["name"], on_cards(parts), state, ask_of(row))
        found.append([*begin, *line(_why(row, letters, look))])
    return found


def _why(row: Row, letters: dict[str, str], look: Look) -> str:
    """Return why one waits: the whole sentence where it fits, else what is first in the way."""
    whole = with_letters(row, letters)
    if look.width is None or _REMARK_AT + len(whole) <= look.width or not row["blockers"]:
        return whole
    first, *others = row["blockers"]
    letter = letters.get(first.get("lease") or "")
    who = plain(first["who"]) + (f" ({letter})" if letter else "")
    left = "" if first["left_s"] is None else f" for {exact(max(1.0, first['left_s']))}"
    more = f" + {len(others)} more" if others else ""
    return _BRIEF.get(first["how"], "{who}").format(who=who, left=left) + more


def _strangers(status: dict[str, Any]) -> list[Line]:
    return [
        [
            *_row("~", row["name"], row["card"], ("  stowaway", Style.PLAIN), gib(row["used_mib"])),
            *line("no lease; counted, never killed"),
        ]
        for row in status["stowaways"]
    ]
