"""What a shell completes: names that a live berthd knows. Quick, and silent when there is none."""

import os
from collections.abc import Callable
from typing import Any, Final

from berth.errors import BerthError
from berth.kinds import KINDS

RUN_PRIORITIES: Final = ("foreground", "interactive", "batch", "background")
_WITHIN: Final = 0.3


def complete_names(incomplete: str) -> list[str]:
    """Return engines, leases, requests and cards that begin so."""
    return _begin(incomplete, lambda status: [*_leases(status), *_waiting(status), *_cards(status)])


def complete_leases(incomplete: str) -> list[str]:
    """Return engines, leases and requests that begin so."""
    return _begin(incomplete, lambda status: [*_leases(status), *_waiting(status)])


def complete_cards(incomplete: str) -> list[str]:
    """Return cards that begin so, and `all`."""
    return _begin(incomplete, lambda status: [*_cards(status), "all"])


def complete_card_to_run_on(incomplete: str) -> list[str]:
    """Return cards that begin so (of a list: its last), and `any`."""
    before, comma, last = incomplete.rpartition(",")
    found = _begin(last, lambda status: [*_cards(status), *([] if comma else ["any"])])
    return [f"{before}{comma}{card}" for card in found if card not in before.split(",")]


def complete_priorities(incomplete: str) -> list[str]:
    """Return the priorities that begin so."""
    return [word for word in RUN_PRIORITIES if word.startswith(incomplete)]


def complete_kinds(incomplete: str) -> list[str]:
    """Return families and kinds of events that begin so."""
    every = [*KINDS, *(f"{family}.{kind}" for family, kinds in KINDS.items() for kind in kinds)]
    return sorted(word for word in every if word.startswith(incomplete))


def complete_holds(incomplete: str) -> list[str]:
    """Return cards that somebody holds, the holds' leases, and `all`."""

    def held(status: dict[str, Any]) -> list[str]:
        rows = [row for row in status["leases"] if row["priority"] == "hold"]
        return [*(row["card"] for row in rows), *(row["lease"] for row in rows), "all"]

    return _begin(incomplete, held)


def _begin(incomplete: str, names: Callable[[dict[str, Any]], list[str]]) -> list[str]:
    status = _status()
    found = [] if status is None else names(status)
    return sorted({name for name in found if name.startswith(incomplete) and name.isprintable()})


def _status() -> dict[str, Any] | None:
    from berth.client import Client
    from berth.paths import socket_path

    try:
        with Client(socket_path(None, os.environ), answer_within=_WITHIN) as client:
            return client.call("status")
    except (BerthError, OSError, ValueError, KeyError):
        return None


def _leases(status: dict[str, Any]) -> list[str]:
    return [word for row in status["leases"] for word in (row["name"], row["lease"])]


def _waiting(status: dict[str, Any]) -> list[str]:
    return [word for row in status["waiting"] for word in (row["name"], row["request"])]


def _cards(status: dict[str, Any]) -> list[str]:
    return [card["card"] for card in status["cards"]]
