"""What must hold in the simulated world after every single step."""

from typing import Any

from berth.actors.card.books import close
from berth.actors.card.state import Card
from berth.actors.journal.messages import Record
from berth.actors.node.inbox import RequestGranted
from tests.sim.clients import Client
from tests.sim.world import Actor, World


def look(world: World) -> None:
    """Look at the world once; collisions and cut replies are noticed where they happen."""
    for client in world.clients:
        if client.starts > 1:
            world.fail(f"{client.name} was started {client.starts} times")
        if client.lease is not None:
            _its_lease_is_not_lost(world, client)


def look_at_decision(world: World, actor: Actor, effects: tuple[Any, ...]) -> None:
    """Look at what an actor has just decided: is a grant one that may be given?"""
    for effect in effects:
        riders = effect.then if isinstance(effect, Record) else (effect,)
        for rider in riders:
            if isinstance(rider, RequestGranted):
                if not isinstance(effect, Record):
                    world.fail(f"{rider.request} is granted without a record")
                _may_be_granted(world, actor.state, rider)


def _may_be_granted(world: World, card: Card, grant: RequestGranted) -> None:
    """A grant needs a fresh reading that shows the room, a writable journal, and all holders."""
    measured = card.fresh(world.now)
    if measured is None:
        world.fail(f"{grant.request} is granted without a fresh reading")
        return
    if card.recovering_until is not None:
        world.fail(f"{grant.request} is granted before the holders of old came back")
    if not card.journal_writable:
        world.fail(f"{grant.request} is granted without a journal")
    books = close(card, measured)
    if books.free < 0 or books.driver_free < 0:
        world.fail(f"{grant.request} is granted beyond the books: {books}")


def _its_lease_is_not_lost(world: World, client: Client) -> None:
    """A lease that a client has seen is on its card's books, as long as its engine lives."""
    if client.engine is None or not client.engine.alive or not client.wrapper.alive:
        return
    for name in world.cards_of(client):
        actor = world.actors.get(f"card {name}")
        if actor is None:
            continue
        card: Card = actor.state
        if not any(lease.id == client.lease for lease in card.leases):
            world.fail(f"{client.name}'s lease {client.lease} is on no books of {name}")
