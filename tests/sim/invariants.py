"""What must hold in the simulated world after every single step."""

from typing import Any

from berth.actors.card.messages import HolderGone, Resumed
from berth.actors.card.state import Card
from berth.actors.journal.messages import Record
from berth.actors.node.inbox import RequestGranted
from berth.actors.trees.core import ForCard
from berth.ids import CardName, LeaseId, lease_of
from berth.lease import Draining, Keeping, Releasing, Starting
from tests.sim.clients import Client
from tests.sim.world import Actor, World


def look(world: World) -> None:
    """Look at the world once; collisions and cut replies are noticed where they happen."""
    names: dict[str, str] = {}
    for client in world.clients:
        if client.terms.exclusive and client.granted and client.engine and client.engine.alive:
            other = names.setdefault(client.terms.name, client.name)
            if other != client.name:
                world.fail(f"{other} and {client.name} both run as {client.terms.name}")
        if client.starts > 1:
            world.fail(f"{client.name} was started {client.starts} times")
        if client.lease is not None:
            _its_lease_is_not_lost(world, client)


def look_at_decision(world: World, actor: Actor, event: Any, effects: tuple[Any, ...]) -> None:
    """Hold what an actor has just decided to the reading, the terms and the other cards."""
    if actor.role == "node":
        for effect in effects:
            for grant in effect.grants if isinstance(effect, Record) else ():
                _is_agreed_on(world, grant)
    for effect in effects:
        if isinstance(effect, ForCard) and isinstance(effect.message, HolderGone):
            _nothing_of_it_lives(world, effect.card, effect.message.lease)
    if not isinstance(actor.state, Card):
        return
    judge = world.judges[actor.state.name]
    if isinstance(event, Resumed):
        judge.resumed = world.now
        _everything_in_flight_starts_whole(world, actor.state)
    trouble = judge.look(actor.state, event, effects, world.now)
    if trouble:
        world.fail(trouble)


def _is_agreed_on(world: World, grant: RequestGranted) -> None:
    """A grant on several cards needs every one of them to keep its share free (M2)."""
    world.granted_on_several += 1
    for identity in grant.cards:
        actor = world.actors.get(f"card {identity.name}")
        if actor is None or actor.state.awaits_node:
            continue  # started again just now: it grants nothing before it hears of this one
        card: Card = actor.state
        if card.offer(grant.request) is None:
            world.fail(f"{grant.request} is granted, and {identity.name} keeps nothing free for it")


def _nothing_of_it_lives(world: World, card: CardName, lease: LeaseId) -> None:
    """R5, B6: a holder is told to be gone once what it left behind was ended too."""
    actor = world.actors.get(f"card {card}")
    known = None if actor is None else actor.state.lease(lease)
    if known is None:
        return
    for process in world.machine.processes.values():
        if process.mark and process.mark == known.terms.name:
            world.fail(f"{lease} counts as gone, and {process.name} lives on")


def _everything_in_flight_starts_whole(world: World, card: Card) -> None:
    """S8: what was read is stale, and who had so long to do something has it again."""
    if card.fresh(world.now) is not None:
        world.fail("a reading from before the machine slept is fresh")
    for lease in card.leases:
        match lease:
            case Draining(deadline=by) | Releasing(free_by=by) | Keeping(hear_by=by):
                if by < world.now + 5.0:
                    world.fail(f"the machine slept, and {lease} has {by - world.now}s left")
            case Starting(ready_by=by) if by < world.now + lease.terms.start_limit:
                world.fail(f"the machine slept, and {lease} has {by - world.now}s left")
            case _:
                pass


def _its_lease_is_not_lost(world: World, client: Client) -> None:
    """A lease that a client has seen is on its card's books, as long as its engine lives."""
    if client.engine is None or not client.engine.alive or not client.wrapper.alive:
        return
    for name in world.cards_of(client):
        actor = world.actors.get(f"card {name}")
        if actor is None:
            continue
        card: Card = actor.state
        kept = {lease.id for lease in card.leases}
        kept |= {lease_of(offer.request) for offer in card.offers}
        if client.lease not in kept:
            world.fail(f"{client.name}'s lease {client.lease} is on no books of {name}")
