"""What must hold in the simulated world after every single step."""

from berth.actors.card.state import Card
from tests.sim.clients import Client
from tests.sim.world import World


def look(world: World) -> None:
    """Look at the world once; collisions and cut replies are noticed where they happen."""
    for client in world.clients:
        if client.starts > 1:
            world.fail(f"{client.name} was started {client.starts} times")
        if client.lease is not None:
            _its_lease_is_not_lost(world, client)


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
