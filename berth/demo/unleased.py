"""How the cards stand where nobody governs them, in the shape of a node's status."""

from typing import Any

from berth.demo.crew import BASELINE_MIB, BROWSER, CARDS, TOTAL_MIB
from berth.demo.sampler import ROOM_MIB
from berth.demo.show import Show


def status_of_claims(show: Show) -> dict[str, Any]:
    """Return who has claimed what, as far as it has been seen."""
    claims = [
        (f"gpu{card}", pid, show.stage.name_of(pid), mib)
        for card in range(CARDS)
        for pid, mib in sorted(show.sampler.claims[card].items())
    ]
    leases = [row for row in claims if row[2] != BROWSER.name]
    return {
        "cards": [_card(f"gpu{card}", show.sampler.claims[card]) for card in range(CARDS)],
        "leases": [_engine(*row) for row in leases],
        "waiting": [],
        "stowaways": [
            {"card": card, "pid": pid, "name": name, "used_mib": mib}
            for card, pid, name, mib in claims
            if name == BROWSER.name
        ],
    }


def _card(name: str, claims: dict[int, int]) -> dict[str, Any]:
    free = ROOM_MIB - sum(claims.values())
    return {
        "card": name,
        "state": "ok",
        "total_mib": TOTAL_MIB,
        "baseline_mib": BASELINE_MIB,
        "unexplained_mib": 0,
        "books_free_mib": free,
        "driver_free_mib": max(0, free),
        "free_mib": max(0, free),
    }


def _engine(card: str, pid: int, name: str, mib: int) -> dict[str, Any]:
    return {
        "lease": str(pid),
        "card": card,
        "name": name,
        "priority": "",
        "state": "running",
        "used_mib": mib,
        "turn_left_s": 0.0,
    }
