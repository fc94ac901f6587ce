"""A probe under play: its worker is a word of the test."""

from dataclasses import dataclass, field

from berth.probes.core import Idle, Probe, decide
from berth.probes.messages import (
    KillWorker,
    ProbeEffect,
    ProbeInbox,
    ProbeTick,
    WorkerEnded,
    WorkerSaw,
)
from berth.readings import Reading
from berth.units import Instant, MiB, Seconds, after


@dataclass
class PlayedProbe:
    """A probe under play, in binary steps so that its deadlines are met exactly."""

    now: Instant = Instant(1000.0)
    probe: Probe = field(default_factory=Probe)
    said: list[tuple[float, ProbeEffect]] = field(default_factory=list)
    killable: bool = True

    def hear(self, event: ProbeInbox) -> list[ProbeEffect]:
        self.probe, effects = decide(self.probe, event, self.now)
        self.said += [(self.now - 1000.0, effect) for effect in effects]
        killed = [effect.worker for effect in effects if isinstance(effect, KillWorker)]
        if killed and self.killable:
            self.hear(WorkerEnded(worker=killed[0], why="killed"))
        return list(effects)

    def sees(self, worker: int = 1) -> list[ProbeEffect]:
        return self.hear(WorkerSaw(worker=worker, look=reading(self.now)))

    def later(self, seconds: float, step: float = 0.25) -> list[ProbeEffect]:
        said: list[ProbeEffect] = []
        ends = after(self.now, Seconds(seconds))
        while self.now < ends:
            self.now = after(self.now, Seconds(min(step, ends - self.now)))
            said += self.hear(ProbeTick())
        return said

    def rests(self) -> bool:
        """Tell whether no worker runs."""
        return isinstance(self.probe.phase, Idle)

    def when(self, kind: type[ProbeEffect]) -> list[float]:
        return [at for at, effect in self.said if isinstance(effect, kind)]


def reading(at: Instant) -> Reading:
    return Reading(taken=at, total=MiB(1000), used=MiB(10))


def looking() -> PlayedProbe:
    """Return a probe whose first worker has just taken its first look."""
    probe = PlayedProbe()
    probe.hear(ProbeTick())
    probe.sees()
    return probe
