"""CLAIM and PARK: a game or a VM that has the node, and the RAM that parked engines hold."""

from typing import Any

from berth.cli.render.figures import span
from berth.cli.render.lines import Line, Look, Style, line, wrapped
from berth.units import show_gib
from berth.words import plain

_TEXT_AT = 7


def claim_lines(status: dict[str, Any], look: Look) -> list[Line]:
    """Return what claims the node; nothing when nothing does."""
    rows: list[Line] = []
    for claim in status.get("claims") or []:
        since = f"; {span(claim['for_s'])}" if claim.get("for_s") is not None else ""
        which = "every card" if len(claim["cards"]) == len(status["cards"]) else "its cards"
        pid = f"pid {claim['pid']}"
        what = f"{plain(claim['detail'])}, {pid}" if claim.get("detail") else pid
        said = f"{plain(claim['name'])} ({what}) holds {which}{since}"
        begin, *rest = wrapped(said, look.width, _TEXT_AT, "CLAIM")
        rows.append(line(("CLAIM", Style.HEAD), begin[5:]))
        rows += [line(text) for text in rest]
        back = "engines come back by themselves when it ends"
        rows += [line(text) for text in wrapped(back, look.width, _TEXT_AT)]
    return rows


def park_lines(status: dict[str, Any], look: Look) -> list[Line]:
    """Return what parked engines hold of the RAM that is set aside for them."""
    park = status.get("park") or {}
    names = [plain(row["name"]) for row in status["leases"] if row["state"] == "parked"]
    if not names or park.get("budget_mib") is None:
        return []
    verb = "holds" if len(names) == 1 else "hold"
    held, budget = show_gib(park["reserved_mib"]), show_gib(park["budget_mib"])
    said = f"{', '.join(names)} {verb} {held} of {budget} GiB RAM set aside"
    if park.get("available_mib") is not None:
        said += f"; {show_gib(park['available_mib'])} GiB available"
    begin, *rest = wrapped(said, look.width, 6, "PARK")
    return [line(("PARK", Style.HEAD), begin[4:]), *(line(text) for text in rest)]
