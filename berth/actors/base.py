"""What all actors share: a typed address, a slot that outlives its actor, the shell around a core.

The shell does four things with every message, in this order: it stamps the time, decides, commits
the new state, and only then performs the effects. Nothing of a decision is seen by anybody before
its state is kept, and an exception while deciding leaves the state as it was.

The only module that knows pykka's untyped references; hence the only one with `Any`.
"""

import threading
import traceback
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
import pykka

from berth.units import Instant

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)
State = TypeVar("State")
Effect = TypeVar("Effect")

STORY_LENGTH: Final = 200

Clock = Callable[[], Instant]


class Ping(msgspec.Struct, frozen=True):
    """From the supervisor: do you still handle messages? The base class answers."""


class SetAside(msgspec.Struct, frozen=True):
    """From the supervisor: this event has killed you twice; do not handle it again."""

    mark: str


def mark_of_event(message: object) -> str:
    """Return what a client's message is recognised by when it comes again, empty when by nothing.

    A request is known by its client's key, for it comes again under another number.
    """
    message = getattr(message, "op", message)
    wanted = getattr(message, "wanted", message)
    terms = getattr(wanted, "terms", None)
    about = getattr(terms, "key", "") or getattr(message, "lease", "") or ""
    return f"{type(message).__name__} {about}" if about else ""


class Address(Protocol[M_contra]):
    """Where messages of one kind can be sent. Sending never waits and never fails."""

    def tell(self, message: M_contra, /) -> None:
        """Send a message."""


class Slot(Generic[M]):
    """An address that stays the same while the actor behind it comes and goes.

    What is told while nobody is behind it is counted, not kept: nobody may rely on delivery, the
    sender's deadline or the client's retry covers it.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self.dead_letters = 0
        self.ref: pykka.ActorRef[Any] | None = None

    def point(self, ref: "pykka.ActorRef[Any] | None") -> None:
        """Put another actor behind the slot."""
        self.ref = ref

    def is_alive(self) -> bool:
        """Tell whether somebody is behind the slot, and its thread runs."""
        return self.ref is not None and self.ref.is_alive()

    def stop(self, within: float) -> bool:
        """Stop whoever is behind the slot. Tell whether it ended within that many seconds."""
        ref, self.ref = self.ref, None
        if ref is None:
            return True
        try:
            return ref.stop(block=True, timeout=within)
        except pykka.Timeout:
            return False

    def tell(self, message: M | Ping | SetAside, /) -> None:
        """Send a message to whoever is behind the slot now."""
        ref = self.ref
        if ref is None:
            self.dead_letters += 1
            return
        try:
            ref.tell(message)
        except pykka.ActorDeadError:
            self.dead_letters += 1


class ActorDied(msgspec.Struct, frozen=True):
    """From an actor that failed, to the supervisor: what broke it, and what it had decided."""

    role: str
    incarnation: int
    cause: str
    event: object
    story: tuple[str, ...]


class Pong(msgspec.Struct, frozen=True):
    """From an actor, to the supervisor: I do."""

    role: str
    incarnation: int


class BerthActor(pykka.ThreadingActor, Generic[M, State, Effect]):
    """The shell around a core. A subclass says where effects go."""

    use_daemon_thread = True

    def __init__(
        self,
        *,
        role: str,
        state: State,
        decide: Callable[[State, M, Instant], tuple[State, tuple[Effect, ...]]],
        clock: Clock,
        supervisor: Address[ActorDied | Pong],
        incarnation: int = 0,
    ) -> None:
        super().__init__()
        self.role = role
        self.state = state
        self._story: deque[tuple[Instant, object, tuple[object, ...]]] = deque(maxlen=STORY_LENGTH)
        self._decide = decide
        self._clock = clock
        self._supervisor = supervisor
        self._incarnation = incarnation
        self._event: object = None
        self._poison: set[str] = set()

    def begin(self) -> None:
        """Set up what the actor's own thread needs. Runs in that thread, before any message."""

    def end(self) -> None:
        """Give back what `begin` took. Runs in the actor's thread, also after a crash."""

    @abstractmethod
    def perform(self, effect: Effect) -> None:
        """Send an effect where it belongs."""

    def on_receive(self, message: M | Ping | SetAside) -> None:
        """Decide, commit, then tell. What is about the actor itself needs no core."""
        if isinstance(message, Ping):
            self._supervisor.tell(Pong(self.role, self._incarnation))
        elif isinstance(message, SetAside):
            self._poison.add(message.mark)
        elif self._poison and mark_of_event(message) in self._poison:
            self.leave_out(message)
        else:
            self._event = message
            self.hear(message)

    def leave_out(self, message: M) -> None:
        """Do not handle an event that has killed this actor twice; answer for it, if one waits."""

    def hear(self, message: M) -> None:
        """Take one event through the core."""
        now = self._clock()
        before = self.state
        self.state, effects = self._decide(before, message, now)
        if self.state is not before:  # what changes nothing (a status) is no part of the story
            self._story.append((now, message, effects))
        for effect in effects:
            self.perform(effect)

    def on_start(self) -> None:
        """Begin, and tell the supervisor when that fails: pykka alone would say nothing."""
        threading.current_thread().name = self.role
        try:
            self.begin()
        except Exception:
            self._report(traceback.format_exc())
            raise

    def on_stop(self) -> None:
        """End in order."""
        self.end()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Tell the supervisor what broke the actor, then end."""
        lines = traceback.format_exception(exception_type, exception_value, trace)
        self._report("".join(lines))
        self.end()

    def _report(self, cause: str) -> None:
        story = tuple(f"{now:.3f} {event!r} -> {told!r}" for now, event, told in self._story)
        self._supervisor.tell(ActorDied(self.role, self._incarnation, cause, self._event, story))
