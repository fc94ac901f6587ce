"""What a request would cost on this card (Q9), and whether it could ever fit."""

from berth.actors.card.books import close
from berth.actors.card.queue import halted, plan
from berth.actors.card.state import Card, Waiter
from berth.actors.node.inbox import Fit, Surveyed
from berth.lease import WholeCard
from berth.units import Instant, MiB, show_gib


def survey(card: Card, waiter: Waiter, now: Instant) -> Surveyed:
    """Look what granting this request would take here. It is not in the queue; nothing changes."""
    rank, cost, why = _look(card, waiter, now)
    return Surveyed(request=waiter.request, card=card.name, rank=rank, cost=cost, why=why)


def _look(card: Card, waiter: Waiter, now: Instant) -> tuple[Fit, tuple[float, ...], str]:
    never = too_big(card, waiter)
    if never:
        return Fit.NEVER, (), never
    measured = card.fresh(now)
    if measured is None or halted(card, now) is not None:
        return Fit.UNREADABLE, (), f"{card.name} grants nothing just now"
    books = close(card, measured)
    wanted = plan(card.with_waiter(waiter), books, now)
    if wanted.grant is not None and wanted.grant.request == waiter.request:
        left_over = 0.0 if isinstance(waiter.ask, WholeCard) else float(books.room - waiter.ask)
        return Fit.NOW, (left_over,), f"it fits on {card.name} now"
    asked = [lease for lease, whom in wanted.asks if whom.request == waiter.request]
    ahead = float(len(card.queue))
    if asked:
        touched = float(max(lease.terms.priority for lease in asked))
        jobs = float(sum(1 for lease in asked if not lease.terms.boundary))
        why = f"the switch costs least on {card.name}"
        return Fit.BY_ASKING, (ahead, touched, jobs, float(len(asked))), why
    return Fit.BY_WAITING, (ahead, float(len(card.leases))), f"the shortest wait is on {card.name}"


def too_big(card: Card, waiter: Waiter) -> str:
    """Return why the ask can never fit, empty when it could."""
    if isinstance(waiter.ask, WholeCard) or card.measured is None:
        return ""
    return _more_than(card, waiter.ask, card.measured.capacity)


def outgrown(card: Card) -> list[tuple[Waiter, str]]:
    """Return who waits and can never fit any more, and why: the driver keeps more for itself.

    What is nobody's does not count here: it may go.
    """
    if card.measured is None:
        return []
    reading = card.measured.reading
    whys = [
        (waiter, _more_than(card, waiter.ask, reading.total - reading.reserved))
        for waiter in card.queue
        if not isinstance(waiter.ask, WholeCard) and card.offer(waiter.request) is None
    ]
    return [(waiter, why) for waiter, why in whys if why]


def _more_than(card: Card, ask: MiB, most: int) -> str:
    if ask <= most:
        return ""
    return f"{show_gib(ask)} GiB is more than {card.name} can hand out ({show_gib(most)} GiB)"
