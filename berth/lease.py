"""What a lease can be, and every change it can go through.

Everything about the states of a lease is in this file. A lease is one of the frozen types of
`Lease`; `EDGES` lists which may follow which, and why. The card's core changes a lease only
through `become`, which refuses any other change. `docs/lease-states.md` is drawn from `EDGES`.

    Granted ──started──▶ Starting ──ready──▶ Running ──drain/stop──▶ Draining
       │                                        ▲   ◀──heard── Keeping ◀──│ nobody waits any more
       │                                        │                         │
       └────────────── released, holder gone ───┴──────────▶ Releasing ◀──┘
                                                               │   ╲
                                             the reading: free ▼    ▼ too late: Stuck

A lease is over when a reading taken after its release shows its memory free: it then leaves the
books, whatever its engine says. After a restart of berthd a lease is `Detached` until its holder
attaches again or its process is gone.
"""

from enum import IntEnum, StrEnum
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from berth.errors import BerthBug
from berth.ids import Attempt, CardName, Key, LeaseId, ProcessId, RequestId
from berth.units import Instant, MiB, Seconds, after, show_gib


class Priority(IntEnum):
    """Who goes before whom. A higher one drains a lower one at once."""

    BACKGROUND = 0
    BATCH = 1
    INTERACTIVE = 2
    FOREGROUND = 3
    HOLD = 4

    @property
    def word(self) -> str:
        """Return the name used on the wire and on screen."""
        return _WORDS[self]


_WORDS: Final = {priority: priority.name.lower() for priority in Priority}


class WholeCard(msgspec.Struct, frozen=True):
    """An ask for all that a card can hand out."""


HEAR_WITHIN: Final = Seconds(5.0)
"""How soon an order must be heard (H6), and a grant be started, before its holder is woken."""

START_WITHIN: Final = Seconds(30.0)
"""How long a granted command may take to be started before the grant is taken back (S6)."""

WHOLE_CARD: Final = WholeCard()
Ask: TypeAlias = MiB | WholeCard


def mib_of(ask: Ask) -> MiB | None:
    """Return the size of an ask, None for a whole card: as it is kept, told and shown."""
    return None if isinstance(ask, WholeCard) else ask


