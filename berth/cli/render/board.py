"""The board: what `berth status` shows. Each part is a function of the status and the look.

In this order: is anything wrong, what is free, who holds, who waits and why, who is there without a
lease. Cards are in order of index, leases of grant, waiters of position: rows never jump.
"""

from typing import Any

from berth.cli.render.cards import card_lines
from berth.cli.render.claims import claim_lines, park_lines
from berth.cli.render.figures import NOT_READ, Row, letters_of, span
from berth.cli.render.holders import hold_lines
from berth.cli.render.lines import Line, Look, Style, apart, line, wrapped
from berth.cli.render.strangers import stowaway_lines
from berth.cli.render.waiters import more_waiters, wait_entries
from berth.standing import count
from berth.words import plain


def board(status: dict[str, Any], look: Look) -> list[Line]:
    """Return the whole board. With a height, who waits last is counted instead of shown."""
    above = [*_header(status, look), *_gap(look, always=True), *card_lines(status, look)]
    above += _section(claim_lines(status, look), look)
    letters = letters_of(status["leases"])
    above += _section(hold_lines(status, letters, look), look)
    heads, entries = wait_entries(status, letters, look)
    below = _section(stowaway_lines(status, look), look) + _section(park_lines(status, look), look)
    if status["cards"] and not status["leases"] and not entries:
        above += _section(_nobody(status), look)
    return [*above, *_fitting(above, heads, entries, below, look, status), *below]


def _fitting(
    above: list[Line],
    heads: list[Line],
    entries: list[list[Line]],
    below: list[Line],
    look: Look,
    status: dict[str, Any],
) -> list[Line]:
    """Return as much of who waits as there is room for."""
    if not entries:
        return []
    begin = [*_gap(look), *heads]
    if look.height is None:
        return [*begin, *(row for entry in entries for row in entry)]
    room = look.height - len(above) - len(below) - len(begin)
    shown: list[Line] = []
    for number, entry in enumerate(entries):
        left_over = len(entries) - number
        last = left_over == 1
        if len(shown) + len(entry) + (0 if last else 1) > room and number > 0:
            return [*begin, *shown, more_waiters(left_over, status, number, look)]
        shown += entry
    return [*begin, *shown]


def _section(rows: list[Line], look: Look) -> list[Line]:
    return [*_gap(look), *rows] if rows else []


def _gap(look: Look, *, always: bool = False) -> list[Line]:
    """Return the empty line between two parts; a narrow screen has no room for it."""
    return [[]] if always or look.wide or look.slim else []


def _header(status: dict[str, Any], look: Look) -> list[Line]:
    node = status["node"]
    version = f" {plain(node['version'])}" if look.wide else ""
    name = f"berth{version} on {plain(node['name'])}"
    alarms = summary(status)
    up = f"up {span(node['uptime_s'])}"
    urgent = any(row["state"] == "stuck" for row in status["leases"])
    urgent = urgent or any(_is_contested(card) for card in status["cards"])
    style = Style.ALARM if urgent else Style.PLAIN
    if look.slim:
        rows = [line((apart(name, up, look), Style.HEAD))]
        if alarms:
            rows += [line((row, style)) for row in wrapped(", ".join(alarms), look.width, 0)]
        return rows
    said = f"   {', '.join(alarms)}" if alarms else ""
    whole = apart(name + said, up, look)
    begin = len(name) + 3
    end = begin + len(said) - 3
    if not said:
        return [line((name, Style.HEAD), whole[len(name) :])]
    return [line((name, Style.HEAD), "   ", (whole[begin:end], style), whole[end:])]


def summary(status: dict[str, Any]) -> list[str]:
    """Return what is out of the ordinary, in a few words each."""
    found = []
    stuck = {row["lease"] for row in status["leases"] if row["state"] == "stuck"}
    if stuck:
        found.append(f"{len(stuck)} stuck")
    contested = [card for card in status["cards"] if _is_contested(card)]
    if contested:
        found.append(f"{len(contested)} contested")
    unread = [card for card in status["cards"] if card["state"] in {"unmeasured", "lost"}]
    new = [card for card in unread if card["why"] == NOT_READ]
    if new:
        found.append(f"{count(len(new), 'card')} {NOT_READ}")
    if len(unread) > len(new):
        found.append(f"{count(len(unread) - len(new), 'card')} unread")
    claims = status.get("claims") or []
    if claims:
        kind = "a VM" if claims[0]["kind"] == "vm" else "a game"
        found.append(f"claimed by {kind}")
    waiting = {row["request"] for row in status["waiting"]}
    if waiting:
        found.append(f"{len(waiting)} wait" if len(waiting) > 1 else "1 waits")
    return found


def _nobody(status: dict[str, Any]) -> list[Line]:
    which = "the card" if len(status["cards"]) == 1 else "a card"
    rows = [line(f"Nobody holds {which} and nobody waits.")]
    if not status["stowaways"] and not status.get("claims"):
        rows.append(line("Start something:  berth run -- python train.py"))
    return rows


def needs_a_person(status: dict[str, Any]) -> list[str]:
    """Return what does not get better by itself, a sentence each."""
    found = [_stuck(row) for row in status["leases"] if row["state"] == "stuck"]
    for card in status["cards"]:
        if card["state"] in {"unmeasured", "lost"}:
            why = plain(card["why"] or "no reason known")
            found.append(f"{plain(card['card'])} cannot be read: {why}; nothing is granted on it")
        if _is_contested(card):
            found.append(f"{plain(card['card'])} is contested: more is in use than was granted")
    return found


_CONTESTED_FROM = 64


def _is_contested(card: Row) -> bool:
    return -(card.get("books_free_mib") or 0) > _CONTESTED_FROM


def _stuck(row: Row) -> str:
    way_out = f"; way out:  {plain(row['way_out'])}" if row.get("way_out") else ""
    return f"{plain(row['name'])} is stuck: {plain(row['note'] or '')}{way_out}"
