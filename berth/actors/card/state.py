"""The state of one card: its leases, its queue, and what the last reading showed."""

from bisect import bisect_right
from collections.abc import Mapping
from statistics import median
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.actors.node.inbox import Stand
from berth.actors.trees.messages import Elsewhere
from berth.ids import CardName, LeaseId, ProcessId, RequestId, number_of
from berth.lease import Ask, Lease, Priority, Terms, become
from berth.readings import NOT_READ_YET, CardIdentity, GpuProcess, Reading, Unmeasured
from berth.standing import Blocker, Outlook
from berth.units import Instant, MiB, Seconds, since

FRESH_FOR: Final = Seconds(5.0)
"""How long a reading may be the ground of a grant (B1)."""

HAND_OFFS_KEPT: Final = 31
"""How many of the latest hand-offs the median is taken of."""


class JuggleRule(msgspec.Struct, frozen=True, kw_only=True):
    """When two engines juggle a card, and how long a turn must be then; see `juggle.py` (Q5)."""

    takes: int = 3
    within: Seconds = Seconds(600.0)
    factor: float = 4.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may set for a card."""

    release_grace: Seconds = Seconds(30.0)
    allow: frozenset[str] = frozenset()
    tolerate: MiB = MiB(1024)
    juggle: JuggleRule = JuggleRule()


class Waiter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request in the queue.

    `behind` names the one of the same exclusive name that must end first. `lacked_room`: books or
    reading had no room for it once (a collision avoided, when it is granted). `ordered`: when the
    first holder was asked to make room for it. A request for several `cards` is a waiter on each:
    `stand` is what the node was told last of its share here, and `may_ask` that the node lets it
    ask holders. `chosen` says why a request for any card is here.
    """

    request: RequestId
    terms: Terms
    ask: Ask
    holder: ProcessId | None
    cards: tuple[CardName, ...]
    arrived: Instant
    refuse_at: Instant
    behind: str = ""
    lacked_room: bool = False
    chosen: str = ""
    may_ask: bool = False
    stand: Stand | None = None
    blockers: tuple[Blocker, ...] | None = None
    outlook: Outlook | None = None
    ordered: Instant | None = None

    @property
    def shared(self) -> bool:
        """Tell whether it waits for several cards at once."""
        return len(self.cards) > 1


class HandOffs(msgspec.Struct, frozen=True, kw_only=True):
    """How long hand-offs have taken on a card: from the first order to the grant.

    `count` is all of them, `recent` the latest ones, which the median is of.
    """

    count: int = 0
    recent: tuple[Seconds, ...] = ()

    @property
    def median(self) -> Seconds | None:
        """Return what one takes, None when none was measured."""
        if not self.recent:
            return None
        return Seconds(median(self.recent))

    def with_one(self, took: Seconds) -> "HandOffs":
        """Return them with one more."""
        recent = (*self.recent, took)[-HAND_OFFS_KEPT:]
        return HandOffs(count=self.count + 1, recent=recent)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A share that is kept free until the node says what becomes of it; `doubt_at` it is asked."""

    request: RequestId
    ask: Ask
    round: int
    doubt_at: Instant


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A reading, laid against the leases.

    `used` is what each lease's processes hold, absent where it has none. `unsized` are leases with
    a process whose size the driver does not tell; `foreign` are stowaways that hold a lease on
    another card, and are named after it; `covered` is what no row explains and they, or on
    a blind reading all leases, may hold by their asks. `clamped` is by how much the processes' sum
    exceeded the card's own figure (B5).
    """

    reading: Reading
    baseline: MiB
    unexplained: MiB
    clamped: MiB
    covered: MiB = MiB(0)
    used: Mapping[LeaseId, MiB]
    pids: Mapping[LeaseId, tuple[int, ...]]
    unsized: frozenset[LeaseId]
    foreign: frozenset[ProcessId] = frozenset()
    stowaways: tuple[GpuProcess, ...]

    @property
    def capacity(self) -> MiB:
        """Return what the card can hand out: total less baseline (B2)."""
        return MiB(max(0, self.reading.total - self.baseline))


