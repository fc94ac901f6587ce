"""A whole broker under one clock and one seed: every core, in-memory mailboxes, faults.

Nothing here has a thread or a socket. The real cores of node, cards, journal, trees, probes,
supervisor and wrappers hear each other through mailboxes; a seeded chooser picks whose turn it is,
and which fault strikes. After every step the invariants of `invariants.py` are looked at. A failure
carries its seed and the last things that happened, and the same seed plays it again.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from berth.actors.base import ActorDied, Ping, Pong
from berth.actors.card import core as card_core
from berth.actors.card.messages import (
    CardRead,
    CardUnread,
    ForgetWaiters,
    Resumed,
    SetPace,
    Tick,
    WatchAgain,
    XidThrown,
)
from berth.actors.card.recovery import restored, watches
from berth.actors.card.state import Settings
from berth.actors.journal import core as journal_core
from berth.actors.journal.inbox import JournalTick, WriteFailed, Written
from berth.actors.journal.messages import (
    DropLease,
    Kept,
    KeptRead,
    ReadKept,
    Record,
    SaveBaseline,
    SaveHandOffs,
    SaveLease,
    SaveUsage,
)
from berth.actors.journal.records import Clocks, decode_lease, encode_lease
from berth.actors.node import core as node_core
from berth.actors.node.messages import (
    Called,
    CardRestarted,
    EventTold,
    NodeClosed,
    NodeTick,
    PeerGone,
    Publish,
    Push,
    Reply,
)
from berth.actors.node.messages import (
    ForCard as NodeForCard,
)
from berth.actors.node.recovery import parties
from berth.actors.node.state import Node
from berth.actors.supervisor import core as supervisor_core
from berth.actors.supervisor.messages import (
    Care,
    ChildStarted,
    CloseChild,
    GiveUp,
    PingChild,
    PrepareChild,
    StartChild,
    SupervisorTick,
)
from berth.actors.ticker import SUSPEND_FROM
from berth.actors.trees import core as trees_core
from berth.actors.trees.messages import (
    EndTree,
    ForgetTree,
    KillTree,
    LeftoversKilled,
    RootExited,
    TellElsewhere,
    TreesSeen,
    TreesTick,
    WakeHolder,
    WatchTree,
)
from berth.ids import CardName, Connection, ProcessId
from berth.lease import Terms
from berth.probes import core as probe_core
from berth.probes.messages import (
    KillWorker,
    PaceWorker,
    ProbeTick,
    StartWorker,
    WorkerEnded,
    WorkerSaw,
)
from berth.units import Instant, MiB, Seconds
from berth.wire import EventMessage
from tests.cores.judge import Judge
from tests.sim.clients import Client, Line
from tests.sim.machine import Behaviour, Machine, Process

STORY = 400
_NO_WORKER = (0, 0.0, False)
TICK = 0.5


class Broken(AssertionError):  # noqa: N818 -- it is a finding
    """An invariant does not hold."""


@dataclass(slots=True)
class Actor:
    """One actor: its state, its mailbox. `asleep_until`: it is slow just now."""

    role: str
    state: Any
    decide: Callable[[Any, Any, Instant], tuple[Any, tuple[Any, ...]]]
    incarnation: int = 0
    mailbox: deque[Any] = field(default_factory=deque)
    asleep_until: float = 0.0


@dataclass(slots=True)
class Disk:
    """The journal's file. `full`: nothing can be written."""

    leases: dict[tuple[str, str], bytes] = field(default_factory=dict)
    baselines: dict[str, MiB] = field(default_factory=dict)
    hand_offs: dict[str, SaveHandOffs] = field(default_factory=dict)
    usage: dict[str, SaveUsage] = field(default_factory=dict)
    last_seq: int = 0
    last_number: int = 0
    full: bool = False


