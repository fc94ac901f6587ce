"""The probe's shell: starts, paces and kills the worker process, and passes on what it sees."""

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Final, assert_never

import msgspec

from berth.actors.base import ActorDied, Address, BerthActor, Clock, Pong
from berth.actors.card.messages import CardInbox, CardRead, CardUnread, XidThrown
from berth.probes.core import Probe, decide
from berth.probes.messages import (
    KillWorker,
    PaceWorker,
    ProbeEffect,
    ProbeInbox,
    StartWorker,
    WorkerEnded,
    WorkerSaw,
)
from berth.probes.source import CardSpec, Pace, Sight
from berth.probes.worker import watch_card

_SPAWN: Final = multiprocessing.get_context("spawn")


class _Worker(msgspec.Struct):
    """A running worker and berthd's end of its pipe."""

    number: int
    process: SpawnProcess
    pipe: "Connection[Pace, Sight]"


class ProbeActor(BerthActor[ProbeInbox, Probe, ProbeEffect]):
    """Watches one card through a worker process."""

    def __init__(
        self,
        *,
        spec: CardSpec,
        card: Address[CardInbox],
        clock: Clock,
        supervisor: Address[ActorDied | Pong],
        incarnation: int = 0,
    ) -> None:
        super().__init__(
            role=f"probe {spec.identity.name}",
            state=Probe(),
            decide=decide,
            clock=clock,
            supervisor=supervisor,
            incarnation=incarnation,
        )
        self._spec = spec
        self._card = card
        self._worker: _Worker | None = None

    def end(self) -> None:
        """Kill the worker."""
        if self._worker is not None:
            self._kill(self._worker)

    def perform(self, effect: ProbeEffect) -> None:
        """Do what the core decided."""
        match effect:
            case CardRead() | CardUnread() | XidThrown():
                self._card.tell(effect)
            case StartWorker():
                self._start(effect)
            case KillWorker():
                if self._worker is not None and self._worker.number == effect.worker:
                    self._kill(self._worker)
            case PaceWorker():
                self._pace(effect)
            case _:
                assert_never(effect)

    def _start(self, effect: StartWorker) -> None:
        if self._worker is not None:
            self._kill(self._worker)
        here, there = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=watch_card,
            args=(self._spec, there, Pace(effect.pace, effect.wake)),
            name=f"berth driver worker {self._spec.identity.name}",
            daemon=True,
        )
        process.start()
        there.close()
        self._worker = _Worker(effect.worker, process, here)
        tell: Callable[[ProbeInbox], None] = self.actor_ref.tell
        threading.Thread(
            target=_pass_on, args=(self._worker, tell), name=f"{self.role} pipe", daemon=True
        ).start()

    def _pace(self, effect: PaceWorker) -> None:
        if self._worker is not None and self._worker.number == effect.worker:
            with suppress(OSError):
                self._worker.pipe.send(Pace(effect.pace, effect.wake))

    def _kill(self, worker: _Worker) -> None:
        self._worker = None
        worker.process.kill()
        worker.process.join(timeout=1.0)


def _pass_on(worker: _Worker, tell: Callable[[ProbeInbox], None]) -> None:
    """Pass on what a worker sees until its pipe ends. Runs in a thread of its own."""
    why = "its pipe was closed"
    while True:
        try:
            sight = worker.pipe.recv()
        except EOFError:
            break
        except Exception as error:  # noqa: BLE001 -- a killed worker leaves half a message
            why = f"{type(error).__name__}: {error}"
            break
        tell(WorkerSaw(worker=worker.number, look=sight.look, xids=sight.xids, stale=sight.stale))
    worker.pipe.close()
    with suppress(Exception):  # the actor may have been stopped meanwhile
        tell(WorkerEnded(worker=worker.number, why=why))