class Terms(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was asked for, the same for the life of a request and its lease.

    `boundary`: the engine can say when nothing is in flight, so it may be asked to stop there; a
    job cannot. `wrapped`: `berth run` stands between; Berth may signal its tree. A script's lease
    is not wrapped. `exclusive`: the name is one lease at a time. `reason` and `hold_for` are of a
    hold: what a person said it is for, and how long it lasts (None: until it is released).
    """

    name: str
    key: Key
    priority: Priority = Priority.INTERACTIVE
    wait: Seconds = Seconds(120.0)
    min_turn: Seconds = Seconds(0.0)
    drain_wait: Seconds = Seconds(300.0)
    grace: Seconds = Seconds(10.0)
    start_limit: Seconds = Seconds(900.0)
    pinned: bool = False
    boundary: bool = False
    fail_closed: bool = False
    wrapped: bool = False
    exclusive: bool = False
    group: str | None = None
    containers: tuple[str, ...] = ()
    reason: str = ""
    hold_for: Seconds | None = None


class Order(StrEnum):
    """What berthd asks of a holder."""

    DRAIN = "drain"
    CONTINUE = "continue"
    STOP = "stop"
    PING = "ping"
    ATTACH = "attach"
    """Say again what you hold: the card was started again."""


class DrainPhase(StrEnum):
    """How far a drain is. Each phase has its deadline in `Draining.deadline`."""

    ASKED = "asked"
    """The order is out; the holder has not said that it heard. Late: it is woken (SIGCONT)."""
    SILENT = "silent"
    """It was woken and has still said nothing. Late: berthd stops the tree itself."""
    HEARD = "heard"
    """It waits for its boundary. Late: berthd stops the tree itself."""
    BOUNDARY = "boundary"
    """Nothing is in flight and it is stopping. Late: berthd stops the tree itself."""
    ENDING = "ending"
    """berthd is stopping the tree. Late: it counts as released, and the reading decides."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What every lease carries from state to state.

    `cards` are its cards in the order named, and for several `keys` what they are known by over a
    reboot. `holder` is the process that asked (None: a person's hold), `members` its tree as last
    seen, `scope` the systemd scope its command runs in, `granted` when its turn began,
    `unexplained` what nobody explained on the card just then, `attempt` the number of the last
    order, `until` when a hold ends by itself.
    """

    id: LeaseId
    terms: Terms
    ask: Ask
    holder: ProcessId | None
    granted: Instant
    cards: tuple[CardName, ...] = ()
    keys: tuple[str, ...] = ()
    unexplained: MiB = MiB(0)
    attempt: Attempt = Attempt(0)
    members: frozenset[ProcessId] = frozenset()
    scope: str | None = None
    until: Instant | None = None


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """A lease in one of its states: what it carries, and what only that state has."""

    held: Held

    @property
    def id(self) -> LeaseId:
        return self.held.id

    @property
    def name(self) -> str:
        return self.held.terms.name

    @property
    def terms(self) -> Terms:
        return self.held.terms


class Granted(_State, frozen=True, kw_only=True):
    """Told to start. Not started by `wake_at`, its holder is woken; by `start_by`, taken back."""

    wake_at: Instant | None = None
    start_by: Instant


class Starting(_State, frozen=True, kw_only=True):
    """Its command runs and loads. From `ready_by` on it counts as ready."""

    ready_by: Instant


class Running(_State, frozen=True, kw_only=True):
    """At work since `ready`. `served`: it has answered a request."""

    ready: Instant
    served: bool = False


class Draining(_State, frozen=True, kw_only=True):
    """Asked to finish and give the card back; `wanted_by` is who asks, None for a person's stop.

    `in_flight` is what the holder last said it has still to answer.
    """

    order: Order
    wanted_by: RequestId | None
    asked: Instant
    phase: DrainPhase
    deadline: Instant
    before: "Starting | Running"
    in_flight: int | None = None


class Keeping(_State, frozen=True, kw_only=True):
    """Told to run on, because nobody waits any more. It may have passed its boundary already."""

    hear_by: Instant
    asked: Instant
    before: "Starting | Running"
    in_flight: int | None = None


class Releasing(_State, frozen=True, kw_only=True):
    """Its holder says it gave the memory back. The next reading taken after `released` tells.

    `had` is what it was seen to hold just before.
    """

    released: Instant
    free_by: Instant
    had: MiB = MiB(0)


class Stuck(_State, frozen=True, kw_only=True):
    """Released, but the card still shows its memory. Counted until the card shows it free."""

    released: Instant
    had: MiB = MiB(0)


class Detached(_State, frozen=True, kw_only=True):
    """Held by a living process that has said nothing since berthd started.

    `order` is what it had been told before, if anything.
    """

    order: Order | None = None


Lease: TypeAlias = Granted | Starting | Running | Draining | Keeping | Releasing | Stuck | Detached
Alive: TypeAlias = Granted | Starting | Running | Draining | Keeping | Detached
"""A lease whose memory its holder may still use."""


class Edge(msgspec.Struct, frozen=True):
    """One change a lease may go through."""

    before: type[Lease]
    cause: str
    after: type[Lease]


EDGES: Final[tuple[Edge, ...]] = (
    Edge(Granted, "started: it has a boundary", Starting),
    Edge(Granted, "started: a job, a script, a hold", Running),
    Edge(Granted, "its holder was woken; the machine slept", Granted),
    Edge(Granted, "stopped by a person, or taken back: not started in time", Draining),
    Edge(Granted, "released, holder gone, or a script's not started in time", Releasing),
    Edge(Starting, "the machine slept: its start limit is whole again", Starting),
    Edge(Starting, "ready, or start limit over", Running),
    Edge(Starting, "asked to drain or stop", Draining),
    Edge(Starting, "released, or holder gone", Releasing),
    Edge(Running, "served a request", Running),
    Edge(Running, "asked to drain or stop", Draining),
    Edge(Running, "released, or holder gone", Releasing),
    Edge(Draining, "heard, boundary, silence, stopped harder; the machine slept", Draining),
    Edge(Draining, "nobody waits any more", Keeping),
    Edge(Draining, "released, holder gone, or tree ended", Releasing),
    Edge(Keeping, "the machine slept: it has its time to hear again", Keeping),
    Edge(Keeping, "heard: it runs on", Running),
    Edge(Keeping, "heard: it loads on", Starting),
    Edge(Keeping, "past its boundary, or wanted again", Draining),
    Edge(Keeping, "released, or holder gone", Releasing),
    Edge(Releasing, "the machine slept: the card has its time again", Releasing),
    Edge(Releasing, "card did not show it free in time", Stuck),
    Edge(Releasing, "attached: its holder is at work after all", Running),
    Edge(Releasing, "attached: its holder loads after all", Starting),
    Edge(Releasing, "attached: its holder drains after all", Draining),
    Edge(Stuck, "attached: its holder is at work after all", Running),
    Edge(Stuck, "attached: its holder loads after all", Starting),
    Edge(Stuck, "attached: its holder drains after all", Draining),
    Edge(Detached, "attached: it loads", Starting),
    Edge(Detached, "attached: it runs", Running),
    Edge(Detached, "attached: it drains; asked or stopped meanwhile", Draining),
    Edge(Detached, "released, or holder gone", Releasing),
)
_ALLOWED: Final = frozenset((edge.before, edge.after) for edge in EDGES)


def become(before: Lease, after: Lease) -> Lease:
    """Return `after`, having checked that `before` may turn into it.

    Raises:
        BerthBug: the change is not in `EDGES`, or the lease is another one.
    """
    if before.id != after.id:
        raise BerthBug(f"{before.id} cannot become {after.id}")
    if (type(before), type(after)) not in _ALLOWED:
        raise BerthBug(f"{before.id}: {type(before).__name__} cannot become {type(after).__name__}")
    return after


def granted(held: Held, now: Instant) -> Granted:
    """Return a lease as it begins: told to start, woken and taken back when it does not."""
    return Granted(held=held, wake_at=after(now, HEAR_WITHIN), start_by=after(now, START_WITHIN))


def asks(ask: Ask, priority: Priority) -> str:
    """Return what is asked for, in words: `14.0 GiB, batch`."""
    size = "the whole card" if isinstance(ask, WholeCard) else f"{show_gib(ask)} GiB"
    return f"{size}, {priority.word}"


def ask_facts(ask: Ask, priority: Priority) -> dict[str, int | str | None]:
    """Return what is asked for, as an event tells it."""
    return {"mib": mib_of(ask), "priority": priority.word}


def with_held(lease: Lease, held: Held) -> Lease:
    """Return the lease in the same state, carrying something else."""
    return replace(lease, held=held)


def state_word(lease: Lease) -> str:
    """Return the lease's state as status shows it."""
    match lease:
        case Granted() | Starting():
            return "starting"
        case Running():
            return "running"
        case Draining() | Keeping():
            return "draining"
        case Releasing():
            return "releasing"
        case Stuck():
            return "stuck"
        case Detached():
            return "detached"
