"""A contention case, played: its cards simulated, its engines under the real cores of `berth run`.

The cases stand in `scenarios.json`: fights over a card that people have reported of other programs.
Each says what happens at which second, what must come of it, and what must never. Here a case
becomes a world with one clock; a test says what each engine does, plays it, and reads what became
of it from the events that berthd told and from the card itself.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.actors.card.view import describe
from berth.actors.journal.messages import Record
from berth.ids import CardName, Key
from berth.lease import Priority, Terms
from berth.readings import CardIdentity
from berth.units import Seconds
from berth.views import CardStatus
from berth.wire import EventMessage
from tests.sim.clients import Client
from tests.sim.invariants import look, look_at_decision
from tests.sim.machine import Behaviour, Machine, Process, SimCard
from tests.sim.world import Actor, World

FILE = Path(__file__).with_name("scenarios.json")
GPU0 = CardName("gpu0")
IDLE = 1e6
"""A pause that no case outlives: the engine answers what it is asked, and then waits."""


def case(number: str) -> dict[str, Any]:
    """Return a case as it stands in the file."""
    cases: list[dict[str, Any]] = json.loads(FILE.read_text())
    (found,) = [one for one in cases if one["id"] == number]
    return found


@dataclass(frozen=True)
class Told:
    """An event, and at which second of the case it was told."""

    at: float
    kind: str
    name: str | None
    event: EventMessage


class Played:
    """One case in a world of its own."""

    def __init__(self, number: str, seed: int = 1) -> None:
        self.case = case(number)
        cards = [
            SimCard(
                identity=CardIdentity(name=CardName(card["name"]), index=index, uuid=f"G{index}"),
                total=card["mib"],
                baseline=card["baseline"],
            )
            for index, card in enumerate(self.case["cards"])
        ]
        self.world = World(Machine(cards), seed)
        self.world.watch_step, self.world.watch_decision = self._look, self._decided
        self.world.watch_event = self._hear
        self.told: list[Told] = []
        self.used_at_grant: dict[str, int] = {}
        self.together: set[frozenset[str]] = set()
        self._begun = self.world.now + 3.0
        self.world.start_berthd()
        self.until(0)

    # --- what happens ---------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Return the second of the case."""
        return self.world.now - self._begun

    def until(self, second: float) -> None:
        """Play up to that second."""
        self.world.play(self._begun + second)

    def starts(self, engine: str, *, again: int = 0, **behaves: Any) -> Client:
        """Start an engine of the case under `berth run`; the second time under a key of its own."""
        entry = self.case["engines"][engine]
        boundary = bool(behaves.pop("boundary", True))
        wait = Seconds(behaves.pop("wait", 3600.0))
        behaviour = Behaviour(
            mib=entry["mib"],
            boundary=boundary,
            load_s=behaves.pop("load_s", float(entry.get("load_s", 2.0))),
            reply_s=behaves.pop("reply_s", 2.0),
            pause_s=behaves.pop("pause_s", IDLE),
            life_s=behaves.pop("life_s", IDLE),
            **behaves,
        )
        priority = Priority[entry.get("class", "interactive").upper()]
        unique = f"{engine}-{again}" if again else engine
        asked = Terms(
            name=engine,
            key=Key(f"key-{unique}"),
            priority=priority,
            wait=wait,
            drain_wait=Seconds(3600.0),
            boundary=boundary,
            wrapped=True,
            exclusive=True,
        )
        return self.world.add_client(unique, behaviour, asked, (GPU0,))

    def stranger(self, name: str, mib: int) -> Process:
        """A process without a lease takes memory."""
        process = self.world.machine.spawn(name)
        assert self.world.machine.allocate(process, GPU0, mib)
        return process

    # --- what is seen ---------------------------------------------------------------------------

    def events(self, kind: str, name: str | None = None) -> list[float]:
        """Return the seconds at which that was told of that engine."""
        return [told.at for told in self.told if told.kind == kind and name in {None, told.name}]

    def order(self, *kinds: str) -> list[tuple[str, str | None]]:
        """Return what was told of these kinds, in order."""
        return [(told.kind, told.name) for told in self.told if told.kind in kinds]

    def status(self) -> CardStatus:
        """Return what berthd shows of the card now."""
        return describe(self.world.actors[f"card {GPU0}"].state, self.world.now)

    def used(self) -> int:
        """Return what is really used on the card, whatever berthd thinks."""
        return self.world.machine.used(GPU0)

    def _hear(self, event: EventMessage) -> None:
        self.told.append(Told(self.now, event.kind, event.name, event))

    def _look(self, world: World) -> None:
        look(world)
        alive = [c for c in world.clients if c.engine is not None and c.engine.alive]
        if len(alive) > 1:
            self.together.add(frozenset(client.name for client in alive))

    def _decided(self, world: World, actor: Actor, event: Any, effects: tuple[Any, ...]) -> None:
        look_at_decision(world, actor, event, effects)
        for effect in effects:
            for grant in effect.grants if isinstance(effect, Record) else ():
                self.used_at_grant[grant.request] = self.used()