class World:
    """One machine, one berthd (or none, for a while), and the clients on it."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self.machine = machine
        self.seed = seed
        self.rng = random.Random(seed)
        self.now = Instant(1000.0)
        self.steps = 0
        self.replies = 0
        self.ended = 0
        self.steps_written = 0
        self.collisions = 0
        self.granted_on_several = 0
        self.story: deque[str] = deque(maxlen=STORY)
        self.disk = Disk()
        self.actors: dict[str, Actor] = {}
        self.clients: list[Client] = []
        self.lines: dict[Connection, tuple[Line, Client]] = {}
        self.watch_step: Callable[[World], None] = lambda _: None
        self.watch_decision: Callable[[World, Actor, Any, tuple[Any, ...]], None] = lambda *_: None
        self.watch_event: Callable[[EventMessage], None] = lambda _: None
        self.judges: dict[CardName, Judge] = {}
        self.contested: set[str] = set()
        self.slept = 0.0
        self.wall_ahead = 0.0
        self.wall: Callable[[], float] = lambda: self.now + self.wall_ahead
        self._slept_before = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._lines = 0
        self._workers: dict[str, tuple[int, float, bool]] = {}
        self._waiting_exits: dict[str, ProcessId] = {}
        self._given = (0, 0)
        self._tick()

    # --- time -------------------------------------------------------------------------------

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Have something happen after that many seconds."""
        self._order += 1
        heapq.heappush(self._due, (self.now + seconds, self._order, what))

    def note(self, what: str) -> None:
        """Add a line to the story."""
        self.story.append(f"{self.now:9.2f} {what}")

    def fail(self, why: str) -> None:
        """An invariant is broken: say which, with the seed and the story."""
        told = "\n".join(self.story)
        raise Broken(f"seed {self.seed}, step {self.steps}, {self.now:.2f}s: {why}\n{told}")

    def play(self, until: float) -> None:
        """Let things happen until that instant."""
        while self._due and (self._due[0][0] <= until or self._ready()):
            self.step()
        self.now = Instant(max(self.now, until))

    def _ready(self) -> list[Actor]:
        return [a for a in self.actors.values() if a.mailbox and a.asleep_until <= self.now]

    def step(self) -> None:
        """Let one thing happen: an actor takes a message, or else time goes on."""
        self.steps += 1
        ready = self._ready()
        if ready:
            self._deliver(ready[0] if len(ready) == 1 else self.rng.choice(ready))
        else:
            at, _, what = heapq.heappop(self._due)
            self.now = Instant(max(self.now, at))
            what()
        self.watch_step(self)

    def suspend(self, seconds: float) -> None:
        """Sleep: the monotonic clock stands still, the boot clock runs, nobody does anything."""
        self.note(f"the machine sleeps for {seconds:.0f}s")
        self.slept += seconds
        self.wall_ahead += seconds

    def _tick(self) -> None:
        """Do what the ticker does (`berth/actors/ticker.py`), which is a thread."""
        just_now = self.slept - self._slept_before
        if just_now > SUSPEND_FROM:
            for name in self.machine.cards:
                self.tell(f"card {name}", Resumed(slept=Seconds(just_now)))
        self._slept_before = self.slept
        ticks: dict[str, Any] = {"node": NodeTick(), "trees": TreesTick(), "journal": JournalTick()}
        for role in self.actors:
            kind = role.split()[0]
            tick = {"card": Tick(), "probe": ProbeTick()}.get(kind, ticks.get(role))
            self.tell(role, tick if tick is not None else SupervisorTick())
        self.later(TICK, self._tick)

    # --- berthd: starting and stopping --------------------------------------------------------

    def start_berthd(self) -> None:
        """Start every actor from what is on the disk."""
        self.note("berthd starts")
        kept = self._kept()
        self.actors = {
            "journal": Actor(
                "journal", journal_core.Journal(last_seq=kept.last_seq), self._journal
            ),
            "trees": Actor("trees", trees_core.Trees(), trees_core.decide),
        }
        for name in self.machine.cards:
            self._start_card(name, kept, 0)
            probe = Actor(f"probe {name}", probe_core.Probe(), probe_core.decide)
            self.actors[probe.role] = probe
        self._start_node(kept, 0)
        cares = {
            role: Care.ALWAYS if role.split()[0] in {"probe", "trees"} else Care.LIMITED
            for role in self.actors
        }
        cares["journal"] = Care.VITAL
        state = supervisor_core.supervise(cares, self.now)
        self.actors["supervisor"] = Actor("supervisor", state, supervisor_core.decide)

    def _journal(self, state: Any, event: Any, now: Instant) -> Any:
        return journal_core.decide(
            state, journal_core.Dated(event=event, wall=now + self.wall_ahead), now
        )

    def _start_card(self, name: CardName, kept: Kept, incarnation: int) -> None:
        identity = self.machine.cards[name].identity
        cards = tuple(one.identity for one in self.machine.cards.values())
        card = restored(identity, Settings(), kept, self.now, cards=cards, again=incarnation > 0)
        self.actors[f"card {name}"] = Actor(f"card {name}", card, card_core.decide, incarnation)
        self.judges.setdefault(name, Judge(card)).start_again(card)
        for watch in watches(card):
            self.tell("trees", watch)
        self.tell("trees", TellElsewhere(card=name))

    def _start_node(self, kept: Kept, incarnation: int) -> None:
        cards = tuple(card.identity for card in self.machine.cards.values())
        node = Node(
            name="sim",
            version="0",
            pid=1,
            started=self.now,
            cards=cards,
            last_number=max(kept.last_number, self._given[0]),
            last_call=self._given[1],
            leases=parties(kept, cards),
        )
        self.actors["node"] = Actor("node", node, node_core.decide, incarnation)

    def kill_berthd(self) -> None:
        """SIGKILL: every actor's state and mailbox is gone; the disk and the engines are not."""
        self.note("berthd is killed")
        self.actors = {}
        self._workers = {}
        self._waiting_exits = {}
        self._given = (0, 0)
        self._break_lines()

    def _break_lines(self) -> None:
        for _, client in tuple(self.lines.values()):
            client.break_line()
        self.lines = {}

    def crash(self, role: str) -> None:
        """Let one actor die of something: its state and its mailbox are gone."""
        actor = self.actors.pop(role, None)
        if actor is None:
            return
        self.note(f"{role} crashes")
        if role == "node":
            self._given = (actor.state.last_number, actor.state.last_call)
            self._break_lines()
        if role == "trees":
            self._waiting_exits = {}
        died = ActorDied(
            role=role, incarnation=actor.incarnation, cause="sim", event=None, story=()
        )
        self.tell("supervisor", died)

    def _kept(self) -> Kept:
        leases: dict[str, tuple[Any, ...]] = {}
        for (card_key, _), record in self.disk.leases.items():
            leases[card_key] = (*leases.get(card_key, ()), decode_lease(record, Clocks()))
        return Kept(
            leases=leases,
            baselines=dict(self.disk.baselines),
            hand_offs=dict(self.disk.hand_offs),
            usage=dict(self.disk.usage),
            last_seq=self.disk.last_seq,
            last_number=self.disk.last_number,
        )

    # --- mailboxes ----------------------------------------------------------------------------

    def tell(self, role: str, message: Any) -> None:
        """Put a message into an actor's mailbox; a dead one's is lost."""
        actor = self.actors.get(role)
        if actor is not None:
            actor.mailbox.append(message)

    def _deliver(self, actor: Actor) -> None:
        message = actor.mailbox.popleft()
        if isinstance(message, Ping):
            self.tell("supervisor", Pong(actor.role, actor.incarnation))
        else:
            self._hear(actor, message)

    def _hear(self, actor: Actor, message: Any) -> None:
        actor.state, effects = actor.decide(actor.state, message, self.now)
        self.watch_decision(self, actor, message, effects)
        for effect in effects:
            if self.actors.get(actor.role) is actor:
                self._perform(actor, effect)

    def _perform(self, actor: Actor, effect: Any) -> None:
        kind = actor.role.split()[0]
        getattr(self, f"_perform_{kind}")(actor, effect)

    def _perform_card(self, actor: Actor, effect: Any) -> None:
        name = actor.state.name
        match effect:
            case Record():
                self.tell("journal", effect)
            case SetPace():
                self.tell(f"probe {name}", effect)
            case WatchTree() | ForgetTree() | WakeHolder() | EndTree() | KillTree():
                self.tell("trees", effect)
            case _:
                self.tell("node", effect)

    def _perform_node(self, actor: Actor, effect: Any) -> None:
        match effect:
            case Reply() | Push():
                self._send(effect)
            case NodeForCard():
                self.tell(f"card {effect.card}", effect.message)
            case Publish():
                self._published(effect)
            case NodeClosed():
                pass
            case _:
                self.tell("journal", effect)

    def _published(self, effect: Publish) -> None:
        event = effect.event
        self.watch_event(event)
        if event.kind in {"lease.contested", "lease.stuck"} or event.kind.startswith("alert."):
            self.note(f"[{event.kind}] {event.name}: {event.why}")
        if event.kind == "lease.contested" and event.card is not None:
            self.contested.add(event.card)

    def _perform_journal(self, actor: Actor, effect: Any) -> None:
        match effect:
            case journal_core.Write():
                told = self.write(effect)
                if told is not None:
                    self._hear(actor, told)
            case journal_core.PassOn():
                self.tell("node", effect.message)
            case journal_core.TellCards():
                for name in self.machine.cards:
                    self.tell(f"card {name}", effect.message)
            case journal_core.PublishEvent():
                self.tell("node", EventTold(event=effect.event))
            case journal_core.TellKept():
                kept = journal_core.overlaid(self._kept(), effect.unwritten)
                asked = effect.asked
                read = KeptRead(role=asked.role, incarnation=asked.incarnation, kept=kept)
                self.tell("supervisor", read)
            case _:
                pass  # pruning and reading events: there is nothing to see of them here

    def write(self, effect: Any) -> Any:
        """Write a batch to the disk; None when berthd was killed over it."""
        if self.disk.full:
            return WriteFailed(batch=effect.number, why="disk full")
        for entry in effect.batch.latest.values():
            match entry:
                case SaveLease():
                    self.disk.leases[entry.card_key, entry.lease.id] = encode_lease(
                        entry.lease, Clocks()
                    )
                case DropLease():
                    self.disk.leases.pop((entry.card_key, entry.lease), None)
                case SaveBaseline():
                    self.disk.baselines[entry.card_key] = entry.baseline
                case SaveUsage():
                    self.disk.usage[entry.card_key] = entry
                case SaveHandOffs():
                    self.disk.hand_offs[entry.card_key] = entry
                case _:
                    raise AssertionError(entry)
        for event in effect.batch.events:
            self.disk.last_seq = event.seq
            number = event.request or event.lease
            if number:
                self.disk.last_number = max(self.disk.last_number, int(number[1:]))
        return Written(batch=effect.number)

    def _perform_supervisor(self, actor: Actor, effect: Any) -> None:
        match effect:
            case PrepareChild():
                self.tell("journal", ReadKept(role=effect.role, incarnation=effect.incarnation))
            case StartChild():
                self._restart(effect)
                self._hear(actor, ChildStarted(role=effect.role, incarnation=effect.incarnation))
            case PingChild():
                self.tell(effect.role, Ping())
            case CloseChild() | GiveUp():
                self.note(f"supervisor: {effect}")
                self.kill_berthd()
                self.later(1.0, self.start_berthd)
            case _:
                pass  # reports, and children left behind: there is no thread here

    def _restart(self, effect: StartChild) -> None:
        role, incarnation = effect.role, effect.incarnation
        self.note(f"{role} is started again")
        kind, _, name = role.partition(" ")
        if kind == "card":
            self._start_card(CardName(name), effect.kept, incarnation)
            self.tell(f"probe {name}", SetPace(fast=False))
            self.tell("node", CardRestarted(card=CardName(name)))
        elif kind == "node":
            for one in self.machine.cards.values():
                kept = effect.kept.leases.get(one.identity.key, ())
                self.tell(f"card {one.identity.name}", ForgetWaiters(kept=kept))
            self._start_node(effect.kept, incarnation)
        elif kind == "trees":
            self.actors[role] = Actor(role, trees_core.Trees(), trees_core.decide, incarnation)
            for card in self.machine.cards:
                self.tell(f"card {card}", WatchAgain())
        else:
            self._workers.pop(name, None)
            self.actors[role] = Actor(role, probe_core.Probe(), probe_core.decide, incarnation)
            self.tell(f"card {name}", WatchAgain())

    # --- probes and their workers -----------------------------------------------------------

    def _perform_probe(self, actor: Actor, effect: Any) -> None:
        name = actor.role.partition(" ")[2]
        match effect:
            case CardRead() | CardUnread() | XidThrown():
                self.tell(f"card {name}", effect)
            case StartWorker():
                self._workers[name] = (effect.worker, effect.pace, effect.wake)
                self.later(0.2, lambda: self._look(name, effect.worker))
            case PaceWorker():
                if self._workers.get(name, _NO_WORKER)[0] == effect.worker:
                    self._workers[name] = (effect.worker, effect.pace, effect.wake)
                    self.later(0.001, lambda: self._look(name, effect.worker, again=False))
            case KillWorker():
                self._workers.pop(name, None)
                ended = WorkerEnded(worker=effect.worker, why="killed")
                self.later(0.01, lambda: self.tell(f"probe {name}", ended))
            case _:
                raise AssertionError(effect)

    def _look(self, name: str, worker: int, *, again: bool = True) -> None:
        number, pace, wake = self._workers.get(name, _NO_WORKER)
        if number != worker:
            return
        if again:
            self.later(pace, lambda: self._look(name, worker))
        chance = self.rng.random()
        look = self.machine.look(CardName(name), self.now, wake=wake)
        if chance < 0.01:
            return  # lost
        delay = 0.0 if chance < 0.9 else self.rng.choice([0.01, 0.3, 2.0])
        saw = WorkerSaw(worker=worker, look=look)
        self.later(delay, lambda: self.tell(f"probe {name}", saw))
        if chance > 0.99:
            self.later(delay + 0.5, lambda: self.tell(f"probe {name}", saw))  # twice

    def end_worker(self, name: str) -> None:
        """Let a driver worker die by itself."""
        number, _, _ = self._workers.pop(name, _NO_WORKER)
        self.tell(f"probe {name}", WorkerEnded(worker=number, why="sim"))

    # --- trees: the kernel's part -------------------------------------------------------------

    def _perform_trees(self, actor: Actor, effect: Any) -> None:
        match effect:
            case trees_core.WaitForExit():
                self._waiting_exits[effect.lease] = effect.root
                if not self.machine.alive(effect.root):
                    self._exited(effect.lease, effect.root)
            case trees_core.StopWaiting():
                self._waiting_exits.pop(effect.lease, None)
            case trees_core.LookAtTrees():
                members = {
                    lease: self.machine.below(root)
                    for lease, root in effect.roots.items()
                    if self.machine.alive(root)
                }
                self._hear(actor, TreesSeen(members=members))
            case trees_core.SendSignal():
                self._signal(effect)
            case trees_core.KillLeftovers():
                self._kill_leftovers(effect)
                self._hear(actor, LeftoversKilled(lease=effect.watch.lease))
            case trees_core.ForCard():
                self.tell(f"card {effect.card}", effect.message)
            case trees_core.ForOtherCards():
                for name in self.machine.cards:
                    if name not in effect.cards:
                        self.tell(f"card {name}", effect.message)
            case _:
                raise AssertionError(effect)

    def _exited(self, lease: Any, root: ProcessId) -> None:
        self._waiting_exits.pop(lease, None)
        self.tell("trees", RootExited(lease=lease, root=root))

    def _signal(self, effect: Any) -> None:
        for identity in effect.processes:
            process = self.machine.processes.get(identity)
            if process is None:
                continue
            client = self._client_of(process)
            if client is None:
                self.fail(f"berthd sends {effect.signal} to {process.name}, which has no lease")
            if effect.signal == "SIGCONT":
                if client is not None:
                    client.resume()
            elif process is (client and client.wrapper):
                if (effect.signal == "SIGKILL" and client is not None) or (
                    client is not None and not client.terms.wrapped
                ):
                    client.killed()
            elif effect.signal == "SIGKILL" or (client and client.behaviour.dies_on_term):
                self._end_member(client, process)

    def _end_member(self, client: Client | None, process: Process) -> None:
        if client is not None and process is client.engine:
            client.ended_by_berthd()
        elif process.alive:
            self.end_process(process)
            if client is not None:
                client.reap()

    def _kill_leftovers(self, effect: Any) -> None:
        for process in tuple(self.machine.processes.values()):
            marked = process.mark and process.mark == self._mark(effect.watch.key)
            if process.identity in effect.members or marked:
                if self._client_of(process) is None:
                    self.fail(f"berthd kills {process.name}, which has no lease")
                self.end_process(process)

    def _mark(self, key: str) -> str:
        return next((c.name for c in self.clients if c.terms.key == key), "")

    def _client_of(self, process: Process) -> Client | None:
        return next(
            (
                client
                for client in self.clients
                if process in {client.wrapper, client.engine, client.fork}
                or (process.mark and process.mark == client.name)
            ),
            None,
        )

    def end_process(self, process: Process, behaviour: Behaviour | None = None) -> None:
        """End a process; its memory lingers on the card for as long as its engine's does."""
        if not process.alive:
            return
        lingers_s = 0.0 if behaviour is None else behaviour.lingers_s
        rowless = behaviour is not None and behaviour.rowless
        self.machine.kill(process, lingers=lingers_s > 0, rowless=rowless)
        if lingers_s > 0:
            identity = process.identity
            self.later(lingers_s, lambda: self.machine.let_go(identity))

    def notice_exits(self) -> None:
        """Tell the trees actor of watched processes that have ended."""
        for lease, root in tuple(self._waiting_exits.items()):
            if not self.machine.alive(root):
                self._exited(lease, root)

    # --- the socket ---------------------------------------------------------------------------

    def node_listens(self) -> bool:
        return "node" in self.actors

    def open_line(self, client: Client) -> Line:
        self._lines += 1
        line = Line(Connection(str(self._lines).encode()))
        self.lines[line.connection] = (line, client)
        return line

    def tell_node(self, called: Called, line: Line) -> None:
        """Carry a client's message to the node, if the line holds until then."""
        delay = self.rng.choice([0.0, 0.0, 0.001, 0.05])
        line.arrives = max(line.arrives, self.now + delay)  # one line keeps its order

        def arrive() -> None:
            if line.up:
                self.tell("node", called)

        self.later(line.arrives - self.now, arrive)

    def _send(self, effect: Reply | Push) -> None:
        line, client = self.lines.get(effect.connection, (None, None))
        if line is None or client is None or not line.up:
            self.lines.pop(effect.connection, None)
            self.tell("node", PeerGone(connection=effect.connection))
            return
        line.to_client.append(effect)
        self.later(self.rng.choice([0.0, 0.001, 0.05]), client.deliver)

    # --- clients ------------------------------------------------------------------------------

    def cards_of(self, client: Client) -> list[CardName]:
        """Return the cards that a client's engine allocates on."""
        if client.run.cards:
            return [CardName(card) for card in client.run.cards]
        first = next(iter(self.machine.cards))
        return [first if card == "any" else CardName(card) for card in client.cards] or [first]

    def add_client(self, name: str, behaviour: Any, terms: Terms, cards: tuple[str, ...]) -> Client:
        client = Client(self, name, behaviour, terms, cards)
        self.clients.append(client)
        self.note(f"{name} asks {behaviour.mib} MiB of {cards or 'the first card'}: {behaviour}")
        return client

    def out_of_memory(self, client: Client, card: CardName) -> None:
        """An engine found no room on a card that it was granted."""
        leased = self._leased(card)
        room = self.machine.cards[card].total - self.machine.cards[card].baseline
        stale = any(on == card for _, on in self.machine.lingering)
        if stale and self.machine.cards[card].blind:
            # What a dead engine leaves cannot be told from a living one's there (decision 0007).
            self.note(f"{client.name} is out of memory, beside what nobody can be blamed for")
            return
        if not client.granted or card in self.contested or leased <= room:
            self.note(f"{client.name} is out of memory, beside something that has no lease")
            return
        self.collisions += 1
        shown = {p.name: p.holds for p in self.machine.processes.values() if p.holds}
        self.fail(f"{client.name} was granted {card} and found it full: {shown}")

    def _leased(self, card: CardName) -> int:
        """Return what engines that were granted the card use or are about to use of it."""
        loading = {
            process.identity
            for client in self.clients
            if client.granted and client.wrapper.alive and card in self.cards_of(client)
            for process in (client.engine, client.fork)
            if process is not None and process.alive
        }
        promised = sum(
            client.behaviour.mib
            for client in self.clients
            if client.engine is not None and client.engine.identity in loading
        )
        others = sum(
            process.holds.get(card, 0)
            for process in self.machine.processes.values()
            if process.granted and process.identity not in loading
        )
        stale = sum(
            mib
            for (process, on), mib in self.machine.lingering.items()
            if on == card and process in self.machine.granted_lingering
        )
        return promised + others + stale
