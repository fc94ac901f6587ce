"""What a shell completes: names that a live berthd knows. Quick, and silent when there is none."""

import os
from collections.abc import Callable
from typing import Any, Final

from berth.errors import BerthError

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
