"""How llama-server says that nothing is in flight (measured on builds b10434 and b11434).

`/slots` lists one object a slot; only `is_processing` tells whether it is busy (a slot keeps its
last task's fields). Requests that wait for a slot are in no slot: `/metrics` counts them, where it
is switched on. A server that sleeps is woken by `/slots` and not by `/props`, so that is asked
first.
"""

import re
from typing import Final

import msgspec

_DEFERRED: Final = re.compile(r"^llamacpp:requests_deferred\s+([0-9.]+)", re.MULTILINE)


class _Slot(msgspec.Struct):
    is_processing: bool
    id_task: int | None = None


class _Props(msgspec.Struct):
    is_sleeping: bool = False


class Slots(msgspec.Struct, frozen=True):
    """What /slots shows: how many are at work, and whether any ever was."""

    processing: int
    used: bool


def parse_slots(body: bytes) -> Slots:
    """Read the answer of /slots.

    Raises:
        ValueError: it is no list of slots.
    """
    slots = msgspec.json.decode(body, type=list[_Slot])
    return Slots(
        processing=sum(slot.is_processing for slot in slots),
        used=any(slot.id_task is not None for slot in slots),
    )


def parse_sleeping(body: bytes) -> bool:
    """Read from the answer of /props whether the server sleeps; an odd answer is no sleep."""
    try:
        return msgspec.json.decode(body, type=_Props).is_sleeping
    except msgspec.MsgspecError:
        return False


def parse_deferred(body: bytes) -> int:
    """Read from the answer of /metrics how many requests wait for a slot; 0 where not told."""
    found = _DEFERRED.search(body.decode(errors="replace"))
    return 0 if found is None else int(float(found[1]))
