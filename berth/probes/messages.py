"""What a probe hears and says."""

from typing import TypeAlias

import msgspec

from berth.actors.card.messages import CardRead, CardUnread, SetPace, XidThrown
from berth.readings import Look


class WorkerSaw(msgspec.Struct, frozen=True, kw_only=True):
    """From the worker's pipe: a look at the card. `worker` tells which worker's it is.

    `xids` are the faults that the card threw since the look before. `stale`: the driver no longer
    matches the library that this worker loaded, so another one is needed.
    """

    worker: int
    look: Look
    xids: tuple[int, ...] = ()
    stale: bool = False


class WorkerEnded(msgspec.Struct, frozen=True, kw_only=True):
    """From the worker's pipe: the worker is gone."""

    worker: int
    why: str


class ProbeTick(msgspec.Struct, frozen=True):
    """From the ticker: time has passed."""


ProbeInbox: TypeAlias = WorkerSaw | WorkerEnded | SetPace | ProbeTick


class StartWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: start worker number `worker` at that pace; `wake`: it may wake a sleeping card."""

    worker: int
    pace: float
    wake: bool = False


class KillWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: SIGKILL that worker."""

    worker: int


class PaceWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: tell that worker how often to look, and whether to wake the card; it looks at once."""

    worker: int
    pace: float
    wake: bool = False


ProbeEffect: TypeAlias = CardRead | CardUnread | XidThrown | StartWorker | KillWorker | PaceWorker
