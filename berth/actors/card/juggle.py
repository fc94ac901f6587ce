"""The juggle guard: engines that take a card from each other spend their time working (Q5).

A *switch* is one engine of a priority taking the card from another of the same priority. Its cost
is measured: from the order to the holder until the newcomer is ready. Two engines that have
switched three times within ten minutes are juggling. From then on the next of them may take the
card only when the holder has worked for at least four times what a switch between the two costs, so
that four fifths of the time is work.

What the first switches have cost beyond that is made up for by longer turns, up to twice as long:
a newcomer does not pay alone for a quarrel that was there before it came.

    turn  =  4 x all the switches have cost  -  all the work there was,
             at least 4 and at most 8 x what a switch costs
"""

from statistics import median
from typing import Final

from msgspec.structs import replace

from berth.actors.card.state import Card, Gave, Switch, Waiter
from berth.ids import LeaseId
from berth.lease import Draining, Lease, Order, Running
from berth.units import Instant, Seconds, after, left, since

_PAYING_BACK: Final = 2
"""How much longer than its share a turn may be to make up for what was wasted before."""


def given(card: Card, lease: Lease) -> Card:
    """Note that a holder gave the card up because somebody asked for it."""
    if not isinstance(lease, Draining) or lease.order is not Order.DRAIN or not lease.wanted_by:
        return card
    ready = lease.before.ready if isinstance(lease.before, Running) else lease.asked
    gave = Gave(
        name=lease.name,
        priority=lease.terms.priority,
        ordered=lease.asked,
        worked=since(ready, lease.asked),
    )
    so_far = card.given.get(lease.wanted_by, ())
    return replace(card, given={**card.given, lease.wanted_by: (*so_far, gave)})


def taken(card: Card, waiter: Waiter, lease: LeaseId) -> Card:
    """Note that a waiter was granted what others gave up for it."""
    gone = card.given.get(waiter.request, ())
    if not gone:
        return card
    switches = tuple(
        Switch(
            taker=waiter.terms.name,
            lease=lease,
            giver=gave.name,
            ordered=gave.ordered,
            worked=gave.worked,
        )
        for gave in gone
        if gave.priority == waiter.terms.priority
    )
    rest = {request: one for request, one in card.given.items() if request != waiter.request}
    return replace(card, given=rest, switches=(*card.switches, *switches))


def ready(card: Card, lease: LeaseId, now: Instant) -> Card:
    """Note that a newcomer is ready: that is what its switch has cost."""
    if not any(one.lease == lease and one.ready is None for one in card.switches):
        return card
    switches = tuple(
        replace(one, ready=now) if one.lease == lease and one.ready is None else one
        for one in card.switches
    )
    return replace(card, switches=switches)


def forget_old(card: Card, now: Instant) -> Card:
    """Drop what is too long ago to count, and what was given up for those who have left."""
    within = card.settings.juggle.within
    switches = tuple(one for one in card.switches if since(one.ordered, now) <= within)
    waiting = {waiter.request for waiter in card.queue}
    kept = {request: gone for request, gone in card.given.items() if request in waiting}
    if len(switches) == len(card.switches) and len(kept) == len(card.given):
        return card
    return replace(card, switches=switches, given=kept)


def turn_left(card: Card, waiter: Waiter, lease: Lease, now: Instant) -> Seconds | None:
    """Return how long `lease` keeps its turn against `waiter`, None when the two do not juggle."""
    if not card.switches:
        return None
    rule = card.settings.juggle
    pair = {waiter.terms.name, lease.name}
    between = [
        one
        for one in card.switches
        if {one.taker, one.giver} == pair and since(one.ordered, now) <= rule.within
    ]
    costs = [since(one.ordered, one.ready) for one in between if one.ready is not None]
    if len(between) < rule.takes or not costs or len(pair) < 2:  # noqa: PLR2004 -- a pair
        return None
    share = rule.factor * median(costs)
    owed = rule.factor * sum(costs) - sum(one.worked for one in between[1:])
    turn = Seconds(min(max(owed, share), _PAYING_BACK * share))
    begun = lease.ready if isinstance(lease, Running) else now
    return left(after(begun, turn), now) if now < after(begun, turn) else None
