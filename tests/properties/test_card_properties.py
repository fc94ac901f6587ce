"""What holds for a card whatever happens to it, in whatever order.

Engines here behave as to memory (they never use more than they asked for, and use nothing once
they say so), and misbehave in everything else: they are silent, late, killed, answer twice, leave.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from berth.actors.card.books import close
from berth.actors.card.messages import CardEffect, CardRead, HolderWord, JournalState, Resumed, Tick
from berth.actors.journal.messages import Record
from berth.actors.node.inbox import CallFailed, OrderGiven, RequestGranted, RequestRefused
from berth.errors import Code
from berth.ids import Attempt, Key, ProcessId
from berth.lease import (
    Detached,
    Draining,
    DrainPhase,
    Granted,
    Keeping,
    Lease,
    Order,
    Releasing,
    Running,
    Starting,
    Stuck,
    WholeCard,
)
from berth.readings import Reading
from berth.units import Instant, Seconds
from tests.cores.playing import Played

TOTAL = 1000
SIZES = st.one_of(st.none(), st.sampled_from([100, 250, 300, 400, 500, 700, 950]))
PRIORITIES = st.sampled_from(["background", "batch", "interactive", "foreground"])


class CardMachine(RuleBasedStateMachine):
    """A card under every event that it can hear."""

    def __init__(self) -> None:
        super().__init__()
        self.card = Played(total=TOTAL, reserved=20)
        self.ended: dict[str, str] = {}
        self.seen = 0
        self.numbers = 0
        self.late_reading: Reading | None = None
        self.reclaimed: list[str] = []

    # --- what happens -----------------------------------------------------------------------

    @rule(
        mib=SIZES,
        priority=PRIORITIES,
        boundary=st.booleans(),
        pinned=st.sampled_from([False, False, False, True]),
        min_turn=st.sampled_from([0.0, 0.0, 8.0]),
        wait=st.sampled_from([0.0, 5.0, 40.0, 400.0]),
        fail_closed=st.sampled_from([False, False, True]),
        wrapped=st.sampled_from([True, True, False]),
        keyless=st.sampled_from([False, False, True]),
    )
    def ask(self, mib: int | None, wait: float, keyless: bool, **terms: Any) -> None:
        self.numbers += 1
        terms |= {"key": Key("")} if keyless else {}
        times = {"wait": wait, "drain_wait": 10.0, "grace": 2.0, "start_limit": 15.0}
        self.card.asks(f"e{self.numbers}", mib, **times, **terms)

    @rule(mib=SIZES, hold_for=st.sampled_from([None, 2.0, 20.0]))
    def hold(self, mib: int | None, hold_for: float | None) -> None:
        self.numbers += 1
        terms = {"priority": "hold", "wait": 30.0, "wrapped": False, "hold_for": hold_for}
        self.card.asks(f"e{self.numbers}", mib, **terms)

    @precondition(lambda self: self.card.card.leases)
    @rule(data=st.data())
    def reclaim(self, data: st.DataObject) -> None:
        """A person gives a lease up; its memory may stay for as long as it likes."""
        name = data.draw(st.sampled_from([lease.name for lease in self.card.card.leases]))
        self.card.reclaim(name)
        if not self.card.granted(name):
            self.reclaimed.append(name)

    @precondition(lambda self: self.holds())
    @rule(data=st.data())
    def release_hold(self, data: st.DataObject) -> None:
        self.card.release(data.draw(st.sampled_from(self.holds())))

    @precondition(lambda self: self.holders())
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.holders()))
        self.card.started(name)
        lease = self.card.lease(name)
        assert lease is not None
        if isinstance(lease, Granted | Starting | Running):
            ask = lease.held.ask
            self.card.uses(name, None if isinstance(ask, WholeCard) else ask)

    @precondition(lambda self: self.holders())
    @rule(
        data=st.data(),
        word=st.sampled_from(["heard", "boundary", "ready", "served", "released", "failed"]),
        late=st.sampled_from([0, 0, 0, 1]),
        lingers=st.booleans(),
    )
    def say(self, data: st.DataObject, word: str, late: int, lingers: bool) -> None:
        name = data.draw(st.sampled_from(self.holders()))
        attempt = max(0, self.card.engines[name].attempt - late)
        self.card.says(name, word, attempt, lingers=lingers)

    @precondition(lambda self: self.holders())
    @rule(data=st.data(), lingers=st.booleans())
    def die(self, data: st.DataObject, lingers: bool) -> None:
        self.card.gone(data.draw(st.sampled_from(self.holders())), lingers=lingers)

    @precondition(lambda self: self.released())
    @rule(data=st.data())
    def memory_goes(self, data: st.DataObject) -> None:
        """Memory that lingered after its holder's word is freed by the driver at last."""
        self.card.uses(data.draw(st.sampled_from(self.released())), None)

    @rule()
    def look(self) -> None:
        """A reading is taken, and will be delivered only later."""
        self.late_reading = self.card.look()

    @rule()
    def deliver(self) -> None:
        """A reading that was taken some time ago arrives: it must free nothing released since."""
        if self.late_reading is not None and self.card.readable:
            self.card.hear(CardRead(reading=self.late_reading))

    @precondition(lambda self: self.holders())
    @rule(data=st.data(), at_once=st.booleans())
    def stop(self, data: st.DataObject, at_once: bool) -> None:
        self.card.stop(data.draw(st.sampled_from(self.holders())), at_once=at_once)

    @precondition(lambda self: self.card.card.queue)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        waiter = data.draw(st.sampled_from(self.card.card.queue))
        self.ended[waiter.request] = "withdrawn"
        self.card.withdraws(waiter.terms.name)

    @rule(mib=st.sampled_from([None, 50, 200]))
    def stranger(self, mib: int | None) -> None:
        self.card.uses("stranger", mib)

    @rule(mib=st.sampled_from([0, 30, 150, 400]))
    def nobodys_memory(self, mib: int) -> None:
        """Memory shows that no process holds: a dead one's, a buffer, a driver's."""
        self.card.unexplained = mib

    @precondition(lambda self: len(self.card.engines) > 1 and self.holders())
    @rule(data=st.data(), word=st.sampled_from(list(HolderWord)))
    def speak_for_another(self, data: st.DataObject, word: HolderWord) -> None:
        """S4: whoever does not hold a lease moves nothing of it, whatever it says."""
        name = data.draw(st.sampled_from(self.holders()))
        before = self.card.lease(name)
        assert before is not None
        said = self.card.speaks_for(name, ProcessId(4000, 1), word)
        assert [one.code for one in to_node(said) if isinstance(one, CallFailed)] == [
            Code.NOT_YOURS
        ] * 3
        assert self.card.lease(name) == before

    @rule(writable=st.sampled_from([True, True, False]))
    def journal(self, writable: bool) -> None:
        self.card.hear(JournalState(writable=writable))

    @rule()
    def sleep(self) -> None:
        """S8: after a suspend nothing read is fresh, and what is in flight has its time again."""
        recovering = self.card.card.recovering_until is not None
        self.card.hear(Resumed(slept=Seconds(600.0)))
        card, now = self.card.card, self.card.now
        assert card.fresh(now) is None
        assert (card.recovering_until == now + 10.0) == recovering
        for lease in card.leases:
            time = whole_time(lease)
            assert ends_at(lease) == (None if time is None else pytest.approx(now + time))
        self.card.hear(Tick())

    @precondition(lambda self: self.holders())
    @rule(then=st.sampled_from(["it sleeps", "nobody hears", "it goes on"]))
    def change_ones_mind(self, then: str) -> None:
        """All is well; somebody wants the card and leaves again: whoever was asked runs on."""
        self.card.hear(JournalState(writable=True))
        self.card.readable_again()
        self.card.later(11.0)
        self.numbers += 1
        name = f"e{self.numbers}"
        self.card.asks(name, None, priority="foreground", wait=400.0)
        if self.card.waits(name):
            self.ended[self.card.engines[name].request] = "withdrawn"
            self.card.withdraws(name)
        if then == "it sleeps":
            self.sleep()
        elif then == "nobody hears":
            self.card.later(6.0)

    @precondition(lambda self: self.holders())
    @rule()
    def restart_and_sleep(self) -> None:
        """The machine is suspended while holders of before a restart are waited for."""
        self.restart()
        self.card.later(1.0)
        self.sleep()

    @rule()
    def unreadable(self) -> None:
        self.card.unread()

    @rule()
    def readable(self) -> None:
        self.card.readable_again()

    @rule(seconds=st.sampled_from([0.1, 1.0, 3.0, 12.0]))
    def pass_time(self, seconds: float) -> None:
        self.card.later(seconds)

    @rule()
    def restart(self) -> None:
        for waiter in self.card.card.queue:
            self.ended[waiter.request] = "lost with berthd, and asked again by its client"
        before = {lease.id for lease in self.card.card.leases}
        self.card.restart()
        assert {lease.id for lease in self.card.card.leases} == before, "a lease was lost"

    @precondition(lambda self: self.holders())
    @rule(
        data=st.data(),
        state=st.sampled_from(["running", "starting", "draining"]),
        missed=st.sampled_from([0, 0, 1]),
    )
    def attach(self, data: st.DataObject, state: str, missed: int) -> None:
        """S6: a holder comes back; what it missed meanwhile is said again."""
        name = data.draw(st.sampled_from(self.holders()))
        before = self.card.lease(name)
        assert before is not None
        attempt = Attempt(max(0, before.held.attempt - missed))
        said = self.card.attaches(name, state, attempt=attempt)
        if isinstance(before, Draining | Keeping) and attempt < before.held.attempt:
            order = before.order if isinstance(before, Draining) else Order.CONTINUE
            assert (order, before.held.attempt) in orders(said)
        lease = self.card.lease(name)
        if isinstance(before, Detached) and isinstance(lease, Running | Starting):
            assert lease.held.granted == self.card.now, "Q4: a re-attach begins a fresh turn"

    @precondition(lambda self: self.holders())
    @rule(data=st.data(), guess=st.sampled_from(["guessed", ""]))
    def attach_with_a_guessed_id(self, data: st.DataObject, guess: str) -> None:
        """S6: a lease's id opens nothing: its key does, or being its process."""
        name = data.draw(st.sampled_from(self.holders()))
        before = self.card.lease(name)
        assert before is not None
        terms = replace(before.terms, key=Key(guess))
        said = self.card.attaches(name, terms=terms, holder=ProcessId(4000, 1))
        assert [one.code for one in to_node(said) if isinstance(one, CallFailed)] == [
            Code.NOT_YOURS
        ]
        assert self.card.lease(name) == before

    def released(self) -> list[str]:
        """Return the engines whose memory lingers after their release."""
        over = [one.name for one in self.card.card.leases if isinstance(one, Releasing | Stuck)]
        over += self.reclaimed
        return [name for name in over if self.card.engines[name].uses is not None]

    def holds(self) -> list[str]:
        """Return the holds on the books that were not given back."""
        leases = [one for one in self.card.card.leases if not isinstance(one, Releasing | Stuck)]
        return [one.name for one in leases if one.held.holder is None]

    def holders(self) -> list[str]:
        """Return the engines (not the holds) that are on the books."""
        return [lease.name for lease in self.card.card.leases if lease.held.holder is not None]

    # --- what holds -------------------------------------------------------------------------

    @invariant()
    def every_request_ends_at_most_once(self) -> None:
        said = self.card.said[self.seen :]
        self.seen = len(self.card.said)
        for effect in said:
            for message in effect.then if isinstance(effect, Record) else (effect,):
                if isinstance(message, RequestGranted | RequestRefused):
                    ending = type(message).__name__
                    assert message.request not in self.ended, (message, self.ended)
                    self.ended[message.request] = ending

    @invariant()
    def every_request_ends_or_waits(self) -> None:
        waiting = {waiter.request for waiter in self.card.card.queue}
        for engine in self.card.engines.values():
            assert (engine.request in self.ended) != (engine.request in waiting)

    @invariant()
    def engines_never_collide(self) -> None:
        """What engines that behave really use always fits on the card beside each other."""
        really = sum(e.uses or 0 for e in self.card.engines.values())
        assert really + self.card.reserved <= TOTAL

    @invariant()
    def leases_never_exceed_the_card(self) -> None:
        measured = self.card.card.measured
        if measured is not None:
            leased = sum(close(self.card.card, measured).counts.values())
            assert leased <= TOTAL - self.card.reserved

    @invariant()
    def every_deadline_fires(self) -> None:
        """One clause for each deadline of the card: none is ever more than a tick behind."""
        now = self.card.now - 0.5
        card = self.card.card
        assert card.recovering_until is None or card.recovering_until > now
        assert all(waiter.refuse_at > now for waiter in card.queue)
        for lease in card.leases:
            match lease:
                case Granted(start_by=by) | Starting(ready_by=by):
                    assert by > now
                case Draining(deadline=by):
                    assert by > now
                case Keeping(hear_by=by):
                    assert by > now
                case Releasing(free_by=by):
                    assert by > now
                case Running():
                    assert lease.held.until is None or lease.held.until > now
                case Stuck() | Detached():
                    pass

    @invariant()
    def nobody_is_asked_for_nothing(self) -> None:
        """A holder told to drain for somebody is needed by somebody who still waits."""
        card = self.card.card
        halted = card.recovering_until is not None or card.fresh(self.card.now) is None
        waiting = {waiter.request for waiter in card.queue}
        for lease in card.leases:
            if isinstance(lease, Draining) and lease.phase.value in {"asked", "silent", "heard"}:
                if halted or not card.journal_writable:
                    assert lease.order is Order.STOP or waiting
                else:
                    assert lease.order is Order.STOP or lease.wanted_by in waiting

    def teardown(self) -> None:
        """Once nobody asks any more and holders finish, everybody is served or refused."""
        self.card.unexplained = 0
        self.card.hear(JournalState(writable=True))
        self.card.readable_again()
        for _ in range(60):
            if not self.card.card.queue:
                break
            for lease in self.card.card.leases:
                if not isinstance(lease, Releasing | Stuck):
                    self.card.gone(lease.name)
            for name in self.released():
                self.card.uses(name, None)
            self.card.later(10.0)
        assert not self.card.card.queue
        self.every_request_ends_at_most_once()


