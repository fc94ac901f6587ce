"""A node of pure cores with a crowd that waits: what each decision of its actors costs.

No thread, no socket, no disk: the cores of the node and its cards tell each other through one
queue, a journal writes at once, and every engine does what it is told. What is timed is one call of
an actor's `decide`, in CPU time of this thread, so that what else the machine does is not in it.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Final

from berth.actors.card import core as card_core
from berth.actors.card.messages import CardEffect, CardRead, HolderWord, Tick
from berth.actors.card.state import Card
from berth.actors.journal.messages import Record
from berth.actors.node import core as node_core
from berth.actors.node.codec import encode_reply
from berth.actors.node.messages import (
    AskLease,
    Called,
    ClientOp,
    ForCard,
    GiveBack,
    NodeEffect,
    NodeTick,
    Peer,
    PeerGone,
    Push,
    Reply,
    ShowStatus,
    TellStarted,
    TellWord,
    Wanted,
    Withdraw,
)
from berth.actors.node.state import Node
from berth.ids import Attempt, CardName, Connection, Key, LeaseId, ProcessId, RequestId
from berth.lease import Priority, Releasing, Terms
from berth.readings import CardIdentity, GpuProcess, Reading
from berth.units import Instant, MiB, Seconds
from berth.views import Status

CARDS: Final = 16
TOTAL: Final = MiB(24576)
_PRIORITIES: Final = (
    Priority.INTERACTIVE,
    Priority.BATCH,
    Priority.INTERACTIVE,
    Priority.FOREGROUND,
    Priority.BACKGROUND,
)
_EVERYBODY_WAITS: Final = Seconds(1e6)


class Crowd:
    """So many waiters on the cards of one node; `one_card`: all of them on the first."""

    def __init__(self, waiters: int, *, one_card: bool = False) -> None:
        identities = tuple(
            CardIdentity(name=CardName(f"gpu{index}"), index=index, uuid=f"GPU-{index}")
            for index in range(CARDS)
        )
        self.now = Instant(1000.0)
        self.node = Node(name="crowd", version="0", pid=1, started=self.now, cards=identities)
        self.cards = {one.name: Card(identity=one) for one in identities}
        self.times: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.granted = 0
        self._one_card = one_card
        self._queue: deque[tuple[str, Any]] = deque()
        self._asked = 0
        self._shown: list[Status] = []
        self.read_all()
        for name in self.cards:
            self._ask((name,), mib=20000)
        for _ in range(waiters):
            self.ask()
        self.times.clear()

    # --- what befalls it ------------------------------------------------------------------------

    def ask(self) -> None:
        """One more asks: now and then the whole card, or two of them."""
        number = self._asked
        on = 0 if self._one_card else number % CARDS
        cards = [f"gpu{on}"]
        if number % 40 == 0:
            cards.append(f"gpu{(on + 1) % CARDS}")
        self._ask(tuple(cards), mib=None if number % 10 == 0 else 2000 + 997 * (number % 19))

    def _ask(self, cards: tuple[str, ...], mib: int | None) -> None:
        self._asked += 1
        name = f"engine-{self._asked}"
        terms = Terms(
            name=name,
            key=Key(f"key-{name}"),
            priority=_PRIORITIES[self._asked % len(_PRIORITIES)],
            wait=_EVERYBODY_WAITS,
            boundary=self._asked % 4 != 0,
            wrapped=True,
        )
        sizes = () if mib is None else (MiB(mib),)
        wanted = Wanted(terms=terms, mib=sizes, cards=cards)
        self._call(self._asked, AskLease(wanted=wanted))

    def _call(self, client: int, op: ClientOp) -> None:
        peer = Peer(connection=_line(client), process=ProcessId(1000 + client, 1))
        self.tell("node", Called(peer=peer, message_id="1", op=op))
        self.settle()

    def live(self, number: int) -> float:
        """Live through half a second: some leave, as many come. Return what a status takes."""
        waiting = len(self.node.requests)
        self.pass_time(0.5)
        if number % 4 == 0:
            self.read_all()
        if number % 10 == 5:
            self._finish()
            self.pass_time(0.01)
            self.read_all()
        for share in (2, 3, 5):
            self._withdraw(share)
            self._hang_up(share)
        while len(self.node.requests) < waiting:
            self.ask()
        return self.status()

    def _withdraw(self, share: int) -> None:
        """One of those waiting, such a share from the front, leaves."""
        waiting = list(self.node.requests.items())
        request, party = waiting[len(waiting) // share]
        self._call(party.number, Withdraw(request=RequestId(request)))

    def _hang_up(self, share: int) -> None:
        """One of those waiting is gone without a word."""
        waiting = list(self.node.requests.values())
        self.tell("node", PeerGone(connection=_line(waiting[len(waiting) // share].number)))
        self.settle()

    def _finish(self) -> None:
        """A holder gives its lease back, on each card that has one."""
        holders = {lease: party.number for lease, party in self.node.leases.items()}
        for lease, number in holders.items():
            if lease in self.node.leases:
                self._call(number, GiveBack(lease=LeaseId(lease)))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and have everybody look at the clock."""
        self.now = Instant(self.now + seconds)
        for name in self.cards:
            self.tell(f"card {name}", Tick())
        self.tell("node", NodeTick())
        self.settle()

    def read_all(self) -> None:
        """Read every card: each engine holds what it asked for, one that ended holds nothing."""
        for name, card in self.cards.items():
            self.tell(f"card {name}", CardRead(reading=self._reading(card)))
        self.settle()

    def _reading(self, card: Card) -> Reading:
        rows = [
            GpuProcess(
                process=lease.held.holder,
                name=lease.name,
                used=MiB(lease.held.ask if isinstance(lease.held.ask, int) else 12000),
                ancestors=(),
            )
            for lease in card.leases
            if lease.held.holder is not None and not isinstance(lease, Releasing)
        ]
        used = MiB(sum(row.used for row in rows if isinstance(row.used, int)))
        return Reading(
            taken=self.now, total=TOTAL, used=used, reserved=MiB(0), processes=tuple(rows)
        )

    def status(self) -> float:
        """Return the CPU time of a whole status: every card described, gathered, made JSON."""
        begun = time.thread_time()
        self._call(0, ShowStatus())
        encode_reply(Reply(connection=_line(0), message_id="1", data=self._shown.pop()))
        return time.thread_time() - begun

    # --- who hears whom -------------------------------------------------------------------------

    def tell(self, role: str, message: Any) -> None:
        """Put a message into the queue."""
        self._queue.append((role, message))

    def settle(self) -> None:
        """Let everybody hear what there is to hear."""
        while self._queue:
            role, message = self._queue.popleft()
            if role == "node":
                self.node, effects = self._timed(role, node_core.decide, self.node, message)
            else:
                name = CardName(role.removeprefix("card "))
                decide, before = card_core.decide, self.cards[name]
                self.cards[name], effects = self._timed("card", decide, before, message)
            for effect in effects:
                self._perform(effect)

    def _timed(
        self, actor: str, decide: Callable[[Any, Any, Instant], Any], state: Any, message: Any
    ) -> Any:
        begun = time.thread_time()
        decided = decide(state, message, self.now)
        took = time.thread_time() - begun
        said = message.op if isinstance(message, Called) else message
        self.times[actor, type(said).__name__].append(took)
        return decided

    def _perform(self, effect: NodeEffect | CardEffect) -> None:
        match effect:
            case Record():
                for rider in effect.then:
                    self.tell("node", rider)
            case ForCard():
                self.tell(f"card {effect.card}", effect.message)
            case Reply():
                self._hear(effect)
            case Push() if effect.message.order == "drain":
                self._obey(effect)
            case _ if type(effect).__module__ == "berth.actors.node.inbox":
                self.tell("node", effect)
            case _:
                pass

    def _hear(self, reply: Reply) -> None:
        """Start what was granted."""
        if isinstance(reply.data, Status):
            self._shown.append(reply.data)
        elif reply.last and reply.data and reply.data.get("cards") and "start_by" in reply.data:
            self.granted += 1
            number = int(reply.connection)
            members = frozenset({ProcessId(1000 + number, 1)})
            lease = LeaseId(str(reply.data["lease"]))
            self._said(number, TellStarted(lease=lease, members=members, scope=None))

    def _obey(self, push: Push) -> None:
        """Finish when told to; the next reading shows the memory free."""
        number = int(push.connection)
        lease, attempt = LeaseId(push.message.lease), Attempt(push.message.attempt)
        for word in (HolderWord.HEARD, HolderWord.BOUNDARY, HolderWord.RELEASED):
            self._said(number, TellWord(lease=lease, attempt=attempt, word=word, why=""))

    def _said(self, client: int, op: ClientOp) -> None:
        peer = Peer(connection=_line(client), process=ProcessId(1000 + client, 1))
        self.tell("node", Called(peer=peer, message_id="2", op=op))


def _line(client: int) -> Connection:
    return Connection(str(client).encode())
