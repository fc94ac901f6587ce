"""The queue of one card: who is granted now, whom to ask, and why the others wait.

`plan` walks the queue in order of turn. For each waiter, in this order:

 1. Its namesake is still there (R10): it waits, and holds nobody up.
 2. Somebody ahead would be delayed by it (Q7): it waits. The *slack* is how much may be handed out
    past those ahead without any of them fitting later than it would have.
 3. It fits in the books and on the card (B4): it is granted, and the walk ends; the next walk
    starts from books that hold the grant.
 4. It will fit once those already leaving are gone: it waits for them.
 5. It will fit once holders that it may drain (Q2) are gone: of the sets of them that make it fit,
    with no member that could be left out, the best is asked (Q6).
 6. Nobody that it may drain can make it fit: it asks nobody, and waits for whoever stands there.

A request for several cards is walked past on each of them like any other, but it is neither granted
nor asked for here before the node says so: `stands` tells how far this card is (M2).

A holder that was asked for somebody who has left since is a candidate like any other, but one that
costs nothing: it is asked already. One that nobody needs any more is told to run on (Q3).
"""

from collections.abc import Iterable, Sequence

import msgspec

from berth.actors.card.books import UNEXPLAINED_SLACK, Books, fits
from berth.actors.card.choosing import Candidate, choose, gain_of
from berth.actors.card.obstacles import as_blocker, is_leaving, is_recallable, obstacle
from berth.actors.card.state import Card, Waiter
from berth.actors.card.usage import needs
from berth.actors.node.inbox import Stand
from berth.ids import LeaseId, RequestId
from berth.lease import (
    Lease,
    Priority,
    WholeCard,
)
from berth.readings import GpuProcess, Unknown, Unmeasured
from berth.standing import Blocker, How
from berth.units import Instant, left


class Plan(msgspec.Struct):
    """What comes of one walk: a grant, or what everybody who waits is waiting for.

    `asks` pairs a holder with the waiter that wants it gone; `needed` says for each holder asked
    already who still counts on it; `stands` how the card stands to its share of a request for
    several cards, which is never granted here but agreed on (`shares.py`).
    """

    grant: Waiter | None = None
    asks: list[tuple[Lease, Waiter]] = msgspec.field(default_factory=list)
    needed: dict[LeaseId, Waiter] = msgspec.field(default_factory=dict)
    blockers: dict[RequestId, tuple[Blocker, ...]] = msgspec.field(default_factory=dict)
    stands: dict[RequestId, Stand] = msgspec.field(default_factory=dict)


def halted(card: Card, now: Instant) -> Blocker | None:
    """Return why nothing at all is granted on the card now, None when something may be."""
    if card.recovering_until is not None:
        remaining = left(card.recovering_until, now)
        return Blocker(who="berthd", how=How.RECOVERING, left=remaining)
    if card.fresh(now) is None:
        unread = card.unread
        if unread is not None and unread.why is Unknown.ASLEEP:
            return Blocker(who=card.name, how=How.WAKING, ref=card.name)
        because = "" if unread is None else unread.detail
        return Blocker(who=card.name, how=How.UNMEASURED, ref=card.name, because=because)
    if not card.journal_writable:
        return Blocker(who="berthd", how=How.NO_JOURNAL)
    return None


def plan(card: Card, books: Books, now: Instant) -> Plan:
    """Decide for the waiters of a card whose reading is fresh."""
    walk = _Walk(card, books, now)
    for waiter in card.queue:
        walk.visit(waiter)
        if walk.plan.grant is not None:
            break
    return walk.plan


