"""A wrapper that is played with: berthd, the command and its engine say what they are told to.

The child executes its command at once, unless it is not there. Reads of the boundary are answered
at once when `engine` is set, and wait for `answers` when it is not; likewise the unload call.
"""

from dataclasses import dataclass, field
from typing import Any

from berth.run.core import begin, decide
from berth.run.messages import (
    BoundaryRead,
    Card,
    ChildExited,
    ChildFailed,
    ChildRuns,
    Connected,
    Disconnected,
    LeaseGiven,
    LeaseShown,
    Leave,
    NoChildren,
    Ordered,
    Passed,
    PostUnload,
    Queued,
    ReadBoundary,
    Refused,
    RunEffect,
    RunEvent,
    Say,
    Seen,
    SendWord,
    SignalGroup,
    Signalled,
    SignalTree,
    StartChild,
    UnloadAnswered,
)
from berth.run.state import Run, Running, RunOptions
from berth.units import Instant, Seconds, after

TERM, KILL, CONT = 15, 9, 18
STOPPED = [("group", TERM), ("group", CONT)]
"""H3: SIGTERM to the group; SIGCONT, so that one that is stopped can act on it."""
GPU0 = Card(name="gpu0", uuid="GPU-0", vendor="nvidia")


def options(**changes: Any) -> RunOptions:
    terms: dict[str, Any] = {
        "name": "chat",
        "wait": Seconds(120.0),
        "drain_wait": Seconds(30.0),
        "grace": Seconds(8.0),
        "boundary": False,
        "unload": False,
        "fail_closed": False,
        "names_cards": False,
        "mark": "mark-of-the-run",
    }
    return RunOptions(**(terms | changes))


