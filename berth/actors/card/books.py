"""The books of one card: what each lease counts, and what is left (B2 to B5).

    capacity    = total - baseline
    books free  = capacity - what the leases count - stowaways - what nobody explains
    driver free = what the driver shows free - what leases count beyond what they are seen to hold

A grant needs room in both. The books know what was promised, the driver knows what is there; an
engine's word is in neither.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.actors.card.state import Card, Measured, Offer, Settings
from berth.ids import LeaseId, ProcessId, lease_of
from berth.lease import Ask, Lease, Priority, Releasing, Stuck, Terms, WholeCard
from berth.readings import GpuProcess, Reading, Unmeasured
from berth.units import MiB

UNEXPLAINED_SLACK: Final = MiB(64)
"""How much more may be unexplained when a lease counts as freed than was at its grant (B3)."""


DRIVERS_OWN: Final = MiB(1000)
"""How much of what is nobody's may be the driver's own, though it does not name it."""


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of one card. `free` and `driver_free` can be negative, when it is overdrawn.

    `at_most` is what the card hands out with nothing on it: no lease, no process, and of what is
    nobody's no more than a driver keeps for itself.
    `squatters` are those that keep the card from being whole, the heaviest first.
    `settling`: a lease was released and no reading has shown its memory free yet, stuck or not.
    `counts` has every lease, and every offer under the id of the lease it may become.
    """

    capacity: int
    counts: Mapping[LeaseId, int]
    stowaways: int
    unexplained: int
    free: int
    driver_free: int
    at_most: int
    squatters: tuple[GpuProcess, ...]
    settling: bool

    @property
    def room(self) -> int:
        """Return what can be granted now: what both the books and the driver have."""
        return min(self.free, self.driver_free)


def measure(card: Card, reading: Reading) -> Measured:
    """Lay a reading against the leases: whose each process is, and what nobody explains."""
    used: dict[LeaseId, MiB] = {}
    pids: dict[LeaseId, tuple[int, ...]] = {}
    unsized: set[LeaseId] = set()
    stowaways: list[GpuProcess] = []
    total = 0
    owners = _owners(card.leases)
    strangers = _owners_elsewhere(card)
    foreign: set[ProcessId] = set()
    for row in reading.processes:
        lease = _owner(owners, row)
        total += 0 if isinstance(row.used, Unmeasured) else row.used
        if lease is None:
            known = _owner(strangers, row)
            if known is not None:
                foreign.add(row.process)
                row = replace(row, name=card.elsewhere[known].name)  # noqa: PLW2901
            stowaways.append(row)
            continue
        pids[lease] = (*pids.get(lease, ()), row.process.pid)
        if isinstance(row.used, Unmeasured):
            unsized.add(lease)
        else:
            used[lease] = MiB(used.get(lease, 0) + row.used)
    clamped = max(0, total - reading.used)
    baseline = _baseline(card, reading, total)
    nobodys = max(0, reading.used - total - baseline)
    covered = _covered(card.leases, reading, used, frozenset(unsized), nobodys)
    return Measured(
        reading=reading,
        baseline=baseline,
        unexplained=MiB(nobodys - covered),
        clamped=MiB(clamped),
        covered=covered,
        used=used,
        pids=pids,
        unsized=frozenset(unsized),
        foreign=frozenset(foreign),
        stowaways=tuple(stowaways),
    )


def _baseline(card: Card, reading: Reading, processes: int) -> MiB:
    """Return what belongs to no process: it follows the reading, but only falls under a lease."""
    if processes > reading.used and card.baseline is not None:
        return card.baseline
    shown = max(reading.reserved, reading.used - processes)
    if card.leases and card.baseline is not None:
        return MiB(min(card.baseline, shown))
    return MiB(shown)


def _covered(
    leases: tuple[Lease, ...],
    reading: Reading,
    used: Mapping[LeaseId, MiB],
    unsized: frozenset[LeaseId],
    nobodys: int,
) -> MiB:
    """Return how much that no row explains is theirs whose rows tell no size: up to their asks.

    Counted as unexplained as well, it would be taken twice. What was released is not covered by a
    reading taken afterwards: that one must show it free.
    """
    room = 0
    for lease in leases:
        if lease.id not in unsized:
            gone = isinstance(lease, Releasing | Stuck) and reading.taken > lease.released
            if gone or not reading.blind:
                continue
        if isinstance(lease.held.ask, WholeCard):
            return MiB(nobodys)
        room += max(0, lease.held.ask - used.get(lease.id, 0))
    return MiB(min(room, nobodys))


def _owners(leases: tuple[Lease, ...]) -> dict[ProcessId | str, LeaseId]:
    """Return whose each known process and scope is. A later lease of the same process wins."""
    owners: dict[ProcessId | str, LeaseId] = {}
    for lease in leases:
        if lease.held.scope is not None:
            owners[lease.held.scope] = lease.id
        owners.update(dict.fromkeys(lease.held.members, lease.id))
        if lease.held.holder is not None:
            owners[lease.held.holder] = lease.id
    return owners


