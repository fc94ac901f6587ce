"""All that the journal hears."""

from dataclasses import dataclass
from typing import TypeAlias

from berth.actors.journal.messages import ReadEvents, ReadKept, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """From the journal's own shell: a batch is on disk."""

    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFailed:
    """From the journal's own shell: a batch is not on disk; nothing of it is."""

    batch: int
    why: str


@dataclass(frozen=True, slots=True)
class JournalTick:
    """From the ticker: time has passed."""


JournalInbox: TypeAlias = Record | ReadEvents | ReadKept | Written | WriteFailed | JournalTick
