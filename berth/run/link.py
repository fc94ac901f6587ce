"""What berthd says on the wrapper's line becomes an event of the run (`messages.py`)."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import zmq

from berth.client.line import Line, Presence
from berth.run.messages import (
    Attached,
    Card,
    Connected,
    Disconnected,
    LeaseGiven,
    LeaseGone,
    LeaseShown,
    Ordered,
    Queued,
    Refused,
    ReleaseHeard,
    RunEvent,
)
from berth.units import Seconds
from berth.wire import PROTOCOL


class Link:
    """One line to berthd. `register` it with a poller; `events` is what has come since."""

    def __init__(self, path: Path) -> None:
        self._line = Line(path)
        self._numbers = itertools.count(1)
        self._ops: dict[str, str] = {}
        self._lease = ""

    def register(self, poller: zmq.Poller) -> None:
        """Have a poller wait on this line."""
        self._line.register(poller)

    def send(self, op: str, fields: Mapping[str, Any]) -> None:
        """Send an operation, if berthd is there."""
        message_id = str(next(self._numbers))
        body = msgspec.json.encode({"v": PROTOCOL, "id": message_id, "op": op, **fields})
        if self._line.send(body):
            self._ops[message_id] = op

    def ask_shown(self, lease: str) -> None:
        """Ask for the status of one lease."""
        self._lease = lease
        self.send("status", {})

    def events(self, poller: zmq.Poller) -> list[RunEvent]:
        """Return what has happened on the line since, in order."""
        found: list[RunEvent] = []
        for news in self._line.news(poller):
            match news:
                case Presence.THERE:
                    found.append(Connected())
                case Presence.GONE:
                    found.append(Disconnected())
                case _:
                    event = self._translate(news)
                    if event is not None:
                        found.append(event)
        return found

    def _translate(self, message: dict[str, Any]) -> RunEvent | None:
        if "order" in message:
            return Ordered(
                order=message["order"],
                attempt=message.get("attempt", 0),
                why=message.get("why", ""),
                at_once=message.get("now", False),
            )
        message_id = message.get("id", "")
        op = self._ops.pop(message_id, "") if message.get("last") else self._ops.get(message_id, "")
        if not message.get("ok"):
            return _refused(op, message.get("error") or {})
        data = message.get("data") or {}
        if not message.get("last"):
            return Queued(
                request=data.get("request", ""),
                why=data.get("why", ""),
                position=data.get("position", 0),
                cards=",".join(data.get("cards") or ()),
                reason=",".join(f"{b['who']} {b['how']}" for b in data.get("blockers") or ()),
                waiting=data.get("waiting", 1),
                eta=data.get("eta_s"),
            )
        return self._answer(op, data)

    def _answer(self, op: str, data: dict[str, Any]) -> RunEvent | None:
        match op:
            case "lease.request":
                cards = tuple(
                    Card(name=card["card"], uuid=card["uuid"], vendor=card["vendor"])
                    for card in data.get("cards", ())
                )
                return LeaseGiven(
                    lease=data["lease"],
                    name=data.get("name", ""),
                    cards=cards,
                    start_by=data.get("start_by"),
                )
            case "attach":
                return Attached(lease=data["lease"])
            case "lease.release":
                return ReleaseHeard()
            case "status":
                return _shown(self._lease, data)
            case _:
                return None

    def close(self) -> None:
        """Close the line, once what was sent last is out."""
        self._line.close()


def _refused(op: str, error: dict[str, Any]) -> RunEvent | None:
    """Return a refusal that matters: of the request, or of a lease that is not ours any more.

    A berthd that has lost its journal may have given the number of this run's lease to another.
    """
    if op in {"lease.started", "attach"} and error.get("code") in {"not_found", "not_yours"}:
        return LeaseGone()
    if op not in {"lease.request", "lease.release"}:
        return None
    return Refused(
        code=error.get("code", "internal"),
        message=error.get("message", "berthd gave no reason"),
        hint=error.get("hint", ""),
        waited_out=error.get("waited_out", False),
    )


def _shown(lease: str, status: dict[str, Any]) -> LeaseShown:
    rows = [row for row in status.get("leases", ()) if row["lease"] == lease]
    ages = {card["card"]: card["reading_age_s"] for card in status.get("cards", ())}
    used = [row["used_mib"] for row in rows]
    known = all(mib is not None for mib in used)
    known_ages = [ages.get(row["card"]) for row in rows]
    oldest = max((1e9 if age is None else age for age in known_ages), default=0.0)
    return LeaseShown(used_mib=sum(used) if known else None, reading_age=Seconds(oldest))