def _owners_elsewhere(card: Card) -> dict[ProcessId | str, LeaseId]:
    """Return whose lease on another card each known process and scope is (B6)."""
    owners: dict[ProcessId | str, LeaseId] = {}
    for lease, tree in card.elsewhere.items():
        owners.update(dict.fromkeys(tree.processes, lease))
        if tree.scope is not None:
            owners[tree.scope] = lease
    return owners


def _owner(owners: dict[ProcessId | str, LeaseId], row: GpuProcess) -> LeaseId | None:
    """Return the lease that a process belongs to: its own mark, its scope, its nearest ancestor."""
    if row.process in owners:
        return owners[row.process]
    if row.scope is not None and row.scope in owners:
        return owners[row.scope]
    return next((owners[parent] for parent in row.ancestors if parent in owners), None)


def close(card: Card, measured: Measured) -> Books:
    """Add the books up against a reading."""
    stowaways = sum(row.used for row in measured.stowaways if not isinstance(row.used, Unmeasured))
    taken_by_others = stowaways + measured.unexplained
    counts = {
        lease.id: _sized_count(lease, measured)
        for lease in card.leases
        if not _counts_whole(lease, measured)
    }
    counts |= {
        lease_of(offer.request): offer.ask
        for offer in card.offers
        if not isinstance(offer.ask, WholeCard)
    }
    rest = max(0, measured.capacity - taken_by_others - sum(counts.values()))
    for lease_id in (*(held.id for held in card.leases), *map(_offered, card.offers)):
        if lease_id not in counts:
            counts[lease_id] = max(rest, measured.used.get(lease_id, 0))
            rest = 0
    promised = sum(max(0, count - measured.used.get(lease, 0)) for lease, count in counts.items())
    promised -= measured.covered
    return Books(
        capacity=measured.capacity,
        counts=counts,
        stowaways=stowaways,
        unexplained=measured.unexplained,
        free=measured.capacity - taken_by_others - sum(counts.values()),
        driver_free=measured.reading.free - promised,
        at_most=_at_most(measured),
        squatters=_squatters(card.settings, measured),
        settling=any(isinstance(lease, Releasing | Stuck) for lease in card.leases),
    )


def _at_most(measured: Measured) -> int:
    """Return what the card hands out with nothing on it (B2).

    What is nobody's beyond the driver's own may go, as what a dead process left does.
    """
    reading = measured.reading
    kept = max(reading.reserved, min(measured.baseline, reading.reserved + DRIVERS_OWN))
    return max(0, reading.total - kept)


def _offered(offer: Offer) -> LeaseId:
    """Return what an offer counts as: the lease that it may become (M2)."""
    return lease_of(offer.request)


def _counts_whole(lease: Lease, measured: Measured) -> bool:
    return isinstance(lease.held.ask, WholeCard) and not _seen_released(lease, measured)


def _seen_released(lease: Lease, measured: Measured) -> bool:
    """Tell whether this reading can show what the lease gave back: it was taken afterwards."""
    if not isinstance(lease, Releasing | Stuck) or lease.id in measured.unsized:
        return False
    return measured.reading.taken > lease.released


def _sized_count(lease: Lease, measured: Measured) -> int:
    used = measured.used.get(lease.id, MiB(0))
    if _seen_released(lease, measured) or isinstance(lease.held.ask, WholeCard):
        return used
    return max(lease.held.ask, used)


def _squatters(settings: Settings, measured: Measured) -> tuple[GpuProcess, ...]:
    over = [
        row
        for row in measured.stowaways
        if row.process not in measured.foreign
        and row.name not in settings.allow
        and not isinstance(row.used, Unmeasured)
        and row.used > settings.tolerate
    ]
    return tuple(sorted(over, key=_size, reverse=True))


def _size(row: GpuProcess) -> int:
    return 0 if isinstance(row.used, Unmeasured) else row.used


def shown_free(lease: Releasing | Stuck, measured: Measured) -> bool:
    """Tell whether this reading shows that a released lease's memory is free (B3)."""
    return (
        measured.reading.taken > lease.released
        and measured.used.get(lease.id, 0) == 0
        and lease.id not in measured.unsized
        and measured.unexplained <= lease.held.unexplained + UNEXPLAINED_SLACK
    )


def fits(ask: Ask, terms: Terms, books: Books, learned: MiB | None = None) -> bool:
    """Tell whether an ask can be granted beside what is on the card now (B4).

    `learned` is what an engine of that name needed before: a whole card must cover it, or be all
    that this card ever hands out. It had more once, before the driver kept more for itself.
    """
    if terms.priority is Priority.HOLD:
        return _fits_a_hold(ask, books)
    if isinstance(ask, WholeCard):
        taken = books.settling or any(books.counts.values())
        return (
            not taken
            and not books.squatters
            and books.room >= max(1, min(learned or 0, books.at_most))
        )
    return books.room >= ask


def _fits_a_hold(ask: Ask, books: Books) -> bool:
    """A hold looks at leases only: a person may take a card that a stowaway is on."""
    leased = sum(books.counts.values())
    if isinstance(ask, WholeCard):
        return leased == 0
    return books.capacity - leased >= ask
