"""Quantities and their units: MiB, seconds, instants; how each is read and written.

The only module that knows how many bytes a MiB has. Memory that is used or asked for rounds up,
capacity and free memory round down, so that a rounding never makes room that is not there.
"""

import re
from typing import Final, NewType

MiB = NewType("MiB", int)
"""Memory, in units of 2**20 bytes."""

Seconds = NewType("Seconds", float)
"""A span of time."""

Instant = NewType("Instant", float)
"""A point on the monotonic clock. It means nothing after a reboot."""

BYTES_PER_MIB: Final = 1024 * 1024
MIB_PER_GIB: Final = 1024
NOTHING: Final = MiB(0)

_DURATION: Final = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_BARE_SECONDS: Final = re.compile(r"\d+(?:\.\d+)?")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_WHOLE_SECONDS_FROM: Final = 10
_LONGEST_SHOWN: Final = 60  # characters of a word that is none
_MOST_DIGITS: Final = 18  # what JSON's readers take for a whole number
LONGEST_SPAN: Final = Seconds(10 * 365 * 86400.0)
"""The longest duration that is taken: ten years."""


def used_mib(size_bytes: int) -> MiB:
    """Return memory that is taken or asked for, rounded up."""
    return MiB(-(-size_bytes // BYTES_PER_MIB))


def room_mib(size_bytes: int) -> MiB:
    """Return memory that can be handed out, rounded down."""
    return MiB(size_bytes // BYTES_PER_MIB)


def after(start: Instant, span: Seconds) -> Instant:
    """Return the instant `span` after `start`."""
    return Instant(start + span)


def since(start: Instant, now: Instant) -> Seconds:
    """Return how long ago `start` was, never negative."""
    return Seconds(max(0.0, now - start))


def left(deadline: Instant, now: Instant) -> Seconds:
    """Return how long it is until `deadline`, never negative."""
    return Seconds(max(0.0, deadline - now))


def parse_duration(text: str) -> Seconds:
    """Read `5s`, `1.5s`, `700s`, `1m30s`, `2h` or a bare number of seconds.

    Raises:
        ValueError: `text` is none of these; the message is a sentence for a person.
    """
    if _BARE_SECONDS.fullmatch(text):
        return _bounded(float(text))
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        raise ValueError(f"{_cut(text)!r} is no duration; write 90, 90s, 1m30s or 2h")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return _bounded(hours * _HOUR + minutes * _MINUTE + seconds)


def _bounded(span: float) -> Seconds:
    if span > LONGEST_SPAN:
        raise ValueError("a duration is not longer than ten years")
    return Seconds(span)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def parse_count(text: str) -> int | None:
    """Read a whole number of a person's, None where it is none or larger than anything counted."""
    word = text.strip()
    plain = word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS
    return int(word) if plain else None


def show_duration(span: Seconds) -> str:
    """Write a span for people: `0.4s`, `41s`, `3m12s`, `2h04m`, `2d04h`."""
    if span < _WHOLE_SECONDS_FROM:
        return f"{span:.1f}".removesuffix(".0") + "s"
    whole = int(span)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02d}s".removesuffix("00s")
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR:02d}h"


def show_line(text: str, longest: int = 500) -> str:
    """Write foreign text for people: one line, no control character, not longer than that.

    A process may be called anything, an escape sequence included.
    """
    line = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def show_about(span: Seconds) -> str:
    """Write an expectation, no finer than it can be meant: `~20s`, `~2m`, `~3h`."""
    if span < _MINUTE:
        return f"~{max(1, round(span))}s"
    if span < _HOUR:
        return f"~{round(span / _MINUTE)}m"
    if span < _DAY:
        return f"~{round(span / _HOUR)}h"
    return f"~{round(span / _DAY)}d"


def show_gib(size: int) -> str:
    """Write memory for people, in GiB with one decimal: `14.0`."""
    return f"{size / MIB_PER_GIB:.1f}"