class _Walk:
    """One walk through the queue; the steps are those at the top of this file.

    `coming` is memory of leases that leave or will be asked, `reserved` the part of free and
    coming memory that waiters ahead will take.
    """

    def __init__(self, card: Card, books: Books, now: Instant) -> None:
        self.plan = Plan()
        self._card = card
        self._books = books
        self._now = now
        self._leaving = [lease for lease in card.leases if is_leaving(lease)]
        self._coming = sum(books.counts[lease.id] for lease in self._leaving)
        self._reserved = 0
        self._slack: float = float("inf")
        self._first: tuple[Blocker, ...] = ()
        self._offered = {offer.request for offer in card.offers}
        self._ever_free = books.capacity - books.stowaways - books.unexplained

    def visit(self, waiter: Waiter) -> None:
        """Take one waiter through the steps."""
        if waiter.behind:
            namesake = Blocker(who=waiter.terms.name, how=How.SAME_NAME, ref=waiter.behind)
            self.plan.blockers[waiter.request] = (namesake,)
        elif waiter.request in self._offered:
            self.plan.blockers[waiter.request] = (_other_cards(self._card, waiter),)
        elif self._first and (size := self._size(waiter)) > self._slack:
            self.plan.blockers[waiter.request] = self._first
            if size > self._ever_free - self._slack:
                self._slack = self._ever_free - size
        elif fits(waiter.ask, waiter.terms, self._books, needs(self._card, waiter.terms.name)):
            self._fit(waiter)
        else:
            self._block(waiter)

    def _fit(self, waiter: Waiter) -> None:
        """Step 3. A share of a request for several cards is kept in view, not granted (M2)."""
        if not waiter.shared:
            self.plan.grant = waiter
            return
        size = self._size(waiter)
        beside = self._books.room - self._reserved - size
        self._slack = 0 if isinstance(waiter.ask, WholeCard) else min(self._slack - size, beside)
        self._reserved += size
        self.plan.stands[waiter.request] = Stand.FITS
        self.plan.blockers[waiter.request] = (_other_cards(self._card, waiter),)
        self._stand_first(waiter)

    def _stand_first(self, waiter: Waiter) -> None:
        if not self._first:
            first = Blocker(who=waiter.terms.name, how=How.FIRST_IN_LINE, ref=waiter.request)
            self._first = (first,)

    def _size(self, waiter: Waiter) -> int:
        if isinstance(waiter.ask, WholeCard):
            return self._books.capacity
        return waiter.ask

    def _free_for(self, waiter: Waiter) -> int:
        """Return what the books have for this waiter now; a hold looks at leases only (B4)."""
        if waiter.terms.priority is Priority.HOLD:
            return self._books.capacity - sum(self._books.counts.values())
        return self._books.free

    def _block(self, waiter: Waiter) -> None:
        """Steps 4 to 6: find out what would make it fit, and ask for it where that is allowed."""
        staying = [self._candidate(waiter, lease) for lease in self._staying()]
        if isinstance(waiter.ask, WholeCard):
            self._clear_card(waiter, staying)
        else:
            self._make_room(waiter, staying, waiter.ask)
        self._stand_first(waiter)

    def _staying(self) -> list[Lease]:
        gone = {lease.id for lease in self._leaving}
        return [lease for lease in self._card.leases if lease.id not in gone]

    def _candidate(self, waiter: Waiter, lease: Lease) -> Candidate:
        return Candidate(
            lease=lease,
            gain=self._books.counts[lease.id],
            asked=is_recallable(lease),
            obstacle=obstacle(self._card, waiter, lease, self._now),
        )

    def _clear_card(self, waiter: Waiter, staying: list[Candidate]) -> None:
        """For a whole card everybody has to go, squatters too (B4), and nobody may pass.

        Beside a squatter, that nobody can ask, no engine is asked to go for nothing (Q6).
        """
        self._slack = 0
        is_hold = waiter.terms.priority is Priority.HOLD
        squatters = () if is_hold else self._named(self._books.squatters)
        obstacles = [candidate for candidate in staying if candidate.obstacle is not None]
        if not obstacles and not squatters:
            self._ask(waiter, staying)
        alone = not self._leaving and not staying
        self._wait(waiter, obstacles or staying, beyond_leases=alone and not squatters)
        self.plan.blockers[waiter.request] += squatters

    def _make_room(self, waiter: Waiter, staying: list[Candidate], size: int) -> None:
        free = self._free_for(waiter) + self._coming - self._reserved
        shortfall = size - free
        if shortfall <= 0:
            self._ask(waiter, ())
            self._reserved += size
            self._slack = min(self._slack - size, free - size)
            self._wait(waiter, [], beyond_leases=not self._leaving)
            return
        drainable = [candidate for candidate in staying if candidate.obstacle is None]
        chosen = choose(drainable, shortfall)
        if chosen is not None:
            self._ask(waiter, chosen)
            self._reserved += size
            self._slack = min(self._slack - size, free + gain_of(chosen) - size)
            self._wait(waiter, chosen, beyond_leases=False)
            return
        waited_for = choose(staying, shortfall)
        everybody = staying if waited_for is None else waited_for
        freed = gain_of(everybody)
        room = self._ever_free - self._reserved if waited_for is None else free + freed
        self._reserved += max(0, size - freed)
        self._slack = min(self._slack, max(0, room - size))
        in_the_way = [candidate for candidate in everybody if candidate.obstacle is not None]
        self._wait(waiter, in_the_way, beyond_leases=waited_for is None)

    def _ask(self, waiter: Waiter, chosen: Sequence[Candidate]) -> None:
        """Ask holders for a waiter; for a share of several cards, only when all are as far (M2)."""
        if waiter.shared:
            if self._first:
                return
            self.plan.stands[waiter.request] = Stand.COULD_ASK
            if not waiter.may_ask:
                return
        for candidate in chosen:
            self._leaving.append(candidate.lease)
            self._coming += candidate.gain
            if candidate.asked:
                self.plan.needed[candidate.lease.id] = waiter
            else:
                self.plan.asks.append((candidate.lease, waiter))

    def _wait(self, waiter: Waiter, others: Sequence[Candidate], *, beyond_leases: bool) -> None:
        """Note what is in the waiter's way: those that leave, the others, the rest of the card."""
        leaving = {lease.id: as_blocker(lease) for lease in self._leaving}
        for candidate in others:
            if candidate.obstacle is not None:
                leaving[candidate.lease.id] = candidate.obstacle
        blockers = tuple(leaving.values())
        if beyond_leases:
            blockers += self._strangers()
        self.plan.blockers[waiter.request] = blockers

    def _strangers(self) -> tuple[Blocker, ...]:
        """Return what is in the way that no lease explains."""
        measured = self._card.measured
        rows = () if measured is None else measured.stowaways
        named = self._named(row for row in rows if isinstance(row.used, Unmeasured) or row.used > 0)
        if named and not self._has_nobodys():
            return named
        return (
            *named,
            Blocker(who=self._card.name, how=How.UNEXPLAINED, ref=self._card.name),
        )

    def _has_nobodys(self) -> bool:
        """Tell whether more is in use and nobody's than could be the driver's own."""
        books = self._books
        return books.unexplained > UNEXPLAINED_SLACK or books.capacity < books.at_most

    def _named(self, rows: Iterable[GpuProcess]) -> tuple[Blocker, ...]:
        """Return what processes without a lease are to who waits; those of a name are one."""
        names = dict.fromkeys(row.name or f"pid {row.process.pid}" for row in rows)
        return tuple(Blocker(who=name, how=How.STOWAWAY, ref=self._card.name) for name in names)


def _other_cards(card: Card, waiter: Waiter) -> Blocker:
    """Return what a share that fits here waits for."""
    others = [name for name in waiter.cards if name != card.name]
    return Blocker(who=" and ".join(others), how=How.OTHER_CARDS, ref=others[0])
