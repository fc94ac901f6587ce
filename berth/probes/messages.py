"""What a probe hears and says."""

from dataclasses import dataclass
from typing import TypeAlias

from berth.actors.card.messages import CardRead, CardUnread, SetPace
from berth.readings import Look


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSaw:
    """From the worker's pipe: a look at the card. `worker` tells which worker's it is."""

    worker: int
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """From the worker's pipe: the worker is gone."""

    worker: int
    why: str


@dataclass(frozen=True, slots=True)
class ProbeTick:
    """From the ticker: time has passed."""


ProbeInbox: TypeAlias = WorkerSaw | WorkerEnded | SetPace | ProbeTick


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWorker:
    """Shell: start worker number `worker` at that pace."""

    worker: int
    pace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KillWorker:
    """Shell: SIGKILL that worker."""

    worker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceWorker:
    """Shell: tell that worker how often to look; it looks at once."""

    worker: int
    pace: float


ProbeEffect: TypeAlias = CardRead | CardUnread | StartWorker | KillWorker | PaceWorker
