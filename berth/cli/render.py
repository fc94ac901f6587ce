"""Everything that is shown in tables: data in, text out."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from berth.units import Seconds, show_duration, show_gib


def render_status(status: dict[str, Any]) -> None:
    """Show a node's status."""
    console = Console(highlight=False)
    node = status["node"]
    uptime = show_duration(Seconds(node["uptime_s"]))
    console.print(f"berth {node['version']} on {node['name']}, up {uptime}")
    cards = [
        (
            c["card"],
            c["product"],
            c["state"],
            _gib(c["free_mib"]),
            _gib(c["capacity_mib"]),
            c["why"],
        )
        for c in status["cards"]
    ]
    _table(console, ("CARD", "PRODUCT", "STATE", "FREE", "OF", ""), cards)
    leases = [
        (r["lease"], r["name"], r["card"], r["state"], _gib(r["used_mib"]), _ask(r), r["note"])
        for r in status["leases"]
    ]
    _table(console, ("HOLD", "ENGINE", "CARD", "STATE", "GIB", "ASK", ""), leases)
    waiting = [
        (w["request"], w["name"], w["card"], w["priority"], _ask(w), w["why"])
        for w in status["waiting"]
    ]
    _table(console, ("WAIT", "ENGINE", "CARD", "PRIORITY", "ASK", "WHY"), waiting)
    stowaways = [
        (s["name"], s["card"], _gib(s["used_mib"]), f"pid {s['pid']}") for s in status["stowaways"]
    ]
    _table(console, ("STOWAWAY", "CARD", "GIB", ""), stowaways)


def _table(console: Console, heads: Sequence[str], rows: Iterable[Sequence[str | None]]) -> None:
    filled = [[cell or "" for cell in row] for row in rows]
    if not filled:
        return
    table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in filled:
        table.add_row(*row)
    console.print(table)


def _gib(mib: int | None) -> str:
    return "?" if mib is None else show_gib(mib)


def _ask(row: dict[str, Any]) -> str:
    return "card" if row["ask_mib"] is None else show_gib(row["ask_mib"])
