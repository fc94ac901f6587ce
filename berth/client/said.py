"""From JSON to what a script's lease hears, and back: which answer belongs to what was asked."""

from collections.abc import Mapping
from typing import Any

import msgspec

from berth.client.messages import (
    Done,
    Failure,
    Granted,
    LeasedCard,
    Ordered,
    Queued,
    Refused,
    Send,
    TenancyEvent,
)
from berth.units import Instant
from berth.wire import PROTOCOL


class Talk:
    """One conversation: numbers what is asked, and knows what each answer answers."""

    def __init__(self) -> None:
        self._number = 0
        self._asked: dict[str, Send] = {}

    def ask(self, send: Send) -> bytes:
        """Return an operation as it goes out."""
        self._number += 1
        message_id = str(self._number)
        self._asked[message_id] = send
        return msgspec.json.encode({"v": PROTOCOL, "id": message_id, "op": send.op, **send.fields})

    def hear(self, message: Mapping[str, Any]) -> TenancyEvent | None:
        """Return what a message means to the lease, None when nothing."""
        if "order" in message:
            return Ordered(
                order=message["order"],
                lease=message.get("lease", ""),
                attempt=message.get("attempt", 0),
                why=message.get("why", ""),
            )
        message_id = message.get("id", "")
        asked = self._asked.get(message_id)
        if asked is None:
            return None
        if message.get("last"):
            del self._asked[message_id]
        if not message.get("ok"):
            failure = failure_of(message.get("error") or {})
            return Refused(op=asked.op, lease=asked.fields.get("lease") or "", failure=failure)
        return _answer(asked, message.get("data") or {}, last=bool(message.get("last")))


def _answer(asked: Send, data: Mapping[str, Any], *, last: bool) -> TenancyEvent:
    if not last:
        return Queued(
            request=data.get("request", ""),
            card=data.get("card", ""),
            position=data.get("position", 0),
            why=data.get("why", ""),
        )
    if asked.op == "lease.request":
        start_by = data.get("start_by")
        return Granted(
            lease=data["lease"],
            name=data.get("name", ""),
            cards=msgspec.convert(data.get("cards", ()), tuple[LeasedCard, ...]),
            start_by=None if start_by is None else Instant(start_by),
        )
    return Done(op=asked.op, lease=data.get("lease") or asked.fields.get("lease") or "")


def failure_of(error: Mapping[str, Any]) -> Failure:
    """Return an answer's error."""
    return Failure(
        code=error.get("code", "internal"),
        message=error.get("message", "berthd gave no reason"),
        hint=error.get("hint", ""),
        waited_out=error.get("waited_out", False),
    )
