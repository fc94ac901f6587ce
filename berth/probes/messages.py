"""What a probe hears and says."""

from typing import TypeAlias

import msgspec

from berth.actors.card.messages import CardRead, CardUnread, SetPace
from berth.readings import Look


class WorkerSaw(msgspec.Struct, frozen=True, kw_only=True):
    """From the worker's pipe: a look at the card. `worker` tells which worker's it is."""

    worker: int
    look: Look


class WorkerEnded(msgspec.Struct, frozen=True, kw_only=True):
    """From the worker's pipe: the worker is gone."""

    worker: int
    why: str


class ProbeTick(msgspec.Struct, frozen=True):
    """From the ticker: time has passed."""


ProbeInbox: TypeAlias = WorkerSaw | WorkerEnded | SetPace | ProbeTick


class StartWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: start worker number `worker` at that pace."""

    worker: int
    pace: float


class KillWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: SIGKILL that worker."""

    worker: int


class PaceWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: tell that worker how often to look; it looks at once."""

    worker: int
    pace: float


ProbeEffect: TypeAlias = CardRead | CardUnread | StartWorker | KillWorker | PaceWorker
