"""A node and its cards that agree on leases for several of them, while actors die in between.

Only what the agreement needs: the real cores of node, cards and journal, a mailbox for each, and
clients that hold what they are granted. Every step delivers one message, lets a client act, lets
time pass, or kills an actor; the seed decides. What clients hold is the truth that is looked at.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from berth.actors.card import core as card_core
from berth.actors.card.messages import (
    CardRead,
    ForgetWaiters,
    HolderGone,
    HolderWord,
    OfferShare,
    Tick,
    WithdrawOffer,
)
from berth.actors.card.recovery import restored
from berth.actors.card.state import Card, Settings
from berth.actors.journal import core as journal_core
from berth.actors.journal.inbox import JournalTick, WriteFailed, Written
from berth.actors.journal.messages import DropLease, Kept, Record, SaveLease
from berth.actors.journal.records import Clocks, decode_lease, encode_lease
from berth.actors.node import core as node_core
from berth.actors.node.inbox import ShareAccepted, ShareDeclined
from berth.actors.node.messages import (
    AskLease,
    AttachLease,
    Called,
    CardRestarted,
    ClientOp,
    ForCard,
    GiveBack,
    NodeTick,
    Peer,
    PeerGone,
    Push,
    Reply,
    TellStarted,
    TellWord,
    Wanted,
)
from berth.actors.node.recovery import parties
from berth.actors.node.state import Node
from berth.ids import Attempt, CardName, Connection, Key, LeaseId, ProcessId
from berth.lease import Lease, Priority, Terms
from berth.readings import CardIdentity, GpuProcess, Reading
from berth.units import Instant, MiB, Seconds

CAPACITY = 1000
CARDS = tuple(
    CardIdentity(name=CardName(f"gpu{index}"), index=index, uuid=f"GPU-{index}")
    for index in range(3)
)
LONG = Seconds(100000.0)


@dataclass
class Client:
    """Somebody who wants room on some cards, holds it for a while, and gives it back."""

    name: str
    number: int
    mib: int
    cards: tuple[str, ...]
    priority: Priority
    lines: int = 0
    lease: LeaseId | None = None
    attempt: int = 0
    holds_until: float = 0.0
    over: bool = False
    ends: int = 0

    @property
    def connection(self) -> Connection:
        return Connection(f"{self.name}/{self.lines}".encode())

    @property
    def process(self) -> ProcessId:
        return ProcessId(1000 + self.number, 1)


@dataclass
class Agreeing:
    """The little world of one seed."""

    seed: int
    now: Instant = Instant(1000.0)
    mail: dict[str, deque[Any]] = field(default_factory=dict)
    cards: dict[str, Card] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)
    disk: dict[tuple[str, str], bytes] = field(default_factory=dict)
    disk_full: bool = False
    shared_grants: int = 0
    last_number: int = 0
    story: deque[str] = field(default_factory=lambda: deque(maxlen=60))

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.journal = journal_core.Journal()
        self.node = self._new_node()
        self.mail = {role: deque() for role in ("node", "journal", *(c.name for c in CARDS))}
        for identity in CARDS:
            self.cards[identity.name] = Card(identity=identity)

    # --- one step ---------------------------------------------------------------------------

    def step(self, *, troubled: bool = True) -> None:
        """Let one thing happen."""
        waiting = [role for role, mail in self.mail.items() if mail]
        dice = self.rng.random()
        if troubled and dice < 0.02:
            self._trouble()
        elif troubled and dice < 0.08:
            self._arrive()
        elif waiting and dice < 0.85:
            self.deliver(self.rng.choice(waiting))
        else:
            self._act()
            if not waiting or self.rng.random() < 0.3:
                self.pass_time(self.rng.choice([0.01, 0.2, 0.7]))
        self.look()

    def pass_time(self, seconds: float) -> None:
        """Let time pass: everybody ticks, every card is read."""
        self.now = Instant(self.now + seconds)
        self.mail["node"].append(NodeTick())
        self.mail["journal"].append(JournalTick())
        gone = {client.process for client in self.clients if client.over}
        for name, card in self.cards.items():
            for (
                lease
            ) in card.leases:  # as the trees actor tells, again to a card that was restarted
                if lease.held.holder in gone:
                    self.mail[name].append(HolderGone(lease=lease.id))
            self.mail[name].append(CardRead(reading=self._reading(name)))
            self.mail[name].append(Tick())

    def _reading(self, card: str) -> Reading:
        rows = tuple(
            GpuProcess(process=client.process, name=client.name, used=MiB(client.mib))
            for client in self.clients
            if client.lease is not None and card in client.cards
        )
        used = MiB(sum(client.used for client in rows if isinstance(client.used, int)))
        return Reading(
            taken=self.now, total=MiB(CAPACITY), used=used, reserved=MiB(0), processes=rows
        )

    def deliver(self, role: str) -> None:
        """Let an actor hear its next message."""
        message = self.mail[role].popleft()
        if role == "node":
            self.node, effects = node_core.decide(self.node, message, self.now)
            for effect in effects:
                self._of_node(effect)
        elif role == "journal":
            self._journal_hears(message)
        else:
            self.cards[role], said = card_core.decide(self.cards[role], message, self.now)
            for one in said:
                self._of_card(one)

    def _of_node(self, effect: Any) -> None:
        match effect:
            case ForCard():
                self.mail[effect.card].append(effect.message)
            case Record():
                self.mail["journal"].append(effect)
            case Reply() | Push():
                self._to_client(effect)
            case _:
                pass

    def _of_card(self, effect: Any) -> None:
        match effect:
            case Record():
                self.mail["journal"].append(effect)
            case _ if type(effect).__module__.endswith("node.inbox"):
                self.mail["node"].append(effect)
            case _:
                pass  # pace and trees: there are no processes here

    def _journal_hears(self, message: Any) -> None:
        dated = journal_core.Dated(event=message, wall=self.now)
        self.journal, effects = journal_core.decide(self.journal, dated, self.now)
        for effect in effects:
            match effect:
                case journal_core.Write():
                    self._journal_hears(self._write(effect))
                case journal_core.PassOn():
                    self.mail["node"].append(effect.message)
                case journal_core.TellCards():
                    for name in self.cards:
                        self.mail[name].append(effect.message)
                case _:
                    pass

    def _write(self, effect: journal_core.Write) -> Written | WriteFailed:
        if self.disk_full:
            return WriteFailed(batch=effect.number, why="full")
        for entry in effect.batch.latest.values():
            if isinstance(entry, SaveLease):
                encoded = encode_lease(entry.lease, self._clocks())
                self.disk[entry.card_key, entry.lease.id] = encoded
            elif isinstance(entry, DropLease):
                self.disk.pop((entry.card_key, entry.lease), None)
        for event in effect.batch.events:
            number = event.request or event.lease
            if number:
                self.last_number = max(self.last_number, int(number[1:]))
        return Written(batch=effect.number)

    def _clocks(self) -> Clocks:
        return Clocks(monotonic=self.now, boot=self.now, wall=self.now)

    # --- actors that die --------------------------------------------------------------------

    def _trouble(self) -> None:
        what = self.rng.choice(["card", "card", "node", "line", "disk", "gone", "lost", "lost"])
        self.story.append(f"{self.now:.2f} trouble: {what}")
        match what:
            case "card":
                self.kill_card(self.rng.choice(CARDS))
            case "node":
                self.kill_node()
            case "line" | "gone":
                living = [client for client in self.clients if not client.over]
                if living:
                    self._lose(self.rng.choice(living), for_good=what == "gone")
            case "lost":
                self._lose_a_message()
            case _:
                self.disk_full = not self.disk_full

    def _lose_a_message(self) -> None:
        """A step of an agreement is set aside, as one that makes its actor fail twice is."""
        of_agreement = (OfferShare, WithdrawOffer, ShareAccepted, ShareDeclined)
        for role, mail in self.mail.items():
            for message in mail:
                if isinstance(message, of_agreement):
                    mail.remove(message)
                    self.story.append(f"{self.now:.2f} {role} never hears {message}")
                    return

    def _kept(self) -> Kept:
        leases: dict[str, tuple[Lease, ...]] = {}
        for (card_key, _), record in self.disk.items():
            lease = decode_lease(record, self._clocks())
            leases[card_key] = (*leases.get(card_key, ()), lease)
        kept = Kept(leases=leases, last_number=self.last_number)
        return journal_core.overlaid(kept, self.journal.unwritten)

    def kill_card(self, identity: CardIdentity) -> None:
        """A card dies with its mailbox, and starts from what the journal has by then."""
        self.mail[identity.name].clear()
        self._drain_journal_sometimes()
        self.cards[identity.name] = restored(
            identity, Settings(), self._kept(), self.now, cards=CARDS, again=True
        )
        self.mail["node"].append(CardRestarted(card=identity.name))

    def _drain_journal_sometimes(self) -> None:
        """Whatever the dead actor had told the journal is written before it starts again.

        What others tell meanwhile may be, or not.
        """
        for _ in range(len(self.mail["journal"])):
            self.deliver("journal")

    def kill_node(self) -> None:
        """The node dies with its mailbox and its lines; clients come back."""
        self.mail["node"].clear()
        self._drain_journal_sometimes()
        self.mail["node"].clear()
        kept = self._kept()
        for identity in CARDS:
            forget = ForgetWaiters(kept=kept.leases.get(identity.key, ()))
            self.mail[identity.name].append(forget)
        self.node = self._new_node(kept)
        for client in self.clients:
            if not client.over:
                client.lines += 1
                self._come_back(client)

    def _new_node(self, kept: Kept | None = None) -> Node:
        leases = {} if kept is None else parties(kept, CARDS)
        last_number = last_call = 0
        if kept is not None:  # numbers are never given twice
            last_number = max(kept.last_number, self.node.last_number)
            last_call = self.node.last_call
        return Node(
            name="n",
            version="0",
            pid=1,
            started=self.now,
            cards=CARDS,
            last_number=last_number,
            last_call=last_call,
            leases=leases,
        )

    # --- clients ----------------------------------------------------------------------------

    def _arrive(self) -> None:
        if sum(not client.over for client in self.clients) > 8:
            return
        number = len(self.clients) + 1
        names = [card.name for card in CARDS]
        several = self.rng.random() < 0.7
        cards = tuple(self.rng.sample(names, self.rng.choice([2, 3]) if several else 1))
        client = Client(
            name=f"c{number}",
            number=number,
            mib=self.rng.choice([200, 500, 700, 1000]),
            cards=cards,
            priority=self.rng.choice([Priority.BATCH, Priority.INTERACTIVE]),
        )
        self.clients.append(client)
        self.story.append(f"{self.now:.2f} {client.name} asks {client.mib} of {cards}")
        self._call(client, AskLease(wanted=self._wanted(client)))

    def _wanted(self, client: Client) -> Wanted:
        terms = Terms(
            name=client.name,
            key=Key(f"k{client.number}"),
            priority=client.priority,
            wait=LONG,
            boundary=True,
        )
        return Wanted(terms=terms, mib=(MiB(client.mib),), cards=client.cards)

    def _call(self, client: Client, op: ClientOp) -> None:
        peer = Peer(connection=client.connection, process=client.process)
        self.mail["node"].append(Called(peer=peer, message_id=type(op).__name__, op=op))

    def _lose(self, client: Client, *, for_good: bool) -> None:
        """A client's line breaks; it comes back on a new one, or never."""
        self.mail["node"].append(PeerGone(connection=client.connection))
        client.lines += 1
        if for_good and client.lease is None:
            client.over = True
        else:
            self._come_back(client)

    def _come_back(self, client: Client) -> None:
        if client.lease is None:
            self._call(client, AskLease(wanted=self._wanted(client)))
            return
        attach = AttachLease(
            wanted=self._wanted(client),
            lease=client.lease,
            state="running",
            attempt=Attempt(client.attempt),
            members=frozenset(),
            ran_for=Seconds(1.0),
            scope=None,
        )
        self._call(client, attach)

    def _to_client(self, effect: Reply | Push) -> None:
        for client in self.clients:
            if client.over or effect.connection != client.connection:
                continue
            if isinstance(effect, Push):
                self._ordered(client, effect)
            elif effect.message_id == "AskLease" and effect.last:
                self._answered(client, effect)
            elif effect.message_id == "TellStarted" and effect.failure is not None:
                self._come_back(client)
            elif effect.message_id == "AttachLease" and effect.failure is None:
                assert isinstance(effect.data, dict)
                client.lease = LeaseId(effect.data["lease"])

    def _answered(self, client: Client, reply: Reply) -> None:
        client.ends += 1
        if reply.failure is not None:
            client.over = reply.failure.code.value != "no_journal"
            if not client.over:
                self._call(client, AskLease(wanted=self._wanted(client)))
            return
        assert isinstance(reply.data, dict)
        client.lease = LeaseId(reply.data["lease"])
        self.shared_grants += len(client.cards) > 1
        self.story.append(f"{self.now:.2f} {client.name} is granted {client.lease}")
        client.holds_until = self.now + self.rng.choice([0.0, 2.0, 20.0])
        started = TellStarted(lease=client.lease, members=frozenset(), scope=None)
        self._call(client, started)

    def _ordered(self, client: Client, push: Push) -> None:
        order = push.message
        if client.lease is None or order.order == "ping":
            return
        if order.order == "attach":
            self._come_back(client)
            return
        client.attempt = order.attempt
        heard = TellWord(
            lease=client.lease,
            attempt=Attempt(order.attempt),
            word=HolderWord.HEARD,
            why="",
        )
        self._call(client, heard)
        if order.order in {"drain", "stop"}:
            client.holds_until = min(client.holds_until, self.now + 1.0)

    def _act(self) -> None:
        """Whoever has held for long enough gives everything back."""
        for client in self.clients:
            if client.lease is not None and not client.over and self.now >= client.holds_until:
                self._call(client, GiveBack(lease=client.lease))
                self.story.append(f"{self.now:.2f} {client.name} gives {client.lease} back")
                client.over = True
                client.lease = None
                return

    # --- what must hold ---------------------------------------------------------------------

    def fail(self, why: str) -> None:
        told = "\n".join(self.story)
        raise AssertionError(f"seed {self.seed}, {self.now:.2f}s: {why}\n{told}")

    def look(self) -> None:
        """Nobody holds what somebody else has; nothing is granted to half of its cards."""
        held = [client.lease for client in self.clients if client.lease is not None]
        if len(set(held)) < len(held):
            self.fail(f"a lease is two clients': {held}")
        for name in self.cards:
            holders = [c for c in self.clients if c.lease is not None and name in c.cards]
            if sum(client.mib for client in holders) > CAPACITY:
                self.fail(f"{name} is granted to {[client.name for client in holders]} at once")
        if not any(self.mail.values()):
            self._look_at_rest()

    def _look_at_rest(self) -> None:
        for client in self.clients:
            if client.lease is None:
                continue
            for name in client.cards:
                if self.cards[name].lease(client.lease) is None:
                    self.fail(f"{client.name} holds {client.lease}, which is not on {name}")

    def calm(self) -> None:
        """Let everything go well until everybody has been served, or too much time has passed."""
        self.disk_full = False
        until = self.now + 2000.0
        while self.now < until and not all(client.over for client in self.clients):
            self.step(troubled=False)
        for client in self.clients:
            if not client.over:
                self.fail(f"{client.name} was never served: {self.node.requests}")
        for _ in range(200):
            self.pass_time(0.5)
            while any(self.mail.values()):
                self.deliver(next(role for role, mail in self.mail.items() if mail))
        for name, card in self.cards.items():
            left = (card.offers, card.queue, card.leases)
            if left != ((), (), ()):
                self.fail(f"{name} keeps {left} for nobody")
        if self.node.commits or self.node.requests or self.node.leases:
            self.fail(f"the node keeps {self.node.commits, self.node.requests, self.node.leases}")
