"""What happens to a wrapper, and what it does."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from berth.units import Seconds

# --- what happens -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connected:
    """The socket reached berthd."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The socket lost berthd, or berthd has been silent for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """berthd: the request waits, for this reason."""

    request: str
    why: str
    position: int
    card: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card of a lease."""

    name: str
    uuid: str
    vendor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGiven:
    """berthd: granted."""

    lease: str
    name: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """berthd: refused. `waited_out`: because the wait ran out."""

    code: str
    message: str
    hint: str = ""
    waited_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """berthd: it knows the lease (again), by that id."""

    lease: str


@dataclass(frozen=True, slots=True)
class ReleaseHeard:
    """berthd: it knows that the lease was given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseShown:
    """berthd, asked for its status: what the lease's processes hold, by a reading that old."""

    used_mib: int | None
    reading_age: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """berthd: do this."""

    order: str
    attempt: int
    why: str
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRuns:
    """The command was executed, in the scope of that name if there is one."""

    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFailed:
    """The command could not be executed; `status` is 127 (not there) or 126 (not executable)."""

    status: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExited:
    """The command ended: its exit status, or the number of the signal that ended it."""

    status: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class NoChildren:
    """Nothing is left of the command's tree."""


class Seen(StrEnum):
    """What one read of a boundary showed."""

    IDLE = "idle"
    BUSY = "busy"
    TIMED_OUT = "timed_out"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRead:
    """One read of the engine's boundary. `served`: it has answered a request before."""

    seen: Seen
    served: bool = False
    in_flight: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadAnswered:
    """The unload call came back, well or not."""

    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """Somebody signalled the wrapper."""

    number: int


@dataclass(frozen=True, slots=True)
class Passed:
    """Time has passed."""


RunEvent: TypeAlias = (
    Connected
    | Disconnected
    | Queued
    | LeaseGiven
    | Refused
    | Attached
    | ReleaseHeard
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """Ask berthd for the lease (again, with the same key)."""

    waited: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SendWithdraw:
    """Tell berthd that the request is withdrawn."""

    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendStarted:
    """Tell berthd that the command runs."""

    lease: str
    scope: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendWord:
    """Answer an order, or tell of the engine."""

    lease: str
    attempt: int
    word: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRelease:
    """Give the lease back."""

    lease: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendAttach:
    """Come back with the lease, None where the command ran without one."""

    lease: str | None
    state: str
    attempt: int
    scope: str | None
    ran_for: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPong:
    """Answer a ping."""

    lease: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskShown:
    """Ask berthd what the lease's processes hold."""

    lease: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartChild:
    """Let the waiting child execute the command, with these variables added."""

    lease: str | None
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DropChild:
    """End the waiting child; it never executed anything."""


@dataclass(frozen=True, slots=True)
class ReadBoundary:
    """Read the engine's boundary once; `BoundaryRead` comes of it."""


@dataclass(frozen=True, slots=True)
class PostUnload:
    """Call the engine's unload URL; `UnloadAnswered` comes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalGroup:
    """Signal the command's process group."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTree:
    """Signal everything below the wrapper."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Tell the person at the terminal. `kind` and `facts` are for `--json`."""

    kind: str
    text: str
    facts: Mapping[str, object]
    refusal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
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
