"""Figures and names as every screen writes them: GiB, spans of time, asks, states, who is who."""

from typing import Any, Final, TypeAlias

from berth.cli.render.lines import Style
from berth.units import Seconds, show_about, show_duration, show_gib
from berth.words import plain

Row: TypeAlias = dict[str, Any]
"""One row of a status, as JSON: a card, a lease, a waiter."""

UNKNOWN: Final = "?"
NOT_READ: Final = "not read yet"
"""Why a card cannot be shown just after berthd was started, in berthd's words too."""
LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MORE: Final = "+"
"""The letter of every lease for which there is none left."""

_GLYPHS: Final = {
    "running": ("●", "*"),
    "starting": ("◔", "+"),
    "draining": ("◐", "-"),
    "releasing": ("◑", "-"),
    "stuck": ("▲", "!"),
    "parking": ("◒", "p"),
    "parked": ("‖", "P"),
    "resuming": ("◓", "r"),
    "lending": ("◇", "<"),
    "waiting": ("○", "o"),
    "detached": ("◌", "x"),
}
_STYLES: Final = {
    "stuck": Style.ALARM,
    "draining": Style.MOVING,
    "releasing": Style.MOVING,
    "parking": Style.ASIDE,
    "parked": Style.ASIDE,
    "resuming": Style.ASIDE,
    "lending": Style.ASIDE,
}
_A_MINUTE: Final = 60
_AN_HOUR: Final = 3600


def state_of(state: str, *, ascii_only: bool) -> str:
    """Return a lease's state: its glyph and its word."""
    glyphs = _GLYPHS.get(state, ("●", "*"))
    return f"{glyphs[1] if ascii_only else glyphs[0]} {plain(state)}"


def style_of(state: str) -> Style:
    """Return how a state is painted. What is normal is not painted."""
    return _STYLES.get(state, Style.PLAIN)


def gib(mib: int | None) -> str:
    """Return memory in GiB; what was not measured is no figure."""
    return UNKNOWN if mib is None else show_gib(mib)


def ask_of(row: Row) -> str:
    """Return what a lease or a waiter asked for."""
    return "card" if row["ask_mib"] is None else show_gib(row["ask_mib"])


def span(seconds: float | None) -> str:
    """Return a span of time as short as it is enough: whole seconds, then `3m12s`, `41m`."""
    if seconds is None:
        return ""
    if seconds < _A_MINUTE:
        return f"{int(seconds)}s"
    if seconds >= 10 * _A_MINUTE and seconds < _AN_HOUR:
        return f"{int(seconds) // _A_MINUTE}m"
    return show_duration(Seconds(seconds))


def exact(seconds: float) -> str:
    """Return a span of time to the second, as far as anybody counts them: `10m46s`."""
    return f"{int(seconds)}s" if seconds < _A_MINUTE else show_duration(Seconds(seconds))


def about(seconds: float) -> str:
    """Return an expectation: no finer than it can be meant."""
    return show_about(Seconds(seconds))


def likely(waiter: Row) -> str:
    """Return when a waiter is likely granted, or on what that depends."""
    blockers = waiter["blockers"]
    if waiter["eta_s"] is not None:
        return about(waiter["eta_s"])
    if not blockers:
        return "now"
    if blockers[0].get("how") == "claimed":
        return "when the game ends"
    if blockers[0].get("how") == "first_in_line":
        return f"after {plain(blockers[0]['who'])}"
    return "unknown"


def room_of(card: Row) -> int | None:
    """Return what could be granted on a card now, None when it cannot be read."""
    if card.get("room_mib") is not None:
        return int(card["room_mib"])
    free = (card.get("books_free_mib"), card.get("driver_free_mib"))
    known = [int(one) for one in free if one is not None]
    if known:
        return max(0, min(known))
    return None if card["free_mib"] is None else int(card["free_mib"])


def counts(lease: Row) -> int:
    """Return what a lease takes of its card, as the books have it."""
    in_books = lease.get("counts_mib")
    used = lease["used_mib"] or 0
    return used if in_books is None else max(in_books, used)


def likely_on_all(parts: list[Row]) -> str:
    """Return when a request is likely granted on all its cards: the one that is last decides."""
    waiting = [part for part in parts if part["blockers"]] or parts
    unknown = [part for part in waiting if part["eta_s"] is None]
    return likely(unknown[0] if unknown else max(waiting, key=lambda part: part["eta_s"]))


_VENDOR_WORDS: Final = ("NVIDIA", "GeForce", "AMD", "Radeon", "Graphics")


def product_of(card: Row) -> str:
    """Return a card's product without what every one of its vendor's is called."""
    words = [word for word in plain(card["product"]).split() if word not in _VENDOR_WORDS]
    return " ".join(words) or plain(card["product"])


def letters_of(leases: list[Row]) -> dict[str, str]:
    """Return a letter for each lease, in the order of the rows; leases on two cards have one."""
    found: dict[str, str] = {}
    for row in leases:
        if row["lease"] not in found:
            number = len(found)
            found[row["lease"]] = LETTERS[number] if number < len(LETTERS) else MORE
    return found


def folded(rows: list[Row], key: str) -> list[tuple[Row, list[Row]]]:
    """Return one entry for each lease or request, with its rows on all its cards."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return [(parts[0], parts) for parts in found.values()]


def on_cards(parts: list[Row]) -> str:
    """Return the cards that a lease or a request is on."""
    names = [plain(part["card"]) for part in parts]
    whole = parts[0].get("cards") or names
    return ",".join(plain(name) for name in whole) if len(whole) > len(names) else ",".join(names)


def used_of(parts: list[Row]) -> int | None:
    """Return what a lease uses on the card where it uses most, None where one is not measured."""
    sizes = [part["used_mib"] for part in parts]
    return None if None in sizes else max(sizes)


def with_letters(waiter: Row, letters: dict[str, str]) -> str:
    """Return why one waits, with the letters of the leases that are named in it."""
    why = plain(waiter["why"])
    for blocker in waiter["blockers"]:
        letter = letters.get(blocker.get("lease") or blocker.get("ref") or "")
        who = plain(blocker["who"])
        if letter is not None and who and f"{who} " in why:
            why = why.replace(f"{who} ", f"{who} ({letter}) ", 1)
    return why
