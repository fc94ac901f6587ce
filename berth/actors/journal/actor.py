"""The journal's shell: writes what its core decided, and passes on what rides on it."""

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import assert_never

from berth.actors.base import ActorDied, Address, BerthActor, Clock, Pong
from berth.actors.card.messages import CardInbox
from berth.actors.journal.core import (
    Dated,
    Journal,
    JournalEffect,
    PassOn,
    Prune,
    PublishEvent,
    TellCards,
    TellKept,
    Write,
    decide,
    overlaid,
)
from berth.actors.journal.inbox import JournalInbox, KeptUnread, WriteFailed, Written
from berth.actors.journal.messages import KeptRead, ReadEvents
from berth.actors.journal.sqlite_file import is_damage
from berth.actors.journal.store import Store
from berth.actors.node.messages import EventsRead, EventTold, NodeInbox
from berth.ids import CardName
from berth.wire import EventMessage

log = logging.getLogger(__name__)


class JournalActor(BerthActor[JournalInbox, Journal, JournalEffect]):
    """What must outlive berthd, and the node's one sequence of events."""

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        node: Address[NodeInbox],
        cards: Mapping[CardName, Address[CardInbox]],
        boot_id: str,
        clock: Clock,
        supervisor: Address[ActorDied | Pong | KeptRead],
        wall: Callable[[], float] = time.time,
        incarnation: int = 0,
    ) -> None:
        super().__init__(
            role="journal",
            state=journal,
            decide=lambda state, event, now: decide(state, Dated(event=event, wall=wall()), now),
            clock=clock,
            supervisor=supervisor,
            incarnation=incarnation,
        )
        self._store = store
        self._node = node
        self._cards = cards
        self._boot_id = boot_id
        self._kept_reader = supervisor

    def begin(self) -> None:
        """Wait for no lock for long from now on: whoever asks whether this thread lives waits."""
        self._store.hurry()

    def perform(self, effect: JournalEffect) -> None:
        """Do what the core decided."""
        match effect:
            case Write():
                self._write(effect)
            case PassOn():
                self._node.tell(effect.message)
            case TellCards():
                for card in self._cards.values():
                    card.tell(effect.message)
            case PublishEvent():
                self._node.tell(EventTold(event=effect.event))
            case Prune():
                self._prune()
            case ReadEvents():
                self._read(effect)
            case TellKept():
                self._tell_kept(effect)
            case _:
                assert_never(effect)

    def _write(self, effect: Write) -> None:
        try:
            self._store.write(effect.batch)
        except sqlite3.Error as error:
            log.error("journal: %s", error)  # noqa: TRY400 -- a full disk is no bug to trace
            self.hear(WriteFailed(batch=effect.number, why=str(error)))
        else:
            self.hear(Written(batch=effect.number))

    def _tell_kept(self, effect: TellKept) -> None:
        """Tell what is kept. Of a damaged file the journal dies: the next berthd sets it aside."""
        asked = effect.asked
        try:
            kept = overlaid(self._store.kept(self._boot_id), effect.unwritten)
        except sqlite3.Error as error:
            if is_damage(error):
                raise
            log.warning("journal: what is kept for %s was not read: %s", asked.role, error)
            self.hear(KeptUnread(asked=asked))
        else:
            self._kept_reader.tell(
                KeptRead(role=asked.role, incarnation=asked.incarnation, kept=kept)
            )

    def _prune(self) -> None:
        try:
            self._store.prune()
        except sqlite3.Error as error:
            log.warning("journal: old events were not dropped: %s", error)

    def _read(self, effect: ReadEvents) -> None:
        events: tuple[EventMessage, ...] = ()
        try:
            events = self._store.events(effect.after_seq, effect.within, effect.limit)
        except (sqlite3.Error, ValueError) as error:
            log.warning("journal: events were not read: %s", error)
        self._node.tell(EventsRead(call=effect.call, events=events))
