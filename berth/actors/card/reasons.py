"""Who waits is told why: when the reason changes, not when its figures do.

Hundreds may wait on one card, and be told nothing new by most decisions. So each reason is put into
figures once, into words once, and a waiter that is told nothing new stays the very same value.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from berth.actors.card.books import Books
from berth.actors.card.outlook import eta, outlook, with_figures
from berth.actors.card.state import Waiter
from berth.actors.card.turn import Turn
from berth.actors.node.inbox import RequestStands
from berth.ids import RequestId
from berth.lease import Ask
from berth.standing import NOT_OF_ROOM, Blocker, Eta, Outlook, sentence
from berth.units import Instant

Reason = tuple[Blocker, ...]


def tell_all(turn: Turn, reasons: Mapping[RequestId, Reason], books: Books | None) -> None:
    """Note of every waiter why it waits, and tell those to whom that is news.

    `books` is None while nothing is granted: there are no figures then.
    """
    telling = _Telling(turn, books)
    queue: list[Waiter] = []
    changed = False
    for place, waiter in enumerate(turn.card.queue, 1):
        plain = reasons.get(waiter.request, ())
        blockers = telling.figures(waiter, plain)
        look = telling.outlook(waiter, plain, blockers, first=place == 1)
        if waiter.blockers is blockers and waiter.outlook is look:
            queue.append(waiter)
        else:
            queue.append(telling.told(waiter, place, blockers, look))
            changed = True
    if changed:
        turn.card = replace(turn.card, queue=tuple(queue))


class _Telling:
    """One round of telling: what it has made once, for all who wait for the same."""

    def __init__(self, turn: Turn, books: Books | None) -> None:
        self._turn = turn
        self._books = books
        self._figures: dict[int, Reason] = {}
        self._outlooks: dict[tuple[int, Ask], Outlook] = {}
        self._words: dict[tuple[int, bool, bool], str] = {}
        self._etas: dict[tuple[int, Instant | None], Eta | None] = {}
        self._news: dict[tuple[int, int], bool] = {}
        self._of_room: dict[int, bool] = {}
        self._card, self._waiting = turn.card.name, len(turn.card.queue)

    def figures(self, waiter: Waiter, plain: Reason) -> Reason:
        """Return a reason with its figures: the waiter's own where that is the same."""
        known = self._figures.get(id(plain))
        if known is not None:
            return known
        new = plain
        if self._books is not None:
            card, books, now = self._turn.card, self._books, self._turn.now
            new = tuple(with_figures(card, books, blocker, now) for blocker in plain)
        own = waiter.blockers
        self._figures[id(plain)] = own if own is not None and own == new else new
        return self._figures[id(plain)]

    def outlook(
        self, waiter: Waiter, plain: Reason, blockers: Reason, *, first: bool
    ) -> Outlook | None:
        """Return a waiter's outlook: its own where that is the same, or that of its likes."""
        if self._books is None:
            return None
        what = (id(plain), waiter.ask)
        look = None if first else self._outlooks.get(what)
        if look is None:
            new = outlook(self._books, waiter, blockers, first=first)
            own = waiter.outlook
            look = own if own is not None and own == new else new
            if not first:
                self._outlooks[what] = look
        return look

    def told(self, waiter: Waiter, place: int, blockers: Reason, look: Outlook | None) -> Waiter:
        """Return the waiter with its new reason; tell it, if more than the figures is new."""
        lacked_room = waiter.lacked_room or self._is_of_room(blockers)
        after = replace(waiter, blockers=blockers, outlook=look, lacked_room=lacked_room)
        if self._is_news(waiter.blockers, blockers):
            self._turn.effects.append(
                RequestStands(
                    request=waiter.request,
                    card=self._card,
                    position=place,
                    waiting=self._waiting,
                    blockers=blockers,
                    why=self._sentence(place, blockers, look),
                    outlook=look,
                    eta=self._eta(after, blockers),
                )
            )
        return after

    def _is_of_room(self, blockers: Reason) -> bool:
        """Tell whether there is no room for it, be it in the books or on the card."""
        known = self._of_room.get(id(blockers))
        if known is None:
            known = any(blocker.how not in NOT_OF_ROOM for blocker in blockers)
            self._of_room[id(blockers)] = known
        return known

    def _is_news(self, before: Reason | None, blockers: Reason) -> bool:
        what = (id(before), id(blockers))
        known = self._news.get(what)
        if known is None:
            known = self._news[what] = not _same(before, blockers)
        return known

    def _sentence(self, place: int, blockers: Reason, look: Outlook | None) -> str:
        """Return the reason in words. But for the first, an ask changes them only if it fits."""
        if look is None or place == 1:
            return sentence(blockers, look)
        passes = look.ask is not None and look.room >= look.ask
        what = (id(blockers), look.fits, passes)
        if what not in self._words:
            self._words[what] = sentence(blockers, look)
        return self._words[what]

    def _eta(self, waiter: Waiter, blockers: Reason) -> Eta | None:
        what = (id(blockers), waiter.ordered)
        if what not in self._etas:
            self._etas[what] = eta(self._turn.card, waiter, self._turn.now)
        return self._etas[what]


def _same(before: Reason | None, now: Reason) -> bool:
    """Tell whether two reasons are the same but for their figures."""
    if before is None or len(before) != len(now):
        return False
    return all(
        (one.who, one.how, one.ref, one.in_flight, one.because)
        == (other.who, other.how, other.ref, other.in_flight, other.because)
        for one, other in zip(before, now, strict=True)
    )
