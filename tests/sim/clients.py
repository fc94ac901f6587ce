"""Wrappers in the simulated world: the real core of `berth run` around a simulated engine."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from berth.actors.card.messages import HolderWord
from berth.actors.node.messages import (
    AskLease,
    AttachLease,
    Called,
    ClientOp,
    GiveBack,
    Peer,
    Pong,
    Push,
    Reply,
    ShowStatus,
    TellStarted,
    TellWord,
    Wanted,
    Withdraw,
)
from berth.errors import Code
from berth.ids import Attempt, Connection, LeaseId, ProcessId, RequestId
from berth.lease import Terms
from berth.run.core import begin, decide, wake_at
from berth.run.messages import (
    AskShown,
    Attached,
    BoundaryRead,
    Card,
    ChildExited,
    ChildRuns,
    Connected,
    Disconnected,
    DropChild,
    LeaseGiven,
    LeaseGone,
    LeaseShown,
    Leave,
    NoChildren,
    Ordered,
    Passed,
    PostUnload,
    Queued,
    ReadBoundary,
    Refused,
    ReleaseHeard,
    RunEffect,
    RunEvent,
    Say,
    Seen,
    SendAttach,
    SendPong,
    SendRelease,
    SendRequest,
    SendStarted,
    SendWithdraw,
    SendWord,
    SignalGroup,
    SignalTree,
    StartChild,
    UnloadAnswered,
)
from berth.run.state import KILL, TERM, Leftovers, Over, Running, RunOptions, Stopping
from berth.units import Instant, MiB, Seconds
from berth.views import Status
from tests.sim.machine import Behaviour, Process

if TYPE_CHECKING:
    from tests.sim.world import World


@dataclass(slots=True)
class Line:
    """One connection to berthd: what is under way on it, in order. Broken, it loses that."""

    connection: Connection
    up: bool = True
    arrives: float = 0.0
    to_client: deque[Reply | Push] = field(default_factory=deque)


class Client:
    """One `berth run`, from its first request to its end."""

    def __init__(
        self, world: "World", name: str, behaviour: Behaviour, terms: Terms, cards: tuple[str, ...]
    ) -> None:
        self.world = world
        self.name = name
        self.behaviour = behaviour
        self.terms = terms
        self.cards = cards
        self.rng = random.Random(world.rng.random())
        self.wrapper = world.machine.spawn(f"berth run {name}")
        self.engine: Process | None = None
        self.fork: Process | None = None
        self.line: Line | None = None
        self.ops: dict[str, str] = {}
        self.numbers = 0
        self.loaded = False
        self.busy_until: Instant | None = None
        self.served = False
        self.starts = 0
        self.granted = False
        self.asked_at: Instant | None = None
        self.may_be_cut = False
        self.status: int | None = None
        self.run = begin(
            RunOptions(
                name=name,
                wait=terms.wait,
                drain_wait=terms.drain_wait,
                grace=terms.grace,
                boundary=terms.boundary,
                unload=False,
                fail_closed=terms.fail_closed,
                names_cards=False,
                mark=name,
            ),
            world.now,
        )
        world.later(0.0, self.connect)
        world.later(0.0, self.pass_time)

    @property
    def over(self) -> bool:
        return isinstance(self.run.phase, Over) or not self.wrapper.alive

    @property
    def lease(self) -> str | None:
        return self.run.phase.lease if isinstance(self.run.phase, Running) else None

    def leaves_something(self) -> bool:
        """Tell whether a process of this run still lives."""
        return any(one is not None and one.alive for one in (self.engine, self.fork))

    @property
    def leftover_lease(self) -> str | None:
        phase = self.run.phase
        return phase.lease if isinstance(phase, Leftovers) else None

    # --- the line ---------------------------------------------------------------------------

    def connect(self) -> None:
        """Reach berthd, if one listens."""
        if self.over or (self.line is not None and self.line.up):
            return
        if self.world.node_listens():
            self.line = self.world.open_line(self)
            self.hear(Connected())
        else:
            self.world.later(0.1, self.connect)

    def break_line(self) -> None:
        """Lose the connection, and all that is under way on it."""
        if self.line is not None and self.line.up:
            self.line.up = False
            self.line.to_client.clear()
            self.ops.clear()
            self.world.later(self.rng.random() * 0.2, self._notice_the_break)

    def _notice_the_break(self) -> None:
        if not self.over:
            self.hear(Disconnected())
            self.world.later(0.1 + self.rng.random(), self.connect)

    def deliver(self) -> None:
        """Take the next message from the line."""
        if self.line is None or not self.line.to_client or self.wrapper.stopped:
            return
        message = self.line.to_client.popleft()
        if self.over:
            return
        event = self._translate(message)
        if event is not None:
            self.hear(event)

    def resume(self) -> None:
        """Go on after a stop: what came meanwhile is taken now."""
        self.wrapper.stopped = False
        if self.line is not None:
            for _ in self.line.to_client:
                self.world.later(0.0, self.deliver)

    def _translate(self, message: Reply | Push) -> RunEvent | None:
        if isinstance(message, Push):
            order = message.message
            self._note_order(order.order, at_once=order.now)
            return Ordered(
                order=order.order, attempt=order.attempt, why=order.why, at_once=order.now
            )
        op = self.ops.get(message.message_id, "")
        if message.last:
            self.ops.pop(message.message_id, None)
        return _event_of(op, self.lease or self.leftover_lease, message)

    def _note_order(self, order: str, *, at_once: bool) -> None:
        if order == "stop" and at_once:
            self.may_be_cut = True
        elif order in {"drain", "stop"} and self.asked_at is None:
            self.asked_at = self.world.now
        elif order == "continue":
            self.asked_at = None

    def send(self, op: str, message: ClientOp) -> None:
        """Send an operation, if the line is up."""
        if self.line is None or not self.line.up:
            return
        self.numbers += 1
        message_id = f"{self.numbers}"
        self.ops[message_id] = op
        peer = Peer(connection=self.line.connection, process=self.wrapper.identity)
        self.world.tell_node(Called(peer=peer, message_id=message_id, op=message), self.line)

    # --- the core ---------------------------------------------------------------------------

    def pass_time(self) -> None:
        """Look at the deadlines, as the loop does."""
        if self.over:
            return
        if not self.wrapper.stopped:
            self.hear(Passed())
        if not self.over:
            wait = max(0.05, wake_at(self.run, self.world.now) - self.world.now)
            self.world.later(wait, self.pass_time)

    def hear(self, event: RunEvent) -> None:
        """Take an event through the core, and do what it says."""
        if self.over:
            return
        self.run, effects = decide(self.run, event, self.world.now)
        for effect in effects:
            self._do(effect)

    def _do(self, effect: RunEffect) -> None:
        match effect:
            case SendRequest():
                self.send("request", AskLease(wanted=self._wanted(effect.waited)))
            case SendWithdraw():
                self.send("withdraw", Withdraw(request=RequestId(effect.request)))
            case SendStarted():
                lease = LeaseId(effect.lease)
                started = TellStarted(lease=lease, members=self._members(), scope=None)
                self.send("started", started)
            case SendWord():
                self._send_word(effect)
            case SendRelease():
                self.send("release", GiveBack(lease=LeaseId(effect.lease)))
            case SendAttach():
                self._send_attach(effect)
            case SendPong():
                self.send("pong", Pong())
            case AskShown():
                self.send("status", ShowStatus())
            case StartChild():
                self._start(effect)
            case DropChild() | Say():
                pass
            case ReadBoundary():
                self.world.later(0.005, self._read_boundary)
            case PostUnload():
                self.world.later(0.005, lambda: self.hear(UnloadAnswered(ok=True)))
            case SignalGroup():
                self._signal_group(effect.number)
            case SignalTree():
                self._signal_tree(effect.number)
            case Leave():
                self.status = effect.status
                self._leave()

    def _wanted(self, waited: Seconds) -> Wanted:
        return Wanted(
            terms=self.terms,
            mib=() if self.behaviour.whole else (MiB(self.behaviour.mib),),
            cards=self.cards,
            waited=waited,
        )

    def _members(self) -> "frozenset[ProcessId]":
        return self.world.machine.below(self.wrapper.identity)

    def _send_word(self, effect: SendWord) -> None:
        word = TellWord(
            lease=LeaseId(effect.lease),
            attempt=Attempt(effect.attempt),
            word=HolderWord(effect.word),
            why=effect.why,
        )
        self.send("answer", word)

    def _send_attach(self, effect: SendAttach) -> None:
        wanted = self._wanted(Seconds(0.0))
        attach = AttachLease(
            wanted=replace(wanted, cards=effect.cards or wanted.cards),
            lease=None if effect.lease is None else LeaseId(effect.lease),
            state=effect.state,
            attempt=Attempt(effect.attempt),
            members=self._members(),
            ran_for=effect.ran_for,
            scope=None,
        )
        self.send("attach", attach)

    # --- the engine -------------------------------------------------------------------------

    def _start(self, effect: StartChild) -> None:
        self.starts += 1
        self.granted = effect.lease is not None
        self.world.note(f"{self.name} starts under {effect.lease}")
        machine = self.world.machine
        self.engine = machine.spawn(self.name, self.wrapper, mark=self.name)
        self.engine.granted = self.granted
        self.world.later(0.0, lambda: self.hear(ChildRuns()))
        half, lazy_s = self.behaviour.load_s / 2, self.behaviour.lazy_s
        first = self.behaviour.idle_mib if lazy_s else self.behaviour.mib // 2
        self.world.later(half, lambda: self._load(first))
        self.world.later(self.behaviour.load_s + lazy_s, lambda: self._load(self.behaviour.mib))
        ends = self.behaviour.load_s + self.behaviour.life_s
        self.world.later(ends, self._finish)
        self.world.later(ends + 60.0, self.fork_dies)

    def _load(self, mib: int) -> None:
        """Take memory: in a child that forked away, where the engine is of that kind."""
        engine = self.engine
        if engine is None or not engine.alive:
            return
        if self.behaviour.crashes_loading and mib == self.behaviour.mib:
            self._exit(status=1)
            return
        if self.behaviour.forks and self.fork is None:
            self.fork = self.world.machine.spawn(f"{self.name}-fork", engine, mark=self.name)
            self.fork.granted = self.granted
        owner = self.fork or engine
        if not owner.alive:
            return
        for card in self.world.cards_of(self):
            if not self.world.machine.allocate(owner, card, mib):
                self.world.out_of_memory(self, card)
                self._exit(status=1)
                return
        if mib == self.behaviour.mib:
            self.loaded = True
            self._work()

    def _work(self) -> None:
        """Answer a request, then pause, then the next."""
        engine = self.engine
        if engine is None or not engine.alive or not self.behaviour.boundary:
            return
        if self._holds_new_requests():
            self.world.later(self.behaviour.pause_s, self._work)
            return
        self.busy_until = Instant(self.world.now + self.behaviour.reply_s)
        self.world.later(self.behaviour.reply_s, self._answer)

    def _holds_new_requests(self) -> bool:
        """A client that knows of a drain (a front, a gateway) sends nothing new."""
        phase = self.run.phase
        return isinstance(phase, Running) and type(phase.drain).__name__ != "NoDrain"

    def _answer(self) -> None:
        if self.engine is not None and self.engine.alive:
            self.busy_until = None
            self.served = True
            self.world.replies += 1
            self.world.later(self.behaviour.pause_s, self._work)

    def _read_boundary(self) -> None:
        engine = self.engine
        if engine is None or not engine.alive:
            self.hear(BoundaryRead(seen=Seen.UNREADABLE, detail="refused"))
        elif self.behaviour.hangs or engine.stopped:
            timed_out = BoundaryRead(seen=Seen.TIMED_OUT)
            self.world.later(5.0, lambda: self.hear(timed_out))
        elif not self.loaded:
            self.hear(BoundaryRead(seen=Seen.UNREADABLE, detail="503"))
        else:
            seen = Seen.IDLE if self.busy_until is None else Seen.BUSY
            self.hear(BoundaryRead(seen=seen, served=self.served))

    def _signal_group(self, number: int) -> None:
        engine = self.engine
        if engine is None or not engine.alive:
            return
        if number == TERM and self.behaviour.dies_on_term:
            self._note_cut()
            self._exit(status=0)
        elif number == KILL:
            self._note_cut()
            self._exit(signal=KILL)

    def _note_cut(self) -> None:
        """A reply in flight is cut, by Berth's doing; it may be only when its wait was over."""
        if self.busy_until is None or not isinstance(self.run.phase, Running):
            return
        if isinstance(self.run.phase.drain, Stopping) and not self.may_be_cut:
            asked = self.world.now if self.asked_at is None else self.asked_at
            waited = self.world.now - asked >= self.terms.drain_wait
            if not waited and not self.behaviour.hangs:
                self.world.fail(f"{self.name}: a reply was cut")

    def _signal_tree(self, number: int) -> None:
        for identity in self.world.machine.below(self.wrapper.identity):
            process = self.world.machine.processes.get(identity)
            if process is None:
                continue
            if process is self.engine:
                self._signal_group(number)
            elif number == KILL or self.behaviour.dies_on_term:
                self.world.end_process(process, self.behaviour)
        self._reap()

    def _finish(self) -> None:
        """The engine ends by itself, at the end of its life."""
        if self.engine is not None and self.engine.alive:
            self._exit(status=0)

    def _exit(self, status: int | None = None, signal: int | None = None) -> None:
        engine = self.engine
        if engine is None or not engine.alive:
            return
        self.world.end_process(engine, self.behaviour)
        self.busy_until = None
        self.hear(ChildExited(status=status, signal=signal))
        self._reap()

    def _reap(self) -> None:
        if not self.world.machine.below(self.wrapper.identity):
            self.hear(NoChildren())

    def fork_dies(self) -> None:
        """What forked away ends, when nothing ended it before."""
        if self.fork is not None and self.fork.alive:
            self.world.end_process(self.fork, self.behaviour)
            self._reap()

    def ended_by_berthd(self) -> None:
        """The trees actor ended the engine: its wrapper has been silent for too long."""
        if self.terms.fail_closed and self.busy_until is not None and not self.may_be_cut:
            self.world.fail(f"{self.name} is never to be cut, and was")
        self._exit(signal=KILL)

    def reap(self) -> None:
        """Notice that nothing is left below the wrapper."""
        if self.wrapper.alive and not self.wrapper.stopped:
            self._reap()

    # --- the end ----------------------------------------------------------------------------

    def _leave(self) -> None:
        self.world.note(f"{self.name} leaves with {self.status}")
        self.world.ended += 1
        if self.line is not None:
            self.line.up = False
        if self.wrapper.alive:
            self.world.machine.kill(self.wrapper)

    def killed(self) -> None:
        """SIGKILL to the wrapper: its engine dies with it, what forked away does not."""
        if not self.wrapper.alive:
            return
        self.world.note(f"{self.name}'s wrapper is killed")
        if self.line is not None:
            self.line.up = False
        if self.engine is not None and self.engine.alive:
            self.world.end_process(self.engine, self.behaviour)
        self.world.machine.kill(self.wrapper)


