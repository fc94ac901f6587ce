"""The composition root: builds berthd's actors in order, and stops them in reverse."""

import faulthandler
import gc
import logging
import os
import socket as sockets
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pykka
from msgspec.structs import replace

from berth import __version__
from berth.actors.base import Address, Slot
from berth.actors.card.actor import CardActor
from berth.actors.card.messages import CardInbox, ForgetWaiters, SetPace, Tick, WatchAgain
from berth.actors.card.recovery import restored
from berth.actors.card.state import Settings
from berth.actors.journal.actor import JournalActor
from berth.actors.journal.core import Journal
from berth.actors.journal.inbox import JournalInbox, JournalTick
from berth.actors.journal.messages import Happened, Kept, Record
from berth.actors.journal.sqlite_file import is_locked
from berth.actors.journal.store import Store
from berth.actors.node.actor import Given, NodeActor
from berth.actors.node.messages import CardRestarted, CloseNode, NodeInbox, NodeTick
from berth.actors.node.recovery import parties, waiting
from berth.actors.node.state import Node
from berth.actors.supervisor.actor import Role, SupervisorActor
from berth.actors.supervisor.core import supervise
from berth.actors.supervisor.messages import Care, StandDown, SupervisorInbox, SupervisorTick
from berth.actors.ticker import Ticker
from berth.actors.trees.actor import TreesActor
from berth.actors.trees.messages import TreesInbox, TreesTick
from berth.door import NAME_ANOTHER_SOCKET, check_door, keep_mark
from berth.errors import BerthError, Code, Exit
from berth.ids import CardName
from berth.locks import OnlyOne, raise_file_limit
from berth.paths import (
    berthd_ran_this_boot,
    boot_id,
    lock_path,
    no_socket_in,
    prepare_socket_dir,
)
from berth.probes.actor import ProbeActor
from berth.probes.messages import ProbeInbox, ProbeTick
from berth.probes.source import CardSpec
from berth.standing import count
from berth.stopping import StopWishes
from berth.units import Instant, Seconds

log = logging.getLogger(__name__)

STOP_WITHIN: Final = Seconds(5.0)
CLOSE_WITHIN: Final = Seconds(5.0)
"""How long who waits may take to be answered when berthd stops."""
LOOK_EVERY: Final = Seconds(2.0)
"""How often berthd looks whether its locks are still its own."""
JOURNAL_NAME: Final = "journal.sqlite3"


class DaemonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What berthd is started with."""

    socket: Path
    state: Path
    cards: tuple[CardSpec, ...]
    settings: Settings = msgspec.field(default_factory=Settings)


def now() -> Instant:
    """Return the time as every core means it: the monotonic clock."""
    return Instant(time.monotonic())


def run_daemon(options: DaemonOptions, ready: Callable[[], None]) -> str:
    """Govern the cards until SIGTERM or SIGINT. Calls `ready` once clients are served.

    Returns why berthd failed, empty when it was asked to stop.

    Raises:
        BerthError: another berthd has the socket or the journal, or a directory cannot be used.
    """
    prepare_socket_dir(options.socket)
    check_door(options.socket)
    raise_file_limit()
    with _only_one_at(options.socket) as door, _only_one_in(options.state) as state:
        daemon = Daemon(options, door, state)
        daemon.start()
        keep_mark(options.socket)
        ready()
        daemon.wait()
        return daemon.stop()


def _only_one_at(socket: Path) -> OnlyOne:
    hint = "berth status shows what it governs; stop it first, or name another --socket"
    try:
        return OnlyOne(lock_path(socket), str(socket), hint=hint, way_out=NAME_ANOTHER_SOCKET)
    except OSError as error:
        raise no_socket_in(socket.parent, error) from error


def _only_one_in(state: Path) -> OnlyOne:
    """Take the lock of a state folder: two berthds would each grant what the other has granted."""
    another = "name another folder with BERTH_STATE_DIR"
    hint, way_out = f"stop it first, or {another}", f"move it away, or {another}"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        return OnlyOne(state / "lock", f"its journal in {state}", hint=hint, way_out=way_out)
    except OSError as error:
        raise _no_journal(state, error) from error


def _no_journal(where: Path, error: Exception) -> BerthError:
    hint = "free the disk, or name another folder with BERTH_STATE_DIR"
    if is_locked(error):
        hint = f"another program holds it locked (a sqlite3 shell, a backup?): fuser {where}"
    return BerthError(
        Code.NO_JOURNAL,
        f"the journal cannot be opened at {where}: {error}",
        hint=hint,
        exit_status=Exit.CONFIG,
    )


def _open_journal(path: Path, lock: OnlyOne, boot: str) -> tuple[Store, Kept]:
    """Open the journal, and read what is kept in it.

    Raises:
        BerthError: none can be made there: without one no grant would outlive berthd.
    """
    try:
        store = Store(path, lock.lost)
        return store, store.kept(boot)
    except (OSError, sqlite3.Error) as error:
        raise _no_journal(path, error) from error


class Daemon:
    """berthd: its actors, how each is started, and the order in which they stop."""

    def __init__(self, options: DaemonOptions, door: OnlyOne, state: OnlyOne) -> None:
        self.options = options
        self._locks = (state, door)
        self._boot_id = boot_id()
        self._store, self._kept = _open_journal(options.state / JOURNAL_NAME, state, self._boot_id)
        if self._store.fresh and not self._kept.suspect and berthd_ran_this_boot(options.socket):
            gone = "the journal is gone, though a berthd of this boot had one"
            self._kept = replace(self._kept, suspect=gone)
        self._started = now()
        self._given = Given()
        self._failure = ""
        self._answered_all = threading.Event()
        self._wishes = StopWishes()
        names = [spec.identity.name for spec in options.cards]
        self.supervisor: Slot[SupervisorInbox] = Slot("supervisor")
        self.journal: Slot[JournalInbox] = Slot("journal")
        self.node: Slot[NodeInbox] = Slot("node")
        self.trees: Slot[TreesInbox] = Slot("trees")
        self.cards: dict[CardName, Slot[CardInbox]] = {name: Slot(f"card {name}") for name in names}
        self.probes: dict[CardName, Slot[ProbeInbox]] = {
            name: Slot(f"probe {name}") for name in names
        }
        self.roles = self._all_roles()
        self._ticker = Ticker(self._all_ticks(), tuple(self.cards.values()))

    def _all_roles(self) -> dict[str, Role]:
        """Return every role in the order of starting; they stop in reverse."""
        roles = {
            "journal": Role(slot=self.journal, care=Care.VITAL, start=self._start_journal),
            "trees": Role(slot=self.trees, care=Care.ALWAYS, start=self._start_trees),
        }
        for spec in self.options.cards:
            name = spec.identity.name
            roles[f"card {name}"] = Role(
                slot=self.cards[name], care=Care.LIMITED, start=partial(self._start_card, spec)
            )
            roles[f"probe {name}"] = Role(
                slot=self.probes[name], care=Care.ALWAYS, start=partial(self._start_probe, spec)
            )
        roles["node"] = Role(
            slot=self.node, care=Care.LIMITED, start=self._start_node, closed=self._serves_nobody
        )
        return roles

    def _all_ticks(self) -> tuple[tuple[Address[Any], object], ...]:
        return (
            (self.supervisor, SupervisorTick()),
            (self.journal, JournalTick()),
            (self.trees, TreesTick()),
            (self.node, NodeTick()),
            *((card, Tick()) for card in self.cards.values()),
            *((probe, ProbeTick()) for probe in self.probes.values()),
        )

    # --- starting ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start every actor."""
        cares = {role: known.care for role, known in self.roles.items()}
        for role in self.roles.values():
            role.slot.point(role.start(0, self._kept))
        self.supervisor.point(
            SupervisorActor.start(
                state=supervise(cares, now()),
                journal=self.journal,
                roles=self.roles,
                reports=self.options.state / "crashes",
                give_up=self._give_up,
                clock=now,
                own_slot=self.supervisor,
            )
        )
        cards = count(len(self.cards), "card")
        self._tell_event("node.starting", f"berthd {__version__} governs {cards}")
        if self._kept.suspect:
            log.error("%s; holders have 10 s to come back", self._kept.suspect)
            self._tell_event("alert.raised", self._kept.suspect)
        self._ticker.start()
        gc.collect()
        gc.freeze()  # what is loaded by now stays, so it need not be looked through ever again

    def _start_journal(self, incarnation: int, kept: Kept) -> "pykka.ActorRef[JournalActor]":
        return JournalActor.start(
            store=self._store,
            journal=Journal(last_seq=kept.last_seq),
            node=self.node,
            cards=self.cards,
            boot_id=self._boot_id,
            clock=now,
            supervisor=self.supervisor,
            incarnation=incarnation,
        )

    def _start_trees(self, incarnation: int, _: Kept) -> "pykka.ActorRef[TreesActor]":
        ref = TreesActor.start(
            cards=self.cards, clock=now, supervisor=self.supervisor, incarnation=incarnation
        )
        if incarnation:
            self.trees.point(ref)  # before the cards answer
            for card in self.cards.values():
                card.tell(WatchAgain())
        return ref

    def _start_card(
        self, spec: CardSpec, incarnation: int, kept: Kept
    ) -> "pykka.ActorRef[CardActor]":
        identity = spec.identity
        ref = CardActor.start(
            card=restored(
                identity,
                self.options.settings,
                kept,
                now(),
                cards=tuple(one.identity for one in self.options.cards),
                again=incarnation > 0,
            ),
            node=self.node,
            journal=self.journal,
            probe=self.probes[identity.name],
            trees=self.trees,
            clock=now,
            supervisor=self.supervisor,
            incarnation=incarnation,
        )
        if incarnation:
            self.cards[identity.name].point(ref)  # before the node answers
            self.probes[identity.name].tell(SetPace(fast=False))  # as the new card believes it is
            self.node.tell(CardRestarted(card=identity.name))
        return ref

    def _start_probe(
        self, spec: CardSpec, incarnation: int, _: Kept
    ) -> "pykka.ActorRef[ProbeActor]":
        ref = ProbeActor.start(
            spec=spec,
            card=self.cards[spec.identity.name],
            clock=now,
            supervisor=self.supervisor,
            incarnation=incarnation,
        )
        if incarnation:
            self.probes[spec.identity.name].point(ref)  # before the card answers
            self.cards[spec.identity.name].tell(WatchAgain())
        return ref

    def _start_node(self, incarnation: int, kept: Kept) -> "pykka.ActorRef[NodeActor]":
        if incarnation:
            for spec in self.options.cards:
                leases = kept.leases.get(spec.identity.key, ())
                self.cards[spec.identity.name].tell(ForgetWaiters(kept=leases))
        cards = tuple(spec.identity for spec in self.options.cards)
        requests, holdings = waiting(kept, cards)
        node = Node(
            name=sockets.gethostname(),
            version=__version__,
            pid=os.getpid(),
            started=self._started,
            cards=cards,
            last_number=max(kept.last_number, self._given.number),
            last_call=self._given.call,
            leases=parties(kept, cards),
            requests=requests,
            holdings=holdings,
        )
        ref = NodeActor.start(
            node=node,
            cards=self.cards,
            journal=self.journal,
            socket=self.options.socket,
            on_closed=self._answered_all.set,
            given=self._given,
            clock=now,
            supervisor=self.supervisor,
            incarnation=incarnation,
        )
        for card in cards if requests else ():
            ref.tell(CardRestarted(card=card.name))  # it has to be asked for what waits
        return ref

    def _tell_event(self, kind: str, why: str) -> None:
        self.journal.tell(Record(entries=(Happened(kind=kind, card=None, why=why),)))

    # --- stopping ---------------------------------------------------------------------------

    def _give_up(self, why: str) -> None:
        """End berthd. Runs in the supervisor's thread."""
        self._failure = why
        self._wishes.wish()

    def _serves_nobody(self, why: str) -> None:
        """End berthd where its node failed for good: a service manager may start it again."""
        self._give_up(f"no client can be served: {why}")

    def wait(self) -> None:
        """Wait until somebody wants berthd to stop: a signal, the supervisor, or another berthd.

        One that has the lock of socket or journal by now, because its file was deleted, goes on
        instead of this one.
        """
        while not self._wishes.wait(LOOK_EVERY):
            keep_mark(self.options.socket)
            lost = next(filter(None, (lock.lost() for lock in self._locks)), "")
            if lost:
                self._give_up(f"{lost} by now; engines come back to that one")

    def stop(self) -> str:
        """Stop in reverse order, each step within its limit. Return why berthd failed, if it did.

        Holders run on: their wrappers come back to the next berthd.
        """
        self._ticker.stop()
        self.supervisor.tell(StandDown())
        self._tell_event("node.stopping", self._failure or "asked to stop")
        self.node.tell(CloseNode())
        self._answered_all.wait(CLOSE_WITHIN)
        for role in ("supervisor", *reversed(self.roles)):
            slot = self.supervisor if role == "supervisor" else self.roles[role].slot
            if not slot.stop(STOP_WITHIN):
                log.error("%s did not stop within %.0fs; its thread:", role, STOP_WITHIN)
                faulthandler.dump_traceback(all_threads=True)
        self._store.close()
        return self._failure