class Gave(msgspec.Struct, frozen=True, kw_only=True):
    """A holder that gave the card up for a waiter, after so much work in its turn."""

    name: str
    priority: Priority
    ordered: Instant
    worked: Seconds


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that took the card from another of its priority; `ready` once it is at work."""

    taker: str
    lease: LeaseId
    giver: str
    ordered: Instant
    worked: Seconds
    ready: Instant | None = None


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine has used at most on a card in its last runs, the latest last (MiB)."""

    runs: int = 0
    peaks: tuple[MiB, ...] = ()

    @property
    def needs(self) -> MiB | None:
        """Return what it needs, None when that was never seen."""
        return max(self.peaks, default=None)


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One card.

    `measured` is the latest reading, however old; `unread` says why there is no newer one. `leases`
    stand in order of grant, `queue` in order of turn. `recovering_until`: after a restart nothing
    is granted until the holders of old came back, are gone, or this instant has passed; with
    `strangers_may_return` there may be some that nobody knows of, so it is waited for.
    `awaits_node`: it was started again, and has not heard yet what the node knows of it.
    `overdrawn` is the first of the readings in a row that show more than the books know of.
    `fast` and `wake` are what the probe was told of its pace.
    `awake_since`: when the machine last woke from a suspend; readings from before say nothing.
    `given` is what was given up for waiters, `switches` who took the card from whom lately (Q5).
    `peaks` is the most that each run has used, `learned` what engines needed before (B7).
    `elsewhere` are holders of other cards: what they use here is no lease's of this one (B6).
    `offers` count as taken. `contested` and `strangers` were told once and are not told again.
    """

    identity: CardIdentity
    settings: Settings = msgspec.field(default_factory=Settings)
    measured: Measured | None = None
    unread: Unmeasured | None = NOT_READ_YET
    baseline: MiB | None = None
    leases: tuple[Lease, ...] = ()
    queue: tuple[Waiter, ...] = ()
    offers: tuple[Offer, ...] = ()
    recovering_until: Instant | None = None
    strangers_may_return: bool = False
    awake_since: Instant | None = None
    awaits_node: bool = False
    journal_writable: bool = True
    closing: bool = False
    fast: bool = False
    wake: bool = False
    overdrawn: Instant | None = None
    contested: frozenset[LeaseId] = frozenset()
    strangers: Mapping[ProcessId, str] = msgspec.field(default_factory=dict)
    hand_offs: HandOffs = HandOffs()
    given: Mapping[RequestId, tuple[Gave, ...]] = msgspec.field(default_factory=dict)
    switches: tuple[Switch, ...] = ()
    peaks: Mapping[LeaseId, MiB] = msgspec.field(default_factory=dict)
    learned: Mapping[str, Learned] = msgspec.field(default_factory=dict)
    elsewhere: Mapping[LeaseId, Elsewhere] = msgspec.field(default_factory=dict)

    @property
    def name(self) -> CardName:
        """Return the card's name for people."""
        return self.identity.name

    def lease(self, lease: LeaseId) -> Lease | None:
        """Return the lease of that id, None when it is not here."""
        return next((held for held in self.leases if held.id == lease), None)

    def waiter(self, request: RequestId) -> Waiter | None:
        """Return the waiter of that request, None when it does not wait here."""
        return next((waiter for waiter in self.queue if waiter.request == request), None)

    def fresh(self, now: Instant) -> Measured | None:
        """Return the latest reading if a grant may rest on it."""
        if self.unread is not None or self.measured is None:
            return None
        return self.measured if since(self.measured.reading.taken, now) <= FRESH_FOR else None

    def with_change(self, before: Lease, after: Lease) -> "Card":
        """Return the card with one lease changed; `lease.EDGES` must allow the change."""
        become(before, after)
        return self.with_lease(after)

    def with_lease(self, lease: Lease) -> "Card":
        """Return the card with `lease` in the place of the one with its id, or added."""
        if self.lease(lease.id) is None:
            return replace(self, leases=(*self.leases, lease))
        return replace(
            self, leases=tuple(lease if held.id == lease.id else held for held in self.leases)
        )

    def without_lease(self, lease: LeaseId) -> "Card":
        """Return the card without that lease."""
        return replace(
            self,
            leases=tuple(held for held in self.leases if held.id != lease),
            contested=self.contested - {lease},
        )

    def with_waiter(self, waiter: Waiter) -> "Card":
        """Return the card with `waiter` in its place: by priority, then by arrival."""
        place = bisect_right(self.queue, _turn(waiter), key=_turn)
        return replace(self, queue=(*self.queue[:place], waiter, *self.queue[place:]))

    def without_waiter(self, request: RequestId) -> "Card":
        """Return the card without that waiter."""
        return replace(self, queue=tuple(w for w in self.queue if w.request != request))

    def with_waiter_changed(self, waiter: Waiter) -> "Card":
        """Return the card with `waiter` in the place of the one of its request."""
        queue = (waiter if old.request == waiter.request else old for old in self.queue)
        return replace(self, queue=tuple(queue))

    def offer(self, request: RequestId) -> Offer | None:
        """Return what is kept free for that request, None when nothing is."""
        return next((offer for offer in self.offers if offer.request == request), None)

    def without_offer(self, request: RequestId) -> "Card":
        """Return the card without that offer."""
        return replace(self, offers=tuple(o for o in self.offers if o.request != request))


def _turn(waiter: Waiter) -> tuple[int, float, int]:
    """Return the place in line: the same on every card, so that no two wait for each other."""
    return (-waiter.terms.priority, waiter.arrived, number_of(waiter.request))
