"""What a card's decisions must rest on, reckoned anew from the reading and the terms alone.

Used by the properties and by the simulation. Nothing here asks the books or the queue of the card:
a wrong sum there must not be able to justify itself.
"""

from berth.actors.card.state import Card, Waiter
from berth.ids import LeaseId
from berth.lease import (
    Detached,
    Draining,
    Lease,
    Priority,
    Releasing,
    Running,
    Starting,
    Stuck,
    WholeCard,
)
from berth.readings import GpuProcess, Reading, Unmeasured
from berth.units import Instant

FRESH_S = 5.0
ANSWER_FIRST_S = 3.0
SLACK_MIB = 64
DRIVERS_OWN_MIB = 1000


def nobodys(reading: Reading) -> int:
    """Return what a reading shows in use that no process holds."""
    return max(0, reading.used - sum(_mib(row) for row in reading.processes))


def tells_too_little(reading: Reading) -> bool:
    """Tell whether a driver leaves open who holds how much."""
    return bool(reading.blind) or any(isinstance(r.used, Unmeasured) for r in reading.processes)


def holds(lease: Lease, reading: Reading) -> int:
    """Return what a reading shows with a lease's processes."""
    return sum(_mib(row) for row in reading.processes if _is_of(row, lease))


def _mib(row: GpuProcess) -> int:
    return 0 if isinstance(row.used, Unmeasured) else row.used


def _is_of(row: GpuProcess, lease: Lease) -> bool:
    own = {lease.held.holder, *lease.held.members} - {None}
    if row.process in own or not own.isdisjoint(row.ancestors):
        return True
    return lease.held.scope is not None and row.scope == lease.held.scope


def _is_seen_released(lease: Lease, reading: Reading) -> bool:
    return isinstance(lease, Releasing | Stuck) and reading.taken > lease.released


def grant_trouble(card: Card, granted: LeaseId, now: Instant) -> str:
    """Return why a lease that is among the card's now must not have been granted, or nothing (B4).

    `card` is the card once it has decided.
    """
    lease = card.lease(granted)
    if lease is None or card.measured is None or card.unread is not None:
        return "there is no reading, or no lease"
    reading = card.measured.reading
    if now - reading.taken > FRESH_S:
        return "the reading is stale"
    if card.recovering_until is not None:
        return "the holders of before a restart have not come back"
    if not card.journal_writable:
        return "the journal cannot be written"
    if lease.terms.priority is Priority.HOLD:
        return ""
    others = [one for one in card.leases if one.id != granted]
    if isinstance(lease.held.ask, WholeCard):
        return _whole_card_trouble(card, lease, others, reading)
    return _sized_trouble(card, others, reading)


def _whole_card_trouble(card: Card, lease: Lease, others: list[Lease], reading: Reading) -> str:
    if others:  # also a stuck one: what it left may show with no process
        return f"a whole card is granted beside {others[0].id}"
    strangers = [row for row in reading.processes if not any(_is_of(row, one) for one in others)]
    big = [
        row
        for row in strangers
        if _mib(row) > card.settings.tolerate
        and row.name not in card.settings.allow
        and not any(row.process in tree.processes for tree in card.elsewhere.values())
    ]
    if big:
        return f"a whole card is granted beside {big[0].name}"
    return _too_little_trouble(card, lease, reading)


def _too_little_trouble(card: Card, lease: Lease, reading: Reading) -> str:
    """Return why what is left is too little for what that engine needed before, or nothing (B4).

    It need not be more than an empty card has, less what the driver keeps for itself.
    """
    known = card.learned.get(lease.name)
    if known is None or not known.peaks or sum(map(_mib, reading.processes)) > reading.used:
        return ""
    unnamed = max(0, nobodys(reading) - reading.reserved)
    drivers_own = reading.reserved + min(unnamed, DRIVERS_OWN_MIB)
    needs = min(max(known.peaks), reading.total - drivers_own)
    left = reading.total - reading.used
    return f"{left} MiB are left, and it needs {needs}" if left < needs else ""


def _sized_trouble(card: Card, others: list[Lease], reading: Reading) -> str:
    promised = 0
    for one in card.leases:
        if _is_seen_released(one, reading):
            continue
        if isinstance(one.held.ask, WholeCard):
            return "memory is granted beside a whole card"
        promised += max(0, one.held.ask - holds(one, reading))
    if tells_too_little(reading):  # what no row explains may be theirs whose asks are counted
        return "" if promised <= reading.total else f"{promised} MiB are promised"
    if reading.used + promised > reading.total:
        return f"{reading.used} MiB are used, {promised} promised, of {reading.total}"
    return ""


def freeing_trouble(lease: Lease, reading: Reading, nobodys_at_grant: int | None) -> str:
    """Return why a lease must not have left the books by this reading, or nothing (B3)."""
    if not isinstance(lease, Releasing | Stuck):
        return f"it was not even released: {lease}"
    if reading.taken <= lease.released:
        return "the reading was begun before the release"
    if holds(lease, reading):
        return "its processes hold memory"
    if nobodys_at_grant is None or tells_too_little(reading):
        return ""
    if nobodys(reading) > nobodys_at_grant + SLACK_MIB:
        return f"{nobodys(reading)} MiB are nobody's, {nobodys_at_grant} at its grant"
    return ""


def drain_trouble(was: Lease, told: Draining, waiter: Waiter, now: Instant) -> str:
    """Return why a holder must not have been asked to finish for a waiter, or nothing (Q2 to Q11).

    `was` is the lease before the decision, `told` after it.
    """
    terms, mine = was.terms, waiter.terms.priority
    if was.held.holder is None:
        return "a person's hold is asked to finish"
    if not terms.boundary and terms.fail_closed:
        return "a --fail-closed job is asked to finish"
    if mine is Priority.HOLD:
        return ""
    if terms.pinned:
        return "it is pinned"
    if now < was.held.granted + terms.min_turn:
        return "its turn is not over"
    if mine < terms.priority:
        return "it outranks the waiter"
    if mine > terms.priority:
        return ""
    if not terms.boundary:
        return "it is a job, and the waiter of its own priority"
    if isinstance(was, Detached):
        return ""
    return _unanswered_trouble(told.before, now)


def _unanswered_trouble(lease: Starting | Running, now: Instant) -> str:
    if isinstance(lease, Starting):
        return "it still starts"
    if not lease.served and now < lease.ready + ANSWER_FIRST_S:
        return "it has not answered anybody yet"
    return ""


def order_of_queue_trouble(card: Card, granted: LeaseId, arrived: Instant) -> str:
    """Return who was passed over that wanted no more and stood before it, or nothing (Q2).

    One that waits for several cards may be passed here by whatever it still fits beside (Q7).
    """
    lease = card.lease(granted)
    if lease is None:
        return ""
    for waiter in card.queue:
        ahead = (-waiter.terms.priority, waiter.arrived) < (-lease.terms.priority, arrived)
        if ahead and not waiter.behind and not waiter.shared and _wants_no_more(waiter, lease):
            return f"{waiter.terms.name} was passed over"
    return ""


def _wants_no_more(waiter: Waiter, lease: Lease) -> bool:
    ask, mine = waiter.ask, lease.held.ask
    if isinstance(ask, WholeCard):
        return True  # nobody may pass who waits for the whole card
    return isinstance(mine, WholeCard) or ask <= mine
