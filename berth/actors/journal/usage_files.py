"""What engines needed, as files that people may read: `usage.json`, `usage.gpu1.json` … (B7).

`usage.json` is the first card's. Each file names the card it is of by its UUID: after a reboot that
changes the indices a card finds its own again. A damaged file is set aside, never dropped.
"""

import logging
import os
from pathlib import Path
from typing import Final

import msgspec

from berth.actors.journal.messages import SaveUsage
from berth.ids import CardName
from berth.units import MiB

log = logging.getLogger(__name__)

FIRST: Final = CardName("gpu0")


class _Engine(msgspec.Struct, kw_only=True):
    runs: int
    peak_mib: int
    recent_mib: list[int]


class _File(msgspec.Struct, kw_only=True):
    v: int = 1
    card: str
    name: str
    engines: dict[str, _Engine]


def usage_path(folder: Path, card: CardName) -> Path:
    """Return the file of a card."""
    return folder / ("usage.json" if card == FIRST else f"usage.{card}.json")


def write_usage(folder: Path, entry: SaveUsage) -> None:
    """Write a card's file, whole or not at all. One that cannot be written costs no grant."""
    engines = {
        name: _Engine(runs=runs, peak_mib=max(peaks, default=0), recent_mib=list(peaks))
        for name, (runs, peaks) in sorted(entry.engines.items())
    }
    content = _File(card=entry.card_key, name=entry.card, engines=engines)
    path = usage_path(folder, entry.card)
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        beside.replace(path)
    except OSError as error:
        log.warning("%s was not written: %s", path, error.strerror)


def read_usage(folder: Path) -> dict[str, SaveUsage]:
    """Return what was learned, by the card's key. Of two files for one card the fuller counts."""
    found: dict[str, SaveUsage] = {}
    for path in sorted(folder.glob("usage*.json")):
        entry = _read(path)
        if entry is None:
            continue
        known = found.get(entry.card_key)
        if known is None or _runs(known) < _runs(entry):
            found[entry.card_key] = entry
    return found


def _runs(entry: SaveUsage) -> int:
    return sum(runs for runs, _ in entry.engines.values())


def _read(path: Path) -> SaveUsage | None:
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_File)
        engines = {name: (one.runs, _peaks(one)) for name, one in content.engines.items()}
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        _set_aside(path, error)
        return None
    return SaveUsage(card_key=content.card, card=CardName(content.name), engines=engines)


def _peaks(engine: _Engine) -> tuple[MiB, ...]:
    if engine.runs < 0 or any(mib < 0 for mib in engine.recent_mib):
        raise ValueError("a figure below zero")
    return tuple(MiB(mib) for mib in engine.recent_mib)


def _set_aside(path: Path, error: Exception) -> None:
    aside = path.with_name(f"{path.name}.damaged")
    try:
        os.replace(path, aside)  # noqa: PTH105 -- the name counts, not the object
    except OSError:
        aside = path
    log.error("%s cannot be read (%s): set aside as %s; sizes are learned anew", path, error, aside)
