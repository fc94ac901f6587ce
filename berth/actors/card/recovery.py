"""A card that starts again from what the journal kept (S6)."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from berth.actors.card.state import Card, HandOffs, Learned, Settings
from berth.actors.card.turn import Turn
from berth.actors.journal.messages import Kept
from berth.actors.trees.messages import WatchTree
from berth.ids import CardName
from berth.lease import Detached, Draining, Lease, Releasing, Running, Stuck, with_held
from berth.readings import CardIdentity
from berth.units import Instant, Seconds, after

COME_BACK_WITHIN: Final = Seconds(10.0)
"""How long nothing is granted while holders of before the restart have not come back."""


def restored(
    identity: CardIdentity,
    settings: Settings,
    kept: Kept,
    now: Instant,
    *,
    cards: Sequence[CardIdentity] = (),
    again: bool = False,
) -> Card:
    """Return the card as it starts: whoever held it may still hold it.

    Also who held it by a journal that could not be read: all holders have the time to come back.
    One that is started `again` under a node that lives grants nothing before it has heard what
    that node knows: a grant on several cards may be on its way. `cards` are all of the node's.
    """
    names = {card.key: card.name for card in cards or (identity,)}
    named = (_on_card(lease, identity, names) for lease in kept.leases.get(identity.key, ()))
    leases = tuple(
        sorted((_after_restart(lease, settings, now) for lease in named), key=_grant_order)
    )
    silent = again or any(isinstance(one, Detached) for one in leases) or bool(kept.suspect)
    taken = kept.hand_offs.get(identity.key)
    used = kept.usage.get(identity.key)
    learned = {} if used is None else used.engines
    return Card(
        identity=identity,
        settings=settings,
        hand_offs=HandOffs() if taken is None else HandOffs(count=taken.count, recent=taken.recent),
        baseline=kept.baselines.get(identity.key),
        leases=leases,
        recovering_until=after(now, COME_BACK_WITHIN) if silent else None,
        strangers_may_return=bool(kept.suspect),
        awaits_node=again,
        learned={name: Learned(runs=runs, peaks=peaks) for name, (runs, peaks) in learned.items()},
    )


def watches(card: Card) -> tuple[WatchTree, ...]:
    """Return the holders to watch from the start: who is gone is found out at once."""
    turn = Turn(card, Instant(0.0))
    turn.watch_all()
    return tuple(effect for effect in turn.effects if isinstance(effect, WatchTree))


def _on_card(lease: Lease, identity: CardIdentity, names: Mapping[str, CardName]) -> Lease:
    """Return the lease with the cards' names as they are now: an index may change over a reboot."""
    cards = tuple(names.get(key, CardName(key)) for key in lease.held.keys)
    return with_held(lease, replace(lease.held, cards=cards or (identity.name,)))


def _after_restart(lease: Lease, settings: Settings, now: Instant) -> Lease:
    match lease:
        case Releasing() | Stuck():
            free_by = after(now, settings.release_grace)
            return Releasing(held=lease.held, released=now, free_by=free_by)
        case Draining() if lease.held.holder is not None:
            return Detached(held=lease.held, order=lease.order)
        case Detached():
            return lease
        case _ if lease.held.holder is None:
            return Running(held=lease.held, ready=now)
        case _:
            return Detached(held=lease.held)


def _grant_order(lease: Lease) -> float:
    return lease.held.granted
