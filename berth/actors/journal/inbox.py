"""All that the journal hears."""

from typing import TypeAlias

import msgspec

from berth.actors.journal.messages import ReadEvents, ReadKept, Record


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal's own shell: a batch is on disk."""

    batch: int


class WriteFailed(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal's own shell: a batch is not on disk; nothing of it is."""

    batch: int
    why: str


class KeptUnread(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal's own shell: what is kept could not be read now; it was `asked` for."""

    asked: ReadKept


class JournalTick(msgspec.Struct, frozen=True):
    """From the ticker: time has passed."""


JournalInbox: TypeAlias = (
    Record | ReadEvents | ReadKept | Written | WriteFailed | KeptUnread | JournalTick
)
