"""Hand-offs and waits, read off the events of a node. Pure.

A card changes hands when a lease is granted on it after somebody was asked to leave for it and has
left: it took from the first order to the grant. A lease on two cards is told once on each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

Event: TypeAlias = Mapping[str, Any]
"""An event as it is told over the socket."""


@dataclass(slots=True)
class _Card:
    """One card: who was asked to leave, since when, and whether somebody of them has left."""

    asked: dict[str, float] = field(default_factory=dict)
    left_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOff:
    """A card went from hand to hand: to whom, in how long."""

    card: str
    to: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Who was granted after how long, and what berthd said of it."""

    name: str
    seconds: float
    why: str


@dataclass(slots=True)
class HandOffs:
    """What was seen so far. Feed it every event, in order."""

    done: list[HandOff] = field(default_factory=list)
    waits: dict[str, Wait] = field(default_factory=dict)
    """The wait of each lease that was granted."""
    refused: int = 0
    contested: int = 0
    _cards: dict[str, _Card] = field(default_factory=dict)

    def hear(self, event: Event) -> HandOff | None:
        """Take one event; return the hand-off that it completes."""
        kind, lease = event["kind"], event["lease"]
        card = self._cards.setdefault(event["card"], _Card()) if event["card"] else _Card()
        match kind:
            case "lease.draining":
                card.asked.setdefault(lease, _moment(event))
            case "lease.kept":
                card.asked.pop(lease, None)
            case "lease.freed":
                asked = card.asked.pop(lease, None)
                if asked is not None:
                    card.left_at = asked if card.left_at is None else min(card.left_at, asked)
            case "lease.granted":
                return self._granted(event, card)
            case "lease.refused":
                self.refused += 1
            case "lease.contested":
                self.contested += 1
            case _:
                pass
        return None

    def _granted(self, event: Event, card: _Card) -> HandOff | None:
        wait = Wait(name=event["name"], seconds=event["waited_s"], why=event["why"])
        known = self.waits.get(event["lease"])
        if known is None or known.seconds < wait.seconds:
            self.waits[event["lease"]] = wait
        if card.left_at is None:
            return None
        took = max(0.0, _moment(event) - card.left_at)
        card.left_at = None
        hand_off = HandOff(card=event["card"], to=event["name"], seconds=took)
        self.done.append(hand_off)
        return hand_off


def _moment(event: Event) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()
