"""Looks over a card's shoulder: every decision of it is held to `reckoning.py`."""

from berth.actors.card.messages import CardEffect, CardInbox, SeekLease
from berth.actors.card.state import Card
from berth.actors.journal.messages import Happened, Record
from berth.actors.node.inbox import OrderGiven, RequestGranted
from berth.ids import LeaseId
from berth.lease import Draining, Granted, Order
from berth.units import Instant
from tests.cores.reckoning import (
    drain_trouble,
    freeing_trouble,
    grant_trouble,
    nobodys,
    order_of_queue_trouble,
)


class Judge:
    """Judges one card from its start on, also over its restarts.

    `resumed` is when the machine last woke up: no reading from before may be the ground of a grant.
    """

    def __init__(self, card: Card) -> None:
        self.before = card
        self.resumed = Instant(0.0)
        self._nobodys: dict[LeaseId, int] = {}
        self._sought: SeekLease | None = None

    def start_again(self, card: Card) -> None:
        """Go on with a card that was started again from what was kept."""
        self.before = card
        self.resumed = Instant(0.0)

    def look(
        self, card: Card, event: CardInbox, effects: tuple[CardEffect, ...], now: Instant
    ) -> str:
        """Return what is wrong with what the card has just decided, empty when nothing is."""
        self._sought = event if isinstance(event, SeekLease) else None
        before, self.before = self.before, card
        self._note_what_is_nobodys(card)
        troubles = [self._freed(before, card, _reclaimed(effects)), _read(before, card)]
        for effect in effects:
            for rider in effect.then if isinstance(effect, Record) else (effect,):
                if isinstance(rider, RequestGranted):
                    if not isinstance(effect, Record):
                        troubles.append(f"{rider.request} is granted without a record")
                    troubles.append(self._granted(before, card, rider, now))
                elif isinstance(rider, OrderGiven) and rider.order is Order.DRAIN:
                    troubles.append(_asked(before, card, rider.lease, now))
        return "; ".join(trouble for trouble in troubles if trouble)

    def _note_what_is_nobodys(self, card: Card) -> None:
        if card.measured is None:
            return
        for lease in card.leases:
            if lease.id not in self._nobodys:
                self._nobodys[lease.id] = nobodys(card.measured.reading)

    def _granted(self, before: Card, card: Card, grant: RequestGranted, now: Instant) -> str:
        trouble = grant_trouble(card, grant.lease, now)
        if not trouble and card.measured is not None:
            if card.measured.reading.taken <= self.resumed:
                trouble = "the reading is from before the machine slept"
            waiter = before.waiter(grant.request) or self._sought
            arrived = now if waiter is None else waiter.arrived  # it may come back, and be first
            trouble = trouble or order_of_queue_trouble(card, grant.lease, arrived)
        return trouble and f"{grant.lease} is granted, but {trouble}"

    def _freed(self, before: Card, card: Card, reclaimed: set[LeaseId]) -> str:
        for lease in before.leases:
            if card.lease(lease.id) is not None or lease.id in reclaimed:
                continue
            if isinstance(lease, Granted):
                continue  # a grant that could not be written never was
            if card.measured is None:
                return f"{lease.id} is freed without a reading"
            then = self._nobodys.get(lease.id)
            trouble = freeing_trouble(lease, card.measured.reading, then)
            if trouble:
                return f"{lease.id} is freed, but {trouble}"
        return ""


def _read(before: Card, card: Card) -> str:
    """Readings come late, twice and out of order; what the card knows never gets older (B1)."""
    if before.measured is None or card.measured is None:
        return ""
    older = card.measured.reading.taken < before.measured.reading.taken
    return "a reading was taken for news that another had overtaken" if older else ""


def _reclaimed(effects: tuple[CardEffect, ...]) -> set[LeaseId]:
    """Return what a person has given up: what the card still shows of it stays taken (H4)."""
    records = [effect for effect in effects if isinstance(effect, Record)]
    told = [one for record in records for one in record.entries if isinstance(one, Happened)]
    return {one.lease for one in told if one.kind == "lease.reclaimed" and one.lease is not None}


def _asked(before: Card, card: Card, lease: LeaseId, now: Instant) -> str:
    was, told = before.lease(lease), card.lease(lease)
    if was is None or not isinstance(told, Draining) or told.wanted_by is None:
        return ""
    waiter = card.waiter(told.wanted_by)
    if waiter is None or isinstance(was, Draining):
        return ""  # it has just been refused; or the order is only said again
    trouble = drain_trouble(was, told, waiter, now)
    return trouble and f"{lease} is asked to finish for {waiter.terms.name}, but {trouble}"