@dataclass
class PlayedRun:
    """A wrapper under play. `said` is all that it did so far, with the time of it."""

    options: RunOptions = field(default_factory=options)
    engine: Seen | None = None
    served: bool = False
    unloads: bool | None = None
    missing: int | None = None
    now: Instant = Instant(1000.0)
    said: list[tuple[float, RunEffect]] = field(default_factory=list)
    run: Run = field(init=False)

    def __post_init__(self) -> None:
        self.run = begin(self.options, self.now)

    # --- what happens -----------------------------------------------------------------------

    def hear(self, event: RunEvent) -> list[RunEffect]:
        """Let the wrapper hear an event; return what it does, and what comes of that at once."""
        self.run, effects = decide(self.run, event, self.now)
        said: list[RunEffect] = []
        for effect in effects:
            self.said.append((self.now - 1000.0, effect))
            said.append(effect)
            outcome = self._outcome(effect)
            if outcome is not None:
                said += self.hear(outcome)
        return said

    def _outcome(self, effect: RunEffect) -> RunEvent | None:
        match effect:
            case StartChild() if self.missing is not None:
                return ChildFailed(status=self.missing, why="x: No such file or directory")
            case StartChild():
                return ChildRuns(scope=None)
            case ReadBoundary() if self.engine is not None:
                return BoundaryRead(seen=self.engine, served=self.served)
            case PostUnload() if self.unloads is not None:
                return UnloadAnswered(ok=self.unloads)
            case _:
                return None

    def connects(self) -> list[RunEffect]:
        return self.hear(Connected())

    def loses_berthd(self) -> list[RunEffect]:
        return self.hear(Disconnected())

    def queued(
        self, why: str = "images is pinned", request: str = "r1", reason: str = "images pinned"
    ) -> list[RunEffect]:
        return self.hear(Queued(request=request, why=why, position=1, cards="gpu0", reason=reason))

    def granted(self, *cards: Card) -> list[RunEffect]:
        return self.hear(LeaseGiven(lease="L1", name="chat", cards=cards or (GPU0,)))

    def refused(self, *, waited_out: bool = False, hint: str = "") -> list[RunEffect]:
        return self.hear(
            Refused(code="pinned", message="images is pinned", hint=hint, waited_out=waited_out)
        )

    def ordered(
        self, order: str = "drain", attempt: int = 1, *, at_once: bool = False
    ) -> list[RunEffect]:
        return self.hear(Ordered(order=order, attempt=attempt, why="for b", at_once=at_once))

    def answers(self, seen: Seen, *, served: bool = False) -> list[RunEffect]:
        """Let the engine answer the read that is under way."""
        return self.hear(BoundaryRead(seen=seen, served=served, detail="refused"))

    def unloaded(self, *, ok: bool = True) -> list[RunEffect]:
        return self.hear(UnloadAnswered(ok=ok, detail="HTTP 500"))

    def exits(self, status: int | None = 0, signal: int | None = None) -> list[RunEffect]:
        return self.hear(ChildExited(status=None if signal else status, signal=signal))

    def nothing_left(self) -> list[RunEffect]:
        return self.hear(NoChildren())

    def shown(self, used: int | None, age: float = 0.0) -> list[RunEffect]:
        return self.hear(LeaseShown(used_mib=used, reading_age=Seconds(age)))

    def signalled(self, number: int) -> list[RunEffect]:
        return self.hear(Signalled(number=number))

    def passes(self) -> list[RunEffect]:
        return self.hear(Passed())

    def later(self, seconds: float, step: float = 0.125) -> list[RunEffect]:
        """Let time pass in steps; return what the wrapper does meanwhile."""
        said: list[RunEffect] = []
        ends = after(self.now, Seconds(seconds))
        while self.now < ends:
            self.now = after(self.now, Seconds(min(step, ends - self.now)))
            said += self.passes()
        return said

    # --- what is seen -----------------------------------------------------------------------

    def did(self, kind: type[RunEffect]) -> list[RunEffect]:
        """Return all effects of a kind so far."""
        return [effect for _, effect in self.said if isinstance(effect, kind)]

    def when(self, kind: type[RunEffect]) -> list[float]:
        """Return when effects of a kind were done, in seconds from the start."""
        return [at for at, effect in self.said if isinstance(effect, kind)]

    def reads(self) -> list[float]:
        """Return when the boundary was read so far."""
        return self.when(ReadBoundary)

    def words(self) -> list[str]:
        """Return all words said to berthd so far."""
        return [effect.word for _, effect in self.said if isinstance(effect, SendWord)]

    def signals(self) -> list[tuple[str, int]]:
        """Return all signals so far: to the command's group, or to the whole tree."""
        kinds = {SignalGroup: "group", SignalTree: "tree"}
        return [
            (kinds[type(effect)], effect.number)
            for _, effect in self.said
            if isinstance(effect, SignalGroup | SignalTree)
        ]

    def told(self) -> list[str]:
        """Return the kinds of what the person at the terminal was told."""
        return [effect.kind for _, effect in self.said if isinstance(effect, Say)]

    @property
    def status(self) -> int | None:
        """Return what the wrapper left with, None while it is there."""
        statuses = [effect.status for _, effect in self.said if isinstance(effect, Leave)]
        assert len(statuses) <= 1, f"it left {len(statuses)} times"
        return statuses[0] if statuses else None


def asking(**changes: Any) -> PlayedRun:
    """Return a wrapper whose request berthd has heard."""
    run = PlayedRun(options(**changes))
    run.connects()
    run.queued()
    return run


def running(engine: Seen | None = None, **changes: Any) -> PlayedRun:
    """Return a wrapper whose command runs under lease L1; its engine is ready and has served."""
    run = asking(**changes)
    run.granted()
    if run.options.boundary:
        run.passes()
        run.answers(Seen.IDLE, served=True)
    run.engine = engine
    run.said.clear()
    return run


def unprotected(**changes: Any) -> PlayedRun:
    """Return a wrapper whose command runs without a lease, for there is no berthd."""
    run = PlayedRun(options(berthd_seen_this_boot=False, **changes))
    run.passes()
    return run


def ordered_away(engine: Seen | None = None, **changes: Any) -> PlayedRun:
    """Return a run with a boundary that was just told to drain."""
    run = running(engine=engine, boundary=True, **changes)
    run.ordered()
    return run


def quiet(said: list[RunEffect]) -> list[RunEffect]:
    """Leave out what the person at the terminal is told."""
    return [effect for effect in said if not isinstance(effect, Say)]


def drain_of(run: PlayedRun) -> object:
    """Return how far a running command is on its way out."""
    assert isinstance(run.run.phase, Running)
    return run.run.phase.drain
