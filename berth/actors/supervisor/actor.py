"""The supervisor's shell: starts actors, points slots, writes crash reports."""

import logging
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, assert_never

import msgspec
import pykka

from berth.actors.base import ActorDied, Address, BerthActor, Clock, Ping, SetAside, Slot
from berth.actors.journal.messages import Kept, ReadKept
from berth.actors.supervisor.core import Supervision, decide
from berth.actors.supervisor.messages import (
    AbandonChild,
    Care,
    ChildStarted,
    CloseChild,
    GiveUp,
    PingChild,
    PrepareChild,
    Report,
    StartChild,
    SupervisorEffect,
    SupervisorInbox,
    SupervisorTick,
)

log = logging.getLogger(__name__)

REPORTS_KEPT: Final = 20


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """How an actor of that role is started, and where others reach it.

    `start` starts an incarnation from what the journal kept. It runs in the supervisor's thread.
    `closed` is told why, when the role is given up for good.
    """

    slot: Slot[Any]
    care: Care
    start: Callable[[int, Kept], "pykka.ActorRef[Any]"]
    closed: Callable[[str], None] | None = None


class SupervisorActor(BerthActor[SupervisorInbox, Supervision, SupervisorEffect]):
    """Who runs, who is started again."""

    def __init__(
        self,
        *,
        state: Supervision,
        journal: Address[ReadKept],
        roles: Mapping[str, Role],
        reports: Path,
        give_up: Callable[[str], None],
        clock: Clock,
        own_slot: Slot[SupervisorInbox],
    ) -> None:
        super().__init__(
            role="supervisor",
            state=state,
            decide=decide,
            clock=clock,
            supervisor=own_slot,
        )
        self._journal = journal
        self._roles = roles
        self._reports = reports
        self._give_up = give_up

    def on_receive(self, message: SupervisorInbox | Ping | SetAside) -> None:
        """Take a tick with a sweep: whose thread is gone without a word?"""
        if isinstance(message, SupervisorTick):
            dead = {role for role, known in self._roles.items() if not known.slot.is_alive()}
            message = SupervisorTick(dead=frozenset(dead))
        super().on_receive(message)

    def perform(self, effect: SupervisorEffect) -> None:
        """Do what the core decided."""
        match effect:
            case PrepareChild():
                self._journal.tell(ReadKept(role=effect.role, incarnation=effect.incarnation))
            case StartChild():
                self._start(effect)
            case AbandonChild():
                self._roles[effect.role].slot.point(None)
                log.error("%s hangs; it is left behind and started anew", effect.role)
            case CloseChild():
                self._close(effect)
            case PingChild():
                self._roles[effect.role].slot.tell(Ping())
            case Report():
                self._write_report(effect)
            case GiveUp():
                log.critical("berthd ends: %s", effect.why)
                self._give_up(effect.why)
            case _:
                assert_never(effect)

    def _start(self, effect: StartChild) -> None:
        role = self._roles[effect.role]
        log.warning("%s is started again (no. %d)", effect.role, effect.incarnation)
        try:
            ref = role.start(effect.incarnation, effect.kept)
            for mark in effect.set_aside:
                ref.tell(SetAside(mark))
            role.slot.point(ref)
        except Exception:  # noqa: BLE001 -- whatever stops a role from starting is its death
            cause = traceback.format_exc()
            self.hear(ActorDied(effect.role, effect.incarnation, cause, effect, ()))
            return
        self.hear(ChildStarted(role=effect.role, incarnation=effect.incarnation))

    def _close(self, effect: CloseChild) -> None:
        role = self._roles[effect.role]
        role.slot.point(None)
        log.critical("%s is closed, it failed too often: %s", effect.role, effect.why)
        if role.closed is not None:
            role.closed(effect.why)

    def _write_report(self, effect: Report) -> None:
        """Write what broke an actor, and its last decisions, beside the journal."""
        died = effect.died
        log.error("%s failed on %r:\n%s", died.role, died.event, died.cause)
        lines = [died.cause, f"on: {died.event!r}", "", "its last decisions:", *died.story]
        name = f"crash-{died.role.replace(' ', '-')}-{died.incarnation}.txt"
        try:
            self._reports.mkdir(parents=True, exist_ok=True)
            (self._reports / name).write_text("\n".join(lines) + "\n")
            kept = sorted(self._reports.glob("crash-*.txt"), key=lambda path: path.stat().st_mtime)
            for old in kept[:-REPORTS_KEPT]:
                old.unlink()
        except OSError as error:
            log.warning("the crash report was not written: %s", error)