def _event_of(op: str, lease: str | None, reply: Reply) -> RunEvent | None:
    """Return what a reply is to a wrapper (as `run/link.py` does from JSON)."""
    failure = reply.failure
    if failure is not None:
        if op in {"started", "attach"} and failure.code in {Code.NOT_FOUND, Code.NOT_YOURS}:
            return LeaseGone()
        if op not in {"request", "release"}:
            return None
        return Refused(
            code=failure.code.value, message=failure.message, waited_out=failure.waited_out
        )
    data = reply.data
    if isinstance(data, Status):
        rows = [row for row in data.leases if row.lease == lease]
        ages = {card.card: card.reading_age_s for card in data.cards}
        oldest = max((ages[row.card] or 1e9 for row in rows), default=0.0)
        used = sum(row.used_mib or 0 for row in rows)
        return LeaseShown(used_mib=used, reading_age=Seconds(oldest))
    fields: dict[str, Any] = dict(data or {})
    if not reply.last:
        return Queued(
            request=fields["request"], why=fields.get("why", ""), position=fields.get("position", 0)
        )
    match op:
        case "request":
            cards = tuple(Card(name=c.card, uuid=c.uuid, vendor=c.vendor) for c in fields["cards"])
            return LeaseGiven(
                lease=fields["lease"],
                name=fields["name"],
                cards=cards,
                start_by=fields["start_by"],
            )
        case "attach":
            return Attached(lease=fields["lease"])
        case "release":
            return ReleaseHeard()
        case _:
            return None
