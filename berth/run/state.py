"""The state of a wrapper: what it was started with, and how far it is."""

import signal
from typing import Final, TypeAlias

import msgspec

from berth.units import Instant, Seconds

IDLE_APART: Final = Seconds(0.25)
"""How far apart the two idle reads of a boundary are (H2)."""
READ_AGAIN: Final = Seconds(0.5)
"""How long after a busy read the boundary is read again."""
UNREADABLE_FOR: Final = Seconds(10.0)
"""How long a declared boundary may be unreadable before the engine is stopped (H2)."""
WATCH_ANSWER_FOR: Final = Seconds(3.0)
"""How long after it is ready an engine is watched for its first answer (Q11)."""
TELL_AGAIN_EVERY: Final = Seconds(30.0)
"""How often who waits is told so where lines stay: a log must show that it is not stuck."""
LEAVE_WITHIN: Final = Seconds(5.0)
"""How long a release may be unheard before the wrapper leaves all the same."""
DIE_WITHIN: Final = Seconds(5.0)
"""How long killed processes may take to be gone before the wrapper leaves them to the reading."""
LOOK_AT_LEFTOVERS: Final = Seconds(1.0)
"""How often what a finished command left behind is looked at (R9)."""
SETTLE_WITHIN: Final = Seconds(30.0)
"""For how long after the start of a command what it leaves behind may still be about to load."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the wrapper was told: its flags, and what of berth.toml they fell back to.

    `names_cards`: the person named cards, so the command is shown those only (M3). `asks` is what
    it wants, in words; `on_terminal`: a person reads along, on a screen that can be written over.
    """

    name: str
    wait: Seconds
    drain_wait: Seconds
    grace: Seconds
    boundary: bool
    unload: bool
    fail_closed: bool
    names_cards: bool
    mark: str
    environment_names: frozenset[str] = frozenset()
    berthd_seen_this_boot: bool = True
    asks: str = ""
    priority: str = ""
    on_terminal: bool = False


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """It waits for its grant; the child waits to execute.

    `told` is the line that the person read last, `reason` what it was about, `told_at` when.
    """

    since: Instant
    request: str = ""
    told: str = ""
    reason: str = ""
    told_at: Instant = Instant(0.0)


class NoDrain(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody wants the card back. `read_at`: when the boundary is read next, if it is."""

    ready_at: Instant | None = None
    served: bool = False
    read_at: Instant | None = None


class ToBoundary(msgspec.Struct, frozen=True, kw_only=True):
    """Ordered away, and something is or may be in flight."""

    order: str
    asked: Instant
    read_at: Instant | None
    idle_once: bool = False
    unreadable_since: Instant | None = None
    told_in_flight: int | None = None


class Unloading(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is in flight; the unload URL was called, and the command should end by itself."""

    stop_at: Instant


class Stopping(msgspec.Struct, frozen=True, kw_only=True):
    """SIGTERM is out; SIGKILL follows at `kill_at`, None once it is out too (H3)."""

    kill_at: Instant | None


Drain: TypeAlias = NoDrain | ToBoundary | Unloading | Stopping


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """The command runs. `lease` None: it runs unprotected. `attempt`: the latest order's number.

    `reading`: a read of the boundary is under way; there is never more than one.
    """

    lease: str | None
    started: Instant
    attempt: int = 0
    scope: str | None = None
    executed: bool = False
    drain: Drain = NoDrain()
    reading: bool = False


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """The command has ended with `status`, and left processes behind (R9).

    `look_at`: when what they hold is looked at next; once they are `killed`, when the wrapper
    leaves them to the reading. Before `settled` they may still be about to load: a command that
    puts a server behind itself ends before that has any memory.
    """

    lease: str | None
    status: int
    ended: Instant
    attempt: int
    scope: str | None
    look_at: Instant
    settled: Instant
    kill_at: Instant | None = None
    killed: bool = False
    told: bool = False


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """The lease was given back; berthd must hear it by `leave_by`."""

    lease: str
    status: int
    leave_by: Instant


class Over(msgspec.Struct, frozen=True):
    """The wrapper has left."""


Phase: TypeAlias = Asking | Running | Leftovers | Leaving | Over


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `away_since`: when berthd was last lost, None while it is there.

    `cards` are those granted, by name, in the order named.
    """

    options: RunOptions
    phase: Phase
    away_since: Instant | None
    cards: tuple[str, ...] = ()
    signalled_by_berth: bool = False


KILL: Final = int(signal.SIGKILL)
TERM: Final = int(signal.SIGTERM)
