"""What a soak measures of berthd: whom it forgot, what it grew by, what it left open."""

import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from berth.client import Client
from berth.errors import BerthError
from tests.soak.crew import Member
from tests.system.node import Node

ATTACH_GRACE: Final = 15.0
"""How long after its start berthd may not know a holder of before: 10 s, and a reconnect."""

SETTLED_AFTER: Final = 60.0
"""From when on an incarnation of berthd may not grow any more."""

LATE_BY: Final = 5.0
"""How long a holder may be missing from a status before it counts as lost."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What /proc says of berthd's own process. `rss` in KiB."""

    rss: int
    files: int
    threads: int


def figures(pid: int) -> Figures:
    """Return the figures of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Figures(int(fields["VmRSS"].split()[0]), files, int(fields["Threads"]))


@dataclass(slots=True)
class Incarnation:
    """One berthd, from its start to its end. `memory` pairs its age (s) with its RSS (KiB)."""

    pid: int
    begun: float = field(default_factory=time.monotonic)
    memory: list[tuple[float, int]] = field(default_factory=list)

    @property
    def age(self) -> float:
        """Return how long it has run, in seconds."""
        return time.monotonic() - self.begun

    def sample(self) -> None:
        """Note what it uses now."""
        self.memory.append((self.age, figures(self.pid).rss))

    def growth(self) -> float | None:
        """Return by how many MiB it grew once it had settled; None when it ran too briefly."""
        if not self.memory or self.memory[-1][0] < SETTLED_AFTER * 2:
            return None
        last = self.memory[-1][0]
        early = [rss for age, rss in self.memory if SETTLED_AFTER <= age < SETTLED_AFTER + 20]
        late = [rss for age, rss in self.memory if age > last - 20]
        return round((statistics.median(late) - statistics.median(early)) / 1024, 2)


class Roll:
    """Calls the roll: is every running engine on berthd's books?"""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._missing: dict[str, float] = {}
        self.lost: list[str] = []
        self.calls = 0

    def call(self, crew: list[Member], berthd: Incarnation) -> None:
        """Look once. Before the grace is over, berthd may not know everybody yet."""
        if berthd.age < ATTACH_GRACE:
            self._missing.clear()
            return
        running = [one for one in crew if one.lives and one.engine() is not None]
        status = self.status()
        if status is None:
            return
        self.calls += 1
        known = {row["name"] for row in status["leases"]}
        now = time.monotonic()
        for member in running:
            if member.name in known:
                self._missing.pop(member.name, None)
                continue
            since = self._missing.setdefault(member.name, now)
            if member.lives and now - since > LATE_BY and member.name not in self.lost:
                self.lost.append(member.name)

    def status(self) -> dict[str, Any] | None:
        """Return the status, None when berthd does not answer."""
        try:
            with Client(self._node.socket) as client:
                return client.call("status")
        except BerthError:
            return None
