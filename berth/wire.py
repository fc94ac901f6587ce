"""What crosses the socket, both ways: one JSON object a message (docs/protocol.md).

A request names its `op`; the op's fields stand beside it. Every answer carries the request's `id`;
exactly one has `"last": true`. Unknown fields, ops and versions are errors that name them.
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from berth.units import Seconds

PROTOCOL: Final = 1
MAX_FRAME: Final = 1024 * 1024  # bytes; a larger frame ends the connection
MAX_ANSWER: Final = 64 * 1024 * 1024  # bytes
"""What a client takes from berthd: a status is as long as the queue, 10,000 who wait are 5 MB."""

TRY_FOR: Final = Seconds(10.0)
"""How long a berthd that was never heard is tried (R4)."""
START_MARGIN: Final = Seconds(1.0)
"""How long before a grant is taken back it is not started any more."""

Span: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=315360000)]
"""Seconds; ten years at most, so that no deadline overflows."""
MOST_MIB: Final = 1 << 40
Mib: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST_MIB)]
ONE_LINE: Final = r"\A[^\x00-\x1f\x7f-\x9f]*\Z"
"""No control characters: what a client says is printed on other people's terminals."""
LONGEST_NAME: Final = 200
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME, pattern=ONE_LINE)]
Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME, pattern=ONE_LINE)
]
Pid: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 31)]


class Op(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="op"):
    """What every request has: the protocol's version and the client's own id for it."""

    v: int
    id: Text


class HelloOp(Op, tag="hello", frozen=True):
    """Who answers."""


class StatusOp(Op, tag="status", frozen=True):
    """Cards, leases, waiters, stowaways."""


class EventsOp(Op, tag="events", frozen=True):
    """Events after `since` (a sequence number) and of the last `last_s` seconds; oldest first.

    Without `since`, the latest. An answer has not more than fit into it: ask on from its last one,
    until none come.
    """

    since: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] | None = None
    last_s: Span | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10000)] = 1000


class CardListOp(Op, tag="card.list", frozen=True):
    """The cards that berthd governs."""


class LeaseTerms(Op, frozen=True):
    """What a lease is asked under; `lease.request` and `attach` share it."""

    name: Name
    key: Text = ""
    waited_s: Span = 0.0
    needs_mib: Mib | list[Mib] | None = None
    cards: list[Text] | str | None = None
    priority: str | None = None
    wait_s: Span = 120.0
    min_turn_s: Span = 0.0
    pinned: bool = False
    group: Text | None = None
    boundary: bool = False
    park: Text | None = None
    lend: bool = False
    whole_machine: bool = False
    drain_wait_s: Span = 300.0
    grace_s: Span = 10.0
    start_limit_s: Span = 900.0
    fail_closed: bool = False
    exclusive: bool = False
    numbered: bool = False
    wrapped: bool = False
    containers: list[Text] = []
    resume: Text | None = None


class LeaseRequestOp(LeaseTerms, tag="lease.request", frozen=True):
    """Ask for a lease: progress until it is granted or refused."""


class AttachOp(LeaseTerms, tag="attach", frozen=True):
    """Come back with a lease that is held already, after berthd or the connection was gone."""

    lease: Text | None = None
    state: str = "running"
    attempt: Annotated[int, msgspec.Meta(ge=0)] = 0
    pids: list[Pid] = []
    scope: Text | None = None
    container: Text | None = None
    lent_mib: int = 0
    started_s: Span = 0.0


class LeaseStartedOp(Op, tag="lease.started", frozen=True):
    """The granted command runs; `pids` are its processes."""

    lease: Text
    pids: list[Pid] = []
    scope: Text | None = None
    containers: list[Text] = []


class LeaseAnswerOp(Op, tag="lease.answer", frozen=True):
    """A holder's word, to an order (`attempt`) or of itself."""

    lease: Text
    state: str
    attempt: Annotated[int, msgspec.Meta(ge=0)] = 0
    mib: int | None = None
    why: str = ""
    in_flight: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] | None = None


class LeaseReleaseOp(Op, tag="lease.release", frozen=True):
    """The holder gives its lease back."""

    lease: Text


class WithdrawOp(Op, tag="withdraw", frozen=True):
    """The client does not want its request any more."""

    request: Text


class StopOp(Op, tag="stop", frozen=True):
    """Stop an engine, at its boundary or (`now`) at once."""

    name: Text | None = None
    lease: Text | None = None
    now: bool = False


class HoldOp(Op, tag="hold", frozen=True):
    """A person takes cards: those named, `"all"`, or the first; for `for_s`, or until released.

    `wait`: answered once it is granted (with progress before), else at once.
    """

    cards: list[Text] | str | None = None
    all: bool = False
    needs_mib: Mib | None = None
    for_s: Annotated[float, msgspec.Meta(gt=0, le=315360000)] | None = None
    reason: Text = ""
    wait: bool = True


class ReleaseOp(Op, tag="release", frozen=True):
    """A person gives back the hold named, those on `cards`, or (nothing named) every one."""

    lease: Text | None = None
    cards: list[Text] | str | None = None
    all: bool = False


class ReclaimOp(Op, tag="reclaim", frozen=True):
    """A person gives a lease up that does not come back: its tree is killed, it is closed."""

    name: Text | None = None
    lease: Text | None = None


class PongOp(Op, tag="pong", frozen=True):
    """The answer to a ping."""

    lease: Text | None = None


AnyOp: TypeAlias = (
    HelloOp
    | StatusOp
    | EventsOp
    | CardListOp
    | LeaseRequestOp
    | AttachOp
    | LeaseStartedOp
    | LeaseAnswerOp
    | LeaseReleaseOp
    | WithdrawOp
    | StopOp
    | HoldOp
    | ReleaseOp
    | ReclaimOp
    | PongOp
)


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """Why an operation failed: a stable code, a sentence, a way out.

    `waited_out`: a request was refused because its wait ran out, not at once.
    """

    code: str
    message: str
    hint: str = ""
    waited_out: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """berthd's answer to the request of that id."""

    id: str
    ok: bool
    last: bool
    v: int = PROTOCOL
    data: Any = None
    error: ErrorBody | None = None


class OrderMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What berthd tells a holder, unasked; answered with `lease.answer` (a ping with `pong`)."""

    order: str
    lease: str
    attempt: int
    v: int = PROTOCOL
    grace_s: float = 0.0
    why: str = ""
    now: bool = False


class EventMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the node's one sequence. `facts` are written beside the other fields."""

    seq: int
    at: str
    kind: str
    card: str | None = None
    lease: str | None = None
    request: str | None = None
    name: str | None = None
    why: str = ""
    facts: dict[str, Any] = {}

    def flat(self) -> dict[str, Any]:
        """Return the event as it goes out: its own facts beside the fields that all have."""
        common = {field: getattr(self, field) for field in self.__struct_fields__}
        facts = common.pop("facts")
        return {**facts, **common}
