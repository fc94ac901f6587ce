"""A random life of a node: engines come and go, people interfere, things break.

All of it follows from one seed. After the troubled part comes a quiet one, in which nobody asks any
more and nothing breaks: by its end everybody must have been served or refused.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from berth.actors.card.messages import CommitShare, OfferShare, WithdrawOffer
from berth.actors.journal.messages import Record
from berth.actors.node.inbox import RequestGranted, ShareAccepted, ShareDeclined, ShareInDoubt
from berth.actors.node.messages import ForCard
from berth.ids import CardName, Key
from berth.lease import Priority, Terms
from berth.readings import CardIdentity, Unknown
from berth.units import Seconds
from tests.sim.invariants import look, look_at_decision
from tests.sim.machine import Behaviour, Machine, SimCard, some_behaviour
from tests.sim.world import Actor, World

QUIET_FOR = 2000.0
LEFTOVERS_WITHIN = 120.0


@dataclass(frozen=True)
class Mix:
    """What kind of node it is: how many cards, how often somebody asks, and for several of them.

    `asks_every` and `cards` are drawn from (seconds, cards); `several` is a probability, and so is
    `struck`: that something breaks in the middle of an agreement.
    """

    cards: tuple[int, ...] = (1, 1, 2, 3)
    asks_every: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    several: float = 0.3
    struck: float = 0.02


ANY_NODE: Final = Mix()
MANY_CARDS: Final = Mix(cards=(2, 3, 4), asks_every=(1.0, 3.0), several=0.8, struck=0.25)
"""Overlapping sets of cards, wanted all the time."""


class Scenario:
    """One seed's world, and what befalls it."""

    def __init__(self, seed: int, mix: Mix = ANY_NODE) -> None:
        self.rng = random.Random(seed)
        self.mix = mix
        self.names = random.Random(f"{seed} names")
        cards = [
            SimCard(
                identity=CardIdentity(
                    name=CardName(f"gpu{index}"), index=index, uuid=f"GPU-{index}"
                ),
                total=self.rng.choice([1000, 2400, 8000]),
                baseline=self.rng.choice([0, 20]),
                sleeps=random.Random(f"{seed} {index}").random() < 0.2,
                blind=random.Random(f"{seed} {index} blind").random() < 0.2,
            )
            for index in range(self.rng.choice(mix.cards))
        ]
        self.world = World(Machine(cards), seed)
        self.world.watch_step = look
        self.world.watch_decision = self._decided
        self.numbers = 0
        self.troubled = True
        self.world.start_berthd()
        for what, every in self._happenings():
            self._again(what, every)

    def _happenings(self) -> list[tuple[Callable[[], None], float]]:
        """Return what happens, and about how often (seconds)."""
        return [
            (self._ask, self.rng.choice(self.mix.asks_every)),
            (self._kill_berthd, 120.0),
            (self._crash_an_actor, 60.0),
            (self._break_a_line, 30.0),
            (self._kill_a_wrapper, 60.0),
            (self._stop_a_wrapper, 60.0),
            (self._slow_an_actor, 20.0),
            (self._blind_a_card, 60.0),
            (self._stranger, 45.0),
            (self._fill_the_disk, 200.0),
            (self._end_a_worker, 90.0),
            (self._leave_something_unexplained, 90.0),
            (self._suspend, 150.0),
            (self._set_the_clock, 100.0),
            (self._prune, 20.0),
        ]

    def _decided(self, world: World, actor: Actor, event: Any, effects: tuple[Any, ...]) -> None:
        look_at_decision(world, actor, event, effects)
        agreeing = any(_of_agreement(effect) for effect in effects)
        if agreeing and self.troubled and self.rng.random() < self.mix.struck:
            strike = self.rng.choice(
                [self._crash_an_actor, self._slow_an_actor, self._fill_the_disk, self._kill_berthd]
            )
            strike()

    def _again(self, what: Callable[[], None], every: float) -> None:
        def happen() -> None:
            if self.troubled:
                what()
                self._again(what, every)

        self.world.later(self.rng.expovariate(1 / every), happen)

    def play(self, steps: int) -> None:
        """Live through that many steps of trouble, then through the quiet."""
        while self.world.steps < steps:
            self.world.step()
        self.calm()
        quiet_until = self.world.now + QUIET_FOR
        while self.world.now < quiet_until and not all(c.over for c in self.world.clients):
            self.world.play(self.world.now + 20.0)
        self._everybody_has_ended()
        self.world.play(self.world.now + LEFTOVERS_WITHIN)
        self._nobody_is_left_behind()

    def calm(self) -> None:
        """End all trouble."""
        self.troubled = False
        world = self.world
        world.note("calm")
        world.disk.full = False
        for card in world.machine.cards.values():
            card.trouble, card.nobodys = None, 0
        for client in world.clients:
            client.resume()
        for process in tuple(world.machine.processes.values()):
            if process.name == "stranger":
                world.end_process(process)
        for client in world.clients:
            client.fork_dies()
        if not world.actors:
            world.start_berthd()

    def _everybody_has_ended(self) -> None:
        for client in self.world.clients:
            if not client.over:
                self.world.fail(f"{client.name} has not ended: {client.run.phase}")

    def _nobody_is_left_behind(self) -> None:
        """R5: what a wrapper that was killed has started is ended, though its lease is over."""
        for process in self.world.machine.processes.values():
            if process.mark:
                self.world.fail(f"{process.name} lives on, and nobody answers for it")

    # --- what happens -----------------------------------------------------------------------

    def _ask(self) -> None:
        rng = self.rng
        self.numbers += 1
        name = f"e{self.numbers}"
        cards = self._some_cards()
        behaviour = some_behaviour(rng, min(card.total for card in cards))
        exclusive = self.names.random() < 0.2
        terms = Terms(
            name=self.names.choice(["chat", "images"]) if exclusive else name,
            key=Key(f"key-{name}"),
            exclusive=exclusive,
            priority=rng.choice(
                [Priority.BACKGROUND, Priority.BATCH, Priority.INTERACTIVE, Priority.FOREGROUND]
            ),
            wait=Seconds(rng.choice([0.0, 5.0, 60.0, 600.0])),
            min_turn=Seconds(rng.choice([0.0, 0.0, 20.0])),
            drain_wait=Seconds(rng.choice([5.0, 60.0, 300.0])),
            grace=Seconds(rng.choice([1.0, 10.0])),
            start_limit=Seconds(60.0),
            pinned=rng.random() < 0.05,
            boundary=behaviour.boundary,
            fail_closed=rng.random() < 0.1,
            wrapped=True,
        )
        named: tuple[str, ...] = tuple(card.identity.name for card in cards)
        if len(cards) == 1 and rng.random() < 0.2 and not self._outgrows_a_card(behaviour):
            named = ("any",)
        self.world.add_client(name, behaviour, terms, named)

    def _outgrows_a_card(self, behaviour: Behaviour) -> bool:
        """Tell whether it names no size, and so could be granted a card that is too small for it.

        That is nobody's collision: whoever takes any card as a whole takes the smallest too.
        """
        smallest = min(one.total - one.baseline for one in self.world.machine.cards.values())
        return behaviour.whole and behaviour.mib > smallest

    def _some_cards(self) -> list[SimCard]:
        """Return the cards that somebody names: mostly one, now and then several, in any order."""
        cards = list(self.world.machine.cards.values())
        if self.rng.random() < self.mix.several:
            return self.rng.sample(cards, self.rng.randint(1, len(cards)))
        return [self.rng.choice(cards)]

    def _kill_berthd(self) -> None:
        if self.world.actors:
            self.world.kill_berthd()
            self.world.later(self.rng.choice([0.1, 3.0, 30.0]), self._start_berthd)

    def _start_berthd(self) -> None:
        if not self.world.actors:
            self.world.start_berthd()

    def _crash_an_actor(self) -> None:
        roles = [role for role in self.world.actors if role not in {"journal", "supervisor"}]
        if roles:
            self.world.crash(self.rng.choice(roles))

    def _break_a_line(self) -> None:
        clients = [client for client in self.world.clients if not client.over]
        if clients:
            self.rng.choice(clients).break_line()

    def _kill_a_wrapper(self) -> None:
        clients = [client for client in self.world.clients if client.wrapper.alive]
        forked = [client for client in clients if client.fork is not None and client.fork.alive]
        if clients:
            self.rng.choice(forked or clients).killed()
            self.world.notice_exits()

    def _stop_a_wrapper(self) -> None:
        clients = [client for client in self.world.clients if client.wrapper.alive]
        if clients:
            client = self.rng.choice(clients)
            client.wrapper.stopped = True
            self.world.note(f"{client.wrapper.name} is stopped")
            self.world.later(self.rng.choice([1.0, 20.0, 100.0]), client.resume)

    def _slow_an_actor(self) -> None:
        roles = list(self.world.actors)
        if roles:
            actor = self.world.actors[self.rng.choice(roles)]
            actor.asleep_until = self.world.now + self.rng.choice([0.1, 1.0, 4.0])

    def _blind_a_card(self) -> None:
        card = self.rng.choice(list(self.world.machine.cards.values()))
        card.trouble = self.rng.choice([Unknown.LOST, Unknown.FAILED, Unknown.DRIVER_MISMATCH])

        def see() -> None:
            card.trouble = None

        self.world.later(self.rng.choice([1.0, 10.0, 60.0]), see)

    def _stranger(self) -> None:
        card = self.rng.choice(list(self.world.machine.cards.values()))
        process = self.world.machine.spawn("stranger")
        self.world.machine.allocate(process, card.identity.name, self.rng.randrange(card.total))
        self.world.later(self.rng.choice([1.0, 30.0]), lambda: self.world.end_process(process))

    def _fill_the_disk(self) -> None:
        self.world.note("the disk is full")
        self.world.disk.full = True

        def empty() -> None:
            self.world.disk.full = False

        self.world.later(self.rng.choice([1.0, 15.0]), empty)

    def _end_a_worker(self) -> None:
        self.world.end_worker(self.rng.choice(list(self.world.machine.cards)))

    def _leave_something_unexplained(self) -> None:
        """A driver keeps memory for itself for a while, and no process explains it."""
        card = self.rng.choice(list(self.world.machine.cards.values()))
        room = card.total - self.world.machine.used(card.identity.name)
        card.nobodys = self.rng.randrange(max(1, min(room, card.total // 4)))

        def go() -> None:
            card.nobodys = 0

        self.world.later(self.rng.choice([1.0, 10.0, 60.0]), go)

    def _suspend(self) -> None:
        self.world.suspend(self.rng.choice([6.0, 600.0, 40000.0]))

    def _set_the_clock(self) -> None:
        """Somebody sets the clock on the wall, forward or back: it must matter to nobody."""
        self.world.wall_ahead += self.rng.choice([-3600.0, 3600.0, -86400.0 * 400, 86400.0 * 400])

    def _prune(self) -> None:
        """Forget clients that are over and have left nothing behind."""
        self.world.clients = [
            client
            for client in self.world.clients
            if not client.over or client.wrapper.alive or client.leaves_something()
        ]


def _of_agreement(effect: Any) -> bool:
    """Tell whether an effect is a step of an agreement on several cards."""
    message = effect.message if isinstance(effect, ForCard) else effect
    steps = (OfferShare, WithdrawOffer, CommitShare, ShareAccepted, ShareDeclined, ShareInDoubt)
    if isinstance(message, Record):
        return any(isinstance(one, RequestGranted) and len(one.cards) > 1 for one in message.then)
    return isinstance(message, steps)


def play(seed: int, steps: int, mix: Mix = ANY_NODE) -> World:
    """Play a seed's world through that many troubled steps, and the quiet after them."""
    scenario = Scenario(seed, mix)
    scenario.play(steps)
    return scenario.world
