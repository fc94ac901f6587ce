"""The trees actor's shell: reads /proc, waits on pidfds, sends signals."""

import logging
import os
import signal
from collections.abc import Mapping
from typing import assert_never

from berth.actors.base import ActorDied, Address, BerthActor, Clock, Pong
from berth.actors.card.messages import CardInbox
from berth.actors.trees.core import (
    ForCard,
    ForOtherCards,
    KillLeftovers,
    LookAtTrees,
    SendSignal,
    StopWaiting,
    Trees,
    TreesEffect,
    WaitForExit,
    decide,
)
from berth.actors.trees.exits import ExitWatch
from berth.actors.trees.messages import LeftoversKilled, RootExited, TreesInbox, TreesSeen
from berth.ids import CardName, LeaseId, ProcessId
from berth.marks import RUN_MARK, mark_of
from berth.probes.procfs import (
    ProcessTable,
    all_pids,
    environment_value,
    identify,
    is_alive,
    scope_of,
)

log = logging.getLogger(__name__)

_ROUNDS = 3
"""How often leftovers are looked for again: a process may fork while it is being killed."""


class TreesActor(BerthActor[TreesInbox, Trees, TreesEffect]):
    """Watches the processes of holders, and ends what they leave."""

    def __init__(
        self,
        *,
        cards: Mapping[CardName, Address[CardInbox]],
        clock: Clock,
        supervisor: Address[ActorDied | Pong],
        incarnation: int = 0,
    ) -> None:
        super().__init__(
            role="trees",
            state=Trees(),
            decide=decide,
            clock=clock,
            supervisor=supervisor,
            incarnation=incarnation,
        )
        self._cards = cards
        self._table = ProcessTable()
        self._exits = ExitWatch(self._on_exit)

    def begin(self) -> None:
        """Start waiting for exits."""
        self._exits.start()

    def end(self) -> None:
        """Stop waiting for exits."""
        self._exits.stop()

    def _on_exit(self, lease: LeaseId, root: ProcessId) -> None:
        """Hear of an exit. Runs in the exit watch's thread."""
        self.actor_ref.tell(RootExited(lease=lease, root=root))

    def perform(self, effect: TreesEffect) -> None:
        """Do what the core decided."""
        match effect:
            case WaitForExit():
                self._exits.watch(effect.lease, effect.root)
            case StopWaiting():
                self._exits.forget(effect.lease)
            case LookAtTrees():
                self._look(effect)
            case SendSignal():
                for process in effect.processes:
                    send_signal(process, signal.Signals[effect.signal])
            case KillLeftovers():
                self._kill_leftovers(effect)
            case ForCard():
                self._cards[effect.card].tell(effect.message)
            case ForOtherCards():
                for name, card in self._cards.items():
                    if name not in effect.cards:
                        card.tell(effect.message)
            case _:
                assert_never(effect)

    def _look(self, effect: LookAtTrees) -> None:
        self._table.look()
        trees = self._table.trees(effect.roots.values())
        alive = {lease: trees[root] for lease, root in effect.roots.items() if is_alive(root)}
        self.hear(TreesSeen(members=alive))

    def _kill_leftovers(self, effect: KillLeftovers) -> None:
        lease = effect.watch.lease
        doomed = set(effect.members)
        for _ in range(_ROUNDS):
            doomed |= set(_left_of(effect))
            for process in doomed:
                send_signal(process, signal.SIGKILL)
        if doomed:
            log.info("%s: its wrapper is gone; killed what was left of it", lease)
        self.hear(LeftoversKilled(lease=lease))


def _left_of(effect: KillLeftovers) -> list[ProcessId]:
    """Return the living processes of a run, by its scope and by its mark."""
    scope, mark = effect.watch.scope, mark_of(effect.watch.key)
    found = []
    for pid in all_pids():
        in_scope = scope is not None and scope_of(pid) == scope
        if in_scope or environment_value(pid, RUN_MARK) == mark:
            process = identify(pid)
            if process is not None and pid != os.getpid() and is_alive(process):
                found.append(process)
    return found


def send_signal(process: ProcessId, number: signal.Signals) -> bool:
    """Signal this very process, never another of its pid. Tell whether it was there."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if identify(process.pid) != process:
            return False
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True
