"""What happens to a wrapper, and what it does."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from berth.units import Instant, Seconds

# --- what happens -------------------------------------------------------------------------------


class Connected(msgspec.Struct, frozen=True):
    """The socket reached berthd."""


class Disconnected(msgspec.Struct, frozen=True):
    """The socket lost berthd, or berthd has been silent for too long."""


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """berthd: the request waits, for this reason.

    `reason` is the same as long as the same are in the way in the same way, whatever their figures.
    It is number `position` of `waiting`. `cards` are those asked for, in the order named.
    """

    request: str
    why: str
    position: int
    cards: str = ""
    reason: str = ""
    waiting: int = 1
    eta: Seconds | None = None


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One card of a lease."""

    name: str
    uuid: str
    vendor: str


class LeaseGiven(msgspec.Struct, frozen=True, kw_only=True):
    """berthd: granted; it holds for a start until `start_by`, None for as long as one likes."""

    lease: str
    name: str
    cards: tuple[Card, ...]
    start_by: Instant | None = None


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """berthd: refused. `waited_out`: because the wait ran out."""

    code: str
    message: str
    hint: str = ""
    waited_out: bool = False


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """berthd: it knows the lease (again), by that id."""

    lease: str


class LeaseGone(msgspec.Struct, frozen=True):
    """berthd does not know the lease that this run was started under, or knows it as another's."""


class ReleaseHeard(msgspec.Struct, frozen=True):
    """berthd: it knows that the lease was given back."""


class LeaseShown(msgspec.Struct, frozen=True, kw_only=True):
    """berthd, asked for its status: what the lease's processes hold, by a reading that old."""

    used_mib: int | None
    reading_age: Seconds


class Ordered(msgspec.Struct, frozen=True, kw_only=True):
    """berthd: do this."""

    order: str
    attempt: int
    why: str
    at_once: bool = False


class ChildRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The command was executed, in the scope of that name if there is one."""

    scope: str | None = None


class ChildFailed(msgspec.Struct, frozen=True, kw_only=True):
    """The command could not be executed; `status` is 127 (not there) or 126 (not executable)."""

    status: int
    why: str


class ChildExited(msgspec.Struct, frozen=True, kw_only=True):
    """The command ended: its exit status, or the number of the signal that ended it."""

    status: int | None = None
    signal: int | None = None


class NoChildren(msgspec.Struct, frozen=True):
    """Nothing is left of the command's tree."""


class Seen(StrEnum):
    """What one read of a boundary showed."""

    IDLE = "idle"
    BUSY = "busy"
    TIMED_OUT = "timed_out"
    UNREADABLE = "unreadable"


class BoundaryRead(msgspec.Struct, frozen=True, kw_only=True):
    """One read of the engine's boundary. `served`: it has answered a request before."""

    seen: Seen
    served: bool = False
    in_flight: int = 0
    detail: str = ""


class UnloadAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """The unload call came back, well or not."""

    ok: bool
    detail: str = ""


class Signalled(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody signalled the wrapper."""

    number: int


class Passed(msgspec.Struct, frozen=True):
    """Time has passed."""


RunEvent: TypeAlias = (
    Connected
    | Disconnected
    | Queued
    | LeaseGiven
    | Refused
    | Attached
    | ReleaseHeard
    | LeaseGone
    | LeaseShown
    | Ordered
    | ChildRuns
    | ChildFailed
    | ChildExited
    | NoChildren
    | BoundaryRead
    | UnloadAnswered
    | Signalled
    | Passed
)


# --- what it does -------------------------------------------------------------------------------


class SendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask berthd for the lease (again, with the same key)."""

    waited: Seconds


class SendWithdraw(msgspec.Struct, frozen=True, kw_only=True):
    """Tell berthd that the request is withdrawn."""

    request: str


class SendStarted(msgspec.Struct, frozen=True, kw_only=True):
    """Tell berthd that the command runs."""

    lease: str
    scope: str | None


class SendWord(msgspec.Struct, frozen=True, kw_only=True):
    """Answer an order, or tell of the engine."""

    lease: str
    attempt: int
    word: str
    why: str = ""
    in_flight: int | None = None


class SendRelease(msgspec.Struct, frozen=True, kw_only=True):
    """Give the lease back."""

    lease: str


class SendAttach(msgspec.Struct, frozen=True, kw_only=True):
    """Come back with the lease, None where the command ran without one, on the cards granted."""

    lease: str | None
    cards: tuple[str, ...]
    state: str
    attempt: int
    scope: str | None
    ran_for: Seconds


class SendPong(msgspec.Struct, frozen=True, kw_only=True):
    """Answer a ping."""

    lease: str


class AskShown(msgspec.Struct, frozen=True, kw_only=True):
    """Ask berthd what the lease's processes hold."""

    lease: str


class StartChild(msgspec.Struct, frozen=True, kw_only=True):
    """Let the waiting child execute the command, with these variables added."""

    lease: str | None
    environment: Mapping[str, str]


class DropChild(msgspec.Struct, frozen=True):
    """End the waiting child; it never executed anything."""


class ReadBoundary(msgspec.Struct, frozen=True):
    """Read the engine's boundary once; `BoundaryRead` comes of it."""


class PostUnload(msgspec.Struct, frozen=True):
    """Call the engine's unload URL; `UnloadAnswered` comes of it."""


class SignalGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Signal the command's process group."""

    number: int


class SignalTree(msgspec.Struct, frozen=True, kw_only=True):
    """Signal everything below the wrapper."""

    number: int


class Say(msgspec.Struct, frozen=True, kw_only=True):
    """Tell the person at the terminal. `kind` and `facts` are for `--json`.

    `passing`: the next line may be written over it.
    """

    kind: str
    text: str
    facts: Mapping[str, object]
    refusal: bool = False
    passing: bool = False


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """End the wrapper with that status."""

    status: int


RunEffect: TypeAlias = (
    SendRequest
    | SendWithdraw
    | SendStarted
    | SendWord
    | SendRelease
    | SendAttach
    | SendPong
    | AskShown
    | StartChild
    | DropChild
    | ReadBoundary
    | PostUnload
    | SignalGroup
    | SignalTree
    | Say
    | Leave
)