def to_node(said: list[CardEffect]) -> list[object]:
    """Return what is said to the node, riding on a record or not."""
    found: list[object] = []
    for effect in said:
        found.extend(effect.then if isinstance(effect, Record) else (effect,))
    return found


def orders(said: list[CardEffect]) -> list[tuple[Order, int]]:
    return [(o.order, o.attempt) for o in to_node(said) if isinstance(o, OrderGiven)]


def whole_time(lease: Lease) -> float | None:
    """Return how long what is in flight of a lease may take, None when nothing is (H2 to H6)."""
    terms = lease.terms
    match lease:
        case Granted() | Keeping() | Draining(phase=DrainPhase.ASKED):
            return 5.0
        case Draining(phase=DrainPhase.SILENT):
            return 5.0 + (terms.drain_wait if terms.boundary else terms.grace)
        case Draining(phase=DrainPhase.HEARD) if terms.boundary:
            return terms.drain_wait + 10.0 + 30.0 + terms.grace + 5.0
        case Draining(phase=DrainPhase.BOUNDARY):
            return 30.0 + terms.grace + 5.0
        case Draining():
            return terms.grace + 5.0
        case Releasing():
            return 30.0
        case Starting():
            return terms.start_limit
        case Running() | Stuck() | Detached():
            return None


def ends_at(lease: Lease) -> Instant | None:
    """Return when what is in flight of a lease has had its time."""
    match lease:
        case Draining(deadline=by) | Keeping(hear_by=by) | Releasing(free_by=by):
            return by
        case Starting(ready_by=by):
            return by
        case Granted(wake_at=at):
            return at
        case Running() | Stuck() | Detached():
            return None


CardMachine.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestCardMachine = CardMachine.TestCase
