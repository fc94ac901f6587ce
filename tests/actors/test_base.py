"""The shell around every core: decide, commit, then tell; and what becomes of a failure."""

import threading
from typing import Any

import msgspec
import pytest

from berth.actors.base import ActorDied, BerthActor, Ping, Pong, SetAside, Slot, mark_of_event
from berth.units import Instant


class Add(msgspec.Struct, frozen=True):
    """An event of the toy core: `lease` is what it is recognised by."""

    number: int
    lease: str = ""


class Told:
    """An address that remembers, and can be waited on."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self._came = threading.Semaphore(0)

    def tell(self, message: Any, /) -> None:
        self.messages.append(message)
        self._came.release()

    def next(self) -> Any:
        assert self._came.acquire(timeout=5.0)
        return self.messages[-1]


def decide(total: int, event: Add, now: Instant) -> tuple[int, tuple[str, ...]]:
    del now
    if event.number == 13:
        raise ValueError("unlucky")
    return total + event.number, (f"total {total + event.number}",)


class Adder(BerthActor[Add, int, str]):
    """A toy actor. `seen` notes the state at the moment each effect is performed."""

    def __init__(self, supervisor: Told, *, begins: bool = True) -> None:
        super().__init__(
            role="adder",
            state=0,
            decide=decide,
            clock=lambda: Instant(1.0),
            supervisor=supervisor,
            incarnation=7,
        )
        self._begins = begins
        self.seen: list[tuple[str, int]] = []
        self.left_out: list[Add] = []
        self.ended = threading.Event()

    def begin(self) -> None:
        if not self._begins:
            raise OSError("no room")

    def end(self) -> None:
        self.ended.set()

    def perform(self, effect: str) -> None:
        self.seen.append((effect, self.state))

    def leave_out(self, message: Add) -> None:
        self.left_out.append(message)


def test_state_is_committed_before_anything_is_told() -> None:
    """A neighbour that answers at once finds the state that made the question."""
    actor = Adder(Told())
    actor.on_receive(Add(5))
    assert actor.seen == [("total 5", 5)]


def test_event_that_fails_leaves_the_state_as_it_was() -> None:
    """Nothing half-decided is ever seen."""
    actor = Adder(Told())
    actor.on_receive(Add(5))
    with pytest.raises(ValueError, match="unlucky"):
        actor.on_receive(Add(13))
    assert (actor.state, actor.seen) == (5, [("total 5", 5)])


def test_ping_is_answered_without_the_core() -> None:
    """A heartbeat says that messages are handled, no more."""
    supervisor = Told()
    actor = Adder(supervisor)
    actor.on_receive(Ping())
    assert supervisor.messages == [Pong("adder", 7)]


def test_event_that_was_set_aside_is_left_out() -> None:
    """What has killed the actor twice is not tried a third time; others go on."""
    actor = Adder(Told())
    actor.on_receive(SetAside("Add L13"))
    actor.on_receive(Add(13, lease="L13"))
    actor.on_receive(Add(2, lease="L2"))
    assert (actor.left_out, actor.state) == ([Add(13, lease="L13")], 2)


def test_event_without_a_mark_is_never_set_aside() -> None:
    """A reading, a tick: the next one is another, though it looks the same."""
    assert mark_of_event(Add(13)) == ""


def test_crash_is_reported_with_its_event_and_story_and_ends_the_actor() -> None:
    """3.7: what broke it, on what, and what it had decided before."""
    supervisor = Told()
    ref = Adder.start(supervisor)
    ref.tell(Add(5))
    ref.tell(Add(13))
    died = supervisor.next()
    assert isinstance(died, ActorDied)
    assert (died.role, died.incarnation, died.event) == ("adder", 7, Add(13))
    assert "unlucky" in died.cause
    assert "total 5" in died.story[-1]


def test_start_that_fails_is_reported_too() -> None:
    """Pykka itself calls no hook for it: the role would be empty without a word."""
    supervisor = Told()
    Adder.start(supervisor, begins=False)
    died = supervisor.next()
    assert "no room" in died.cause


def test_crashed_actor_gives_back_what_it_took() -> None:
    """A socket or a worker that is left behind would stand in the next one's way."""
    supervisor = Told()
    ref = Adder.start(supervisor)
    ended = ref.proxy().ended.get(timeout=5.0)
    ref.tell(Add(13))
    assert ended.wait(5.0)


def test_slot_outlives_its_actor_and_counts_what_nobody_hears() -> None:
    """Neighbours hold a slot: after a restart they reach the new actor without knowing of it."""
    slot: Slot[Add] = Slot("adder")
    slot.tell(Add(1))
    assert slot.dead_letters == 1
    first = Adder.start(Told())
    slot.point(first)
    slot.tell(Add(2))
    first.stop(timeout=5.0)
    slot.tell(Add(3))
    assert slot.dead_letters == 2
    second = Adder.start(Told())
    slot.point(second)
    slot.tell(Add(4))
    assert second.proxy().state.get(timeout=5.0) == 4
    assert slot.stop(5.0)
    assert not slot.is_alive()
