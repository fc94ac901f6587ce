"""`berth status NAME`: the sum (what a card can hand out, less whom, equals free, short of what).

NAME is an engine, a lease, a request or a card.
"""

from typing import Any, Final

from berth.cli.render.figures import (
    NOT_READ,
    Row,
    about,
    ask_of,
    counts,
    exact,
    folded,
    gib,
    letters_of,
    likely,
    on_cards,
    product_of,
    room_of,
    span,
    used_of,
    with_letters,
)
from berth.cli.render.lines import Line, Look, Style, line, padded, wrapped
from berth.standing import NOT_OF_ROOM
from berth.units import show_gib
from berth.words import cells, plain

_LABEL_LEAST: Final = 18
_FIGURE: Final = 6
_REMARK_AT: Final = 4


def known_names(status: dict[str, Any]) -> list[str]:
    """Return all that `berth status NAME` takes: engines, leases, requests, cards."""
    rows = [*status["leases"], *status["waiting"]]
    names = [row["name"] for row in rows]
    numbers = [row.get("lease") or row["request"] for row in rows]
    cards = [card["card"] for card in status["cards"]]
    return list(dict.fromkeys([*cards, *names, *numbers]))


def about_name(status: dict[str, Any], name: str, look: Look) -> list[Line]:
    """Return the sums of all that goes by that name, empty when nothing does."""
    found: list[Line] = []
    for row, parts in folded(status["waiting"], "request"):
        if name in {row["name"], row["request"]}:
            found += _apart(found, _of_waiter(status, parts, look))
    for row, parts in folded(status["leases"], "lease"):
        if name in {row["name"], row["lease"]}:
            found += _apart(found, _of_lease(status, parts, look))
    for card in status["cards"]:
        if name in {card["card"], card["uuid"], card["pci"], str(card["index"])} and name:
            found += _apart(found, _of_card(status, card, look))
    return found


def _apart(before: list[Line], rows: list[Line]) -> list[Line]:
    return [[], *rows] if before else rows


# --- a waiter -------------------------------------------------------------------------------------


def _of_waiter(status: dict[str, Any], parts: list[Row], look: Look) -> list[Line]:
    """Return the sum of each card that is waited for, and why it waits there."""
    row = parts[0]
    size = "the whole card" if row["ask_mib"] is None else f"{ask_of(row)} GiB"
    place = "first in line" if row["position"] == 1 else f"no. {row['position']} in line"
    who = f"{plain(row['name'])} ({row['request']}) waits for {on_cards(parts)}"
    said = f"{who}: {size}, {row['priority']}, {place}, {exact(row['waited_s'])} so far"
    rows = [line((text, Style.HEAD)) for text in wrapped(said, look.width, 0)]
    for part in parts:
        card = _card_of(status, part)
        if card is not None:
            rows += [[], *_sum(status, card, look, part), *_asked(status, card, part, look)]
        rows += [[], *_said(with_letters(part, letters_of(status["leases"])), look)]
        if part["blockers"]:
            rows += _said(_expectation(part, card), look)
    if row["wait_left_s"] is not None:
        wait = exact(row["waited_s"] + row["wait_left_s"])
        rows += _said(f"gives up in {exact(row['wait_left_s'])} (--wait {wait})", look)
    return rows


def _expectation(row: Row, card: Row | None) -> str:
    """Return when it is likely granted, and which figure that rests on."""
    if row["eta_s"] is None:
        return f"likely {likely(row)}"
    begin = f"likely in {about(row['eta_s'])}"
    of = row["eta_of"]
    if of == "handoff" and card is not None and card.get("handoff_median_s") is not None:
        took = f"{card['handoff_median_s']:.1f}s (median of {card['handoffs']})"
        return f"{begin}: a hand-off here took {took}; what is in flight may take longer"
    reasons = {
        "turn": "when the turn is over",
        "hold": "when the hold is over",
        "restart": "when berthd has heard of its holders",
    }
    return f"{begin}: {reasons[of]}" if of in reasons else begin


def _asked(status: dict[str, Any], card: Row, row: Row, look: Look) -> list[Line]:
    """Return what is asked, what it lacks, and what there will be."""
    room = room_of(card)
    if row["ask_mib"] is None:
        return _asked_whole(status, card, row, look)
    short = None if room is None else row["ask_mib"] - room
    lacks = "" if short is None else f"short of {show_gib(short)}" if short > 0 else "fits"
    width = _width(status, card)
    rows = _figures("you ask", row["ask_mib"], lacks, width, look)
    then = row.get("then_mib")
    if then is not None:
        names = ", ".join(plain(blocker["who"]) for blocker in row["blockers"])
        fits = "fits" if then >= row["ask_mib"] else f"short of {show_gib(row['ask_mib'] - then)}"
        rows += _figures(f"after {names}", then, fits, width, look)
    return rows


