"""`berth status --format csv`: one flat table for cards, leases, waiters, stowaways and claims.

RFC 4180, the header always; MiB and seconds are whole numbers, what is absent is empty. What a
spreadsheet would take for a formula is written as text.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

HEADS: Final = (
    "kind",
    "card",
    "name",
    "lease",
    "state",
    "priority",
    "ask_mib",
    "used_mib",
    "for_s",
    "why",
)
_FORMULA: Final = frozenset("=+-@\t\r")


def status_csv(status: dict[str, Any]) -> str:
    """Return a status as CSV."""
    rows: list[Sequence[object]] = [HEADS]
    for card in status["cards"]:
        state, why = card["state"], card["why"]
        used = card["used_mib"]
        rows.append(
            ("card", card["card"], card["product"], None, state, None, None, used, None, why)
        )
    rows += [_lease(row) for row in status["leases"]]
    rows += [_waiter(row) for row in status["waiting"]]
    rows += [_stowaway(row) for row in status["stowaways"]]
    for claim in status.get("claims") or []:
        since, pid = claim.get("for_s"), f"pid {claim['pid']}"
        rows.append(
            ("claim", None, claim["name"], None, claim["kind"], None, None, None, since, pid)
        )
    return table_csv(rows)


def _lease(row: dict[str, Any]) -> Sequence[object]:
    return (
        "lease",
        row["card"],
        row["name"],
        row["lease"],
        row["state"],
        row["priority"],
        row["ask_mib"],
        row["used_mib"],
        row["since_s"],
        row["note"],
    )


def _waiter(row: dict[str, Any]) -> Sequence[object]:
    return (
        "waiter",
        row["card"],
        row["name"],
        row["request"],
        "waiting",
        row["priority"],
        row["ask_mib"],
        None,
        row["waited_s"],
        row["why"],
    )


def _stowaway(row: dict[str, Any]) -> Sequence[object]:
    state = "squatter" if row["squatter"] else "allowed"
    where = row["container"] or f"pid {row['pid']}"
    return (
        "stowaway", row["card"], row["name"], None, state, None, None, row["used_mib"], None, where
    )  # fmt: skip


def table_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV, each line ended by CR LF."""
    return "".join(",".join(_field(value) for value in row) + "\r\n" for row in rows)


def _field(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return str(int(value))
        case str():
            text = f"'{value}" if value[:1] in _FORMULA else value
            quoted = any(char in text for char in ',"\r\n')
            return '"' + text.replace('"', '""') + '"' if quoted else text
        case _:
            return str(value)
