"""The simulated machine: its cards' memory, its processes, its engines. Nothing here decides.

Memory is held by processes. What is on a card at a moment is the truth that berthd never sees but
through readings; the world compares the two.
"""

import random
from dataclasses import dataclass, field

from berth.ids import CardName, ProcessId
from berth.readings import CardIdentity, GpuProcess, Look, Reading, Unknown, Unmeasured
from berth.units import Instant, MiB


@dataclass(slots=True, eq=False)
class Process:
    """A process: its parent, what it holds on each card, whether that was `granted`."""

    identity: ProcessId
    parent: "Process | None"
    name: str
    mark: str = ""
    alive: bool = True
    stopped: bool = False
    granted: bool = False
    holds: dict[CardName, int] = field(default_factory=dict)


@dataclass(slots=True)
class SimCard:
    """One card: its size, whether its driver can be read, whether it sleeps unless it is woken.

    `nobodys` is memory that no process explains. `blind`: the driver does not tell who holds what.
    """

    identity: CardIdentity
    total: int
    baseline: int
    trouble: Unknown | None = None
    sleeps: bool = False
    nobodys: int = 0
    blind: bool = False


class Machine:
    """Cards and processes. Pids are never used twice."""

    def __init__(self, cards: list[SimCard]) -> None:
        self.cards = {card.identity.name: card for card in cards}
        self.processes: dict[ProcessId, Process] = {}
        self._pids = 100
        self.lingering: dict[tuple[ProcessId, CardName], int] = {}
        self.granted_lingering: set[ProcessId] = set()
        self.rowless: set[ProcessId] = set()

    # --- processes --------------------------------------------------------------------------

    def spawn(self, name: str, parent: Process | None = None, mark: str = "") -> Process:
        """Start a process."""
        self._pids += 1
        process = Process(ProcessId(self._pids, 1), parent, name, mark)
        self.processes[process.identity] = process
        return process

    def alive(self, identity: ProcessId) -> bool:
        """Tell whether that very process runs."""
        process = self.processes.get(identity)
        return process is not None and process.alive

    def kill(self, process: Process, *, lingers: bool = False, rowless: bool = False) -> None:
        """End a process. Its memory goes with it, or `lingers` until `let_go`.

        `rowless`: the driver shows the memory used, and no row of a process for it.
        """
        process.alive = False
        if rowless:
            self.rowless.add(process.identity)
        for card, mib in process.holds.items():
            if lingers and mib:
                self.lingering[process.identity, card] = mib
                if process.granted:
                    self.granted_lingering.add(process.identity)
        process.holds = {}
        for child in self.processes.values():
            if child.parent is process:
                child.parent = process.parent  # adopted, as by a subreaper or init
        del self.processes[process.identity]

    def let_go(self, identity: ProcessId) -> None:
        """The driver frees at last what a dead process left."""
        self.lingering = {key: mib for key, mib in self.lingering.items() if key[0] != identity}

    def below(self, root: ProcessId) -> frozenset[ProcessId]:
        """Return every process below one."""
        return frozenset(
            process.identity
            for process in self.processes.values()
            if any(parent.identity == root for parent in _parents(process))
        )

    # --- memory -----------------------------------------------------------------------------

    def used(self, card: CardName) -> int:
        """Return what is really used on a card."""
        held = sum(process.holds.get(card, 0) for process in self.processes.values())
        stale = sum(mib for (_, on), mib in self.lingering.items() if on == card)
        shown = self.cards[card]
        return shown.baseline + shown.nobodys + held + stale

    def allocate(self, process: Process, card: CardName, mib: int) -> bool:
        """Take memory for a process. Tell whether there was room: False is out-of-memory."""
        before = process.holds.get(card, 0)
        if self.used(card) - before + mib > self.cards[card].total:
            return False
        process.holds[card] = mib
        return True

    def look(self, card: CardName, taken: Instant, *, wake: bool) -> Look:
        """Look at a card as its driver shows it."""
        shown = self.cards[card]
        if shown.trouble is not None:
            return Unmeasured(shown.trouble)
        if shown.sleeps and not wake:
            return Unmeasured(Unknown.ASLEEP)
        rows = [
            GpuProcess(
                process=process.identity,
                name=process.name,
                used=MiB(process.holds[card]),
                ancestors=tuple(parent.identity for parent in _parents(process)),
            )
            for process in self.processes.values()
            if process.holds.get(card)
        ]
        rows += [
            GpuProcess(process=identity, name="dead", used=MiB(mib))
            for (identity, on), mib in self.lingering.items()
            if on == card and identity not in self.rowless
        ]
        return Reading(
            taken=taken,
            total=MiB(shown.total),
            used=MiB(self.used(card)),
            reserved=MiB(shown.baseline),
            processes=() if shown.blind else tuple(rows),
            blind="the driver names nobody" if shown.blind else "",
        )


def _parents(process: Process) -> list[Process]:
    found = []
    parent = process.parent
    while parent is not None:
        found.append(parent)
        parent = parent.parent
    return found


@dataclass(slots=True)
class Behaviour:
    """How an engine behaves. Times are seconds; `boundary` False is a job.

    `whole`: it asks for the whole card, though it uses `mib`. `rowless`: what it leaves lingering
    shows with no process. `lazy_s`: it holds `idle_mib` once it is up, and takes the rest so long
    after, with its first job.
    """

    mib: int
    boundary: bool
    load_s: float
    reply_s: float
    pause_s: float
    life_s: float
    dies_on_term: bool = True
    lingers_s: float = 0.0
    forks: bool = False
    hangs: bool = False
    crashes_loading: bool = False
    whole: bool = False
    rowless: bool = False
    lazy_s: float = 0.0
    idle_mib: int = 0


def some_behaviour(rng: random.Random, largest: int) -> Behaviour:
    """Return an engine as users have them; one in a few misbehaves."""
    mib = rng.randrange(largest // 10, largest * 9 // 10)
    lazy = random.Random(mib).random() < 0.1
    return Behaviour(
        mib=mib,
        lazy_s=15.0 if lazy else 0.0,
        idle_mib=mib // 20,
        boundary=rng.random() < 0.7,
        load_s=rng.choice([0.1, 2.0, 20.0]),
        reply_s=rng.choice([0.5, 3.0, 15.0]),
        pause_s=rng.choice([0.2, 2.0, 30.0]),
        life_s=rng.choice([5.0, 60.0, 600.0]),
        dies_on_term=rng.random() < 0.9,
        lingers_s=rng.choice([0.0, 0.0, 0.0, 3.0, 40.0]),
        forks=rng.random() < 0.2,
        hangs=rng.random() < 0.05,
        crashes_loading=rng.random() < 0.05,
        whole=rng.random() < 0.15,
        rowless=rng.random() < 0.3,
    )