def _asked_whole(status: dict[str, Any], card: Row, row: Row, look: Look) -> list[Line]:
    """Return what the whole card is: what is left of it, and all that has to go first.

    What may stay is what the books take off for others: stowaways that are no squatters.
    """
    must_go = sum(counts(one) for one in status["leases"] if one["card"] == card["card"])
    must_go += sum(one["mib"] or 0 for one in row["blockers"] if one["how"] == "stowaway")
    lacks = f", short of {show_gib(must_go)}" if must_go else ""
    whole = max(0, _books(status, card) + must_go)
    return _figures("you ask", whole, f"the whole card{lacks}", _width(status, card), look)


# --- a lease, a card ------------------------------------------------------------------------------


def _of_lease(status: dict[str, Any], parts: list[Row], look: Look) -> list[Line]:
    row = parts[0]
    said = f"{_what(row, parts)}, {row['priority']}, {row['state']}, for {span(row['since_s'])}"
    rows = [line((text, Style.HEAD)) for text in wrapped(said, look.width, 0)]
    for part in parts:
        card = _card_of(status, part)
        if card is not None:
            rows += [[], *_sum(status, card, look, None)]
    facts = list(dict.fromkeys(plain(part["note"]) for part in parts if part.get("note")))
    if row.get("way_out"):
        facts.append(f"way out:  {plain(row['way_out'])}")
    if row["turn_left_s"]:
        facts.append(f"its turn lasts {exact(row['turn_left_s'])} more")
    if row["pinned"]:
        facts.append("pinned: only a hold or a person drains it")
    pids = {pid for part in parts for pid in part["pids"]}
    if pids:
        facts.append(f"pids {', '.join(str(pid) for pid in sorted(pids))}")
    facts += [_waits(one) for one in status["waiting"] if _is_behind(one, row)]
    return [*rows, *([[]] if facts else []), *(text for one in facts for text in _said(one, look))]


def _what(row: Row, parts: list[Row]) -> str:
    """Return who has how much of which card."""
    who, where = f"{plain(row['name'])} ({row['lease']})", on_cards(parts)
    uses = f"{gib(used_of(parts))} GiB"
    if row["state"] in {"releasing", "stuck"}:
        return f"{who} said it gave {where} back: {uses} still there"
    asked = "asked for the whole card" if row["ask_mib"] is None else f"of {ask_of(row)} asked"
    return f"{who} holds {where}: {uses} {asked}"


def _waits(waiter: Row) -> str:
    return f"{plain(waiter['name'])} waits for it: {plain(waiter['why'])}"


def _is_behind(waiter: Row, lease: Row) -> bool:
    return any(
        (blocker.get("lease") or blocker.get("ref")) == lease["lease"]
        for blocker in waiter["blockers"]
    )


def _of_card(status: dict[str, Any], card: Row, look: Look) -> list[Line]:
    room, capacity = gib(room_of(card)), gib(card["capacity_mib"])
    head = f"{plain(card['card'])} {product_of(card)}: {room} of {capacity} GiB free"
    if card["state"] != "ok":
        why = plain(card["why"] or NOT_READ)
        head = f"{plain(card['card'])} {product_of(card)}: {card['state']}: {why}"
    rows = [line((text, Style.HEAD)) for text in wrapped(head, look.width, 0)]
    rows += [[], *_sum(status, card, look, None)]
    waiting = [row for row in status["waiting"] if row["card"] == card["card"]]
    if waiting:
        rows.append([])
    letters = letters_of(status["leases"])
    for row in waiting:
        mark = f"  {row['position']} "
        said = f"{plain(row['name'])} ({ask_of(row)}): {with_letters(row, letters)}"
        texts = wrapped(f"{said}; {likely(row)}", look.width, len(mark), mark)
        rows += [line(text) for text in texts]
    return rows


# --- the sum --------------------------------------------------------------------------------------


def _sum(status: dict[str, Any], card: Row, look: Look, waiter: Row | None) -> list[Line]:
    width = _width(status, card)
    if card["capacity_mib"] is None:
        why = plain(card["why"] or "")
        because = "" if why in {"", NOT_READ} else f": {why}"
        return [line(f"  {plain(card['card'])} is {NOT_READ}{because}")]
    baseline = f"total {gib(card['total_mib'])} less baseline {gib(card['baseline_mib'])}"
    label = f"{plain(card['card'])} can hand out"
    rows = _figures(label, card["capacity_mib"], baseline, width, look)
    letters = letters_of(status["leases"])
    for row in status["leases"]:
        if row["card"] == card["card"]:
            label = f"{letters[row['lease']]} {plain(row['name'])}"
            rows += _figures(label, -counts(row), _doing(row, waiter), width, look)
    strangers = [row for row in status["stowaways"] if row["card"] == card["card"]]
    sizes = [row["used_mib"] for row in strangers if row["used_mib"] is not None]
    if strangers:
        names = ", ".join(dict.fromkeys(plain(row["name"]) for row in strangers))
        rows += _figures("stowaways", -sum(sizes), names, width, look)
    if card["unexplained_mib"]:
        rows += _figures("nobody's", -card["unexplained_mib"], "in use by no process", width, look)
    rows.append(line(f"  {'-' * (width + _FIGURE + 1)}"))
    says = "the card cannot be read" if card["state"] != "ok" else _card_says(card)
    rows += _figures("by the books", _books(status, card), says, width, look)
    return rows


def _books(status: dict[str, Any], card: Row) -> int:
    """Return what the books have left; added up here where the status does not say so."""
    if card.get("books_free_mib") is not None:
        return int(card["books_free_mib"])
    leases = sum(counts(row) for row in status["leases"] if row["card"] == card["card"])
    others = sum(row["used_mib"] or 0 for row in status["stowaways"] if row["card"] == card["card"])
    return int(card["capacity_mib"] - leases - others - (card["unexplained_mib"] or 0))


def _card_says(card: Row) -> str:
    driver = card.get("driver_free_mib")
    return f"the card says {gib(card['free_mib'] if driver is None else driver)}"


def _doing(row: Row, waiter: Row | None) -> str:
    """Return what a holder is at, and whether it is of any use to the waiter."""
    words = [row["state"]]
    flying = row.get("in_flight")
    if flying:
        what = flying["what"] if flying["n"] == 1 else f"{flying['what'].removesuffix('y')}ies"
        words.append(f"{flying['n']} {what} in flight")
    if waiter is not None:
        if _is_behind(waiter, row):
            blocker = next(
                b for b in waiter["blockers"] if (b.get("lease") or b["ref"]) == row["lease"]
            )
            if blocker["how"] in {"in_turn", "juggle"} and blocker["left_s"] is not None:
                words.append(f"keeps its turn for {exact(blocker['left_s'])}")
            elif blocker["how"] in {"pinned", "busy", "outranks"}:
                words.append(blocker["how"])
        elif waiter["ask_mib"] is None:
            words.append("in your way")
        elif row["state"] == "running" and not _looks_no_further(waiter):
            words.append("not needed for you")
    return ", ".join(words)


def _looks_no_further(waiter: Row) -> bool:
    """Tell whether a waiter waits for something that says nothing of who else is in its way."""
    return any(blocker["how"] in {*NOT_OF_ROOM, "claimed"} for blocker in waiter["blockers"])


def _figures(label: str, mib: int, remark: str, width: int, look: Look) -> list[Line]:
    """Return one line of a sum; a remark for which there is no room stands below."""
    figure = f"{'-' if mib < 0 else ''}{show_gib(abs(mib))}"
    begin = f"  {padded(label, width)} {figure:>{_FIGURE}}"
    if not remark:
        return [line(begin)]
    whole = f"{begin}   {remark}"
    if look.width is None or cells(whole) <= look.width:
        return [line(whole)]
    return [line(begin), *(line(text) for text in wrapped(remark, look.width, _REMARK_AT))]


def _width(status: dict[str, Any], card: Row) -> int:
    labels = [f"{plain(card['card'])} can hand out"]
    labels += [f"x {plain(row['name'])}" for row in status["leases"] if row["card"] == card["card"]]
    return min(40, max(_LABEL_LEAST, *(cells(label) for label in labels)))


def _card_of(status: dict[str, Any], row: Row) -> Row | None:
    return next((card for card in status["cards"] if card["card"] == row["card"]), None)


def _said(text: str, look: Look) -> list[Line]:
    return [line(one) for one in wrapped(text, look.width, 2)]
