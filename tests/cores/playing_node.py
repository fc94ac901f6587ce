"""A node that is played with: clients by name, cards that answer when told to, time that passes.

Used by the tests of the node's core and by its properties.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from berth.actors.card.messages import CardInbox
from berth.actors.node.core import decide
from berth.actors.node.inbox import (
    CallDone,
    CallFailed,
    CallId,
    LeaseEnded,
    OrderGiven,
    RequestGranted,
    RequestRefused,
    RequestStands,
    ShareAccepted,
    ShareStands,
    Stand,
)
from berth.actors.node.messages import (
    AskLease,
    AttachLease,
    Called,
    ClientOp,
    ForCard,
    NodeEffect,
    NodeInbox,
    NodeTick,
    Peer,
    PeerGone,
    Push,
    Reply,
    Wanted,
)
from berth.actors.node.state import Node
from berth.errors import Code
from berth.ids import (
    Attempt,
    CardName,
    Connection,
    Key,
    LeaseId,
    ProcessId,
    RequestId,
    lease_of,
)
from berth.lease import Order, Priority, Terms
from berth.readings import CardIdentity
from berth.standing import Blocker
from berth.units import Instant, MiB, Seconds, after
from berth.wire import OrderMessage

GPU0 = CardIdentity(name=CardName("gpu0"), index=0, uuid="GPU-0", pci="0000:01:00.0")
GPU1 = CardIdentity(name=CardName("gpu1"), index=1, uuid="GPU-1", pci="0000:41:00.0", vendor="amd")

_OF_WANTED = frozenset({"mib", "cards", "waited", "numbered"})
_Message = TypeVar("_Message")


def wanted(name: str, **changes: Any) -> Wanted:
    """Return what a client wants; `changes` are of the terms, but for those of `Wanted`."""
    own = {key: changes.pop(key) for key in set(changes) & _OF_WANTED}
    own["mib"] = tuple(MiB(size) for size in own.get("mib", ()))
    priority = Priority[changes.pop("priority", "interactive").upper()]
    key = Key(changes.pop("key", ""))
    return Wanted(terms=Terms(name=name, key=key, priority=priority, **changes), **own)


@dataclass
class PlayedNode:
    """A node under play. `said` is all that it has said; nothing is answered by itself."""

    cards: tuple[CardIdentity, ...] = (GPU0, GPU1)
    now: Instant = Instant(1000.0)
    said: list[NodeEffect] = field(default_factory=list)
    processes: dict[str, ProcessId] = field(default_factory=dict)
    numbers: int = 0
    node: Node = field(init=False)

    def __post_init__(self) -> None:
        self.node = Node(name="box", version="0.1", pid=77, started=self.now, cards=self.cards)

    # --- what happens -----------------------------------------------------------------------

    def hear(self, event: NodeInbox) -> list[NodeEffect]:
        """Let the node hear an event; return what it says to it."""
        self.node, effects = decide(self.node, event, self.now)
        self.said.extend(effects)
        return list(effects)

    def calls(self, client: str, op: ClientOp) -> str:
        """Let a client call an operation; return the id that the client gave it."""
        self.numbers += 1
        message_id = str(self.numbers)
        peer = Peer(connection=connection_of(client), process=self.process(client))
        self.hear(Called(peer=peer, message_id=message_id, op=op))
        return message_id

    def process(self, client: str) -> ProcessId:
        return self.processes.setdefault(client, ProcessId(100 + len(self.processes), 1))

    def asks(self, client: str, name: str = "chat", **changes: Any) -> RequestId:
        """Let a client ask for a lease; return its request, empty when it was refused."""
        message_id = self.calls(client, AskLease(wanted=wanted(name, **changes)))
        progress = [r for r in self.replies(message_id) if not r.last]
        return RequestId(str(fields(progress[-1])["request"])) if progress else RequestId("")

    def stands(self, request: RequestId, why: str = "busy", *blockers: Blocker) -> None:
        """Let a card tell why a request waits."""
        card = self.node.requests[request].cards[0]
        stands = RequestStands(request=request, card=card, position=1, blockers=blockers, why=why)
        self.hear(stands)

    def grants(self, request: RequestId, card: CardIdentity = GPU0) -> LeaseId:
        """Let a card grant a request; return the lease."""
        lease = lease_of(request)
        self.hear(RequestGranted(request=request, lease=lease, cards=(card,)))
        return lease

    def holds(self, client: str, name: str = "chat", **changes: Any) -> LeaseId:
        """Let a client ask and be granted."""
        return self.grants(self.asks(client, name, **changes))

    def refuses(self, request: RequestId, code: Code = Code.WAIT_EXPIRED) -> None:
        """Let a card refuse a request."""
        message = "it was in somebody's way"
        self.hear(RequestRefused(request=request, code=code, message=message, waited_out=True))

    def ends(self, lease: LeaseId, card: str = "gpu0") -> None:
        """Let a lease leave its card's books."""
        self.hear(LeaseEnded(lease=lease, card=CardName(card)))

    def share(self, request: RequestId, card: str, stand: Stand) -> None:
        """Let a card tell how it stands to its share of a request."""
        self.hear(ShareStands(request=request, card=CardName(card), stand=stand))

    def accepts(self, request: RequestId, card: str, round_: int = 1) -> None:
        """Let a card keep its share free."""
        self.hear(
            ShareAccepted(
                request=request,
                card=CardName(card),
                round=round_,
                unexplained=MiB(0),
                avoided=False,
            )
        )

    def orders(
        self, lease: LeaseId, order: Order = Order.DRAIN, attempt: int = 1, card: str = "gpu0"
    ) -> None:
        """Let a card give the holder of a lease an order."""
        self.hear(
            OrderGiven(
                lease=lease,
                card=CardName(card),
                order=order,
                attempt=Attempt(attempt),
                grace=Seconds(10.0),
                why="for images",
            )
        )

    def attaches(
        self, client: str, name: str = "chat", lease: str | None = None, **changes: Any
    ) -> str:
        """Let a holder come back; return the id of its message."""
        state = changes.pop("state", "running")
        return self.calls(
            client,
            AttachLease(
                wanted=wanted(name, **changes),
                lease=None if lease is None else LeaseId(lease),
                state=state,
                attempt=Attempt(2),
                members=frozenset({ProcessId(500, 1)}),
                ran_for=Seconds(60.0),
                scope=None,
            ),
        )

    def is_done(self, call: CallId, lease: str | None = None, state: str = "running") -> None:
        """Let a card answer a call."""
        named = None if lease is None else LeaseId(lease)
        self.hear(CallDone(call=call, lease=named, state=state, card=GPU0))

    def fails(self, call: CallId, code: Code = Code.NOT_YOURS) -> None:
        """Let a card answer that a call cannot be done."""
        self.hear(CallFailed(call=call, code=code, message="no", hint="try another"))

    def leaves(self, client: str) -> None:
        """Let a client turn out to be gone."""
        self.hear(PeerGone(connection=connection_of(client)))

    def later(self, seconds: float, step: float = 0.5) -> list[NodeEffect]:
        """Let time pass, with its ticks; return what the node says meanwhile."""
        said: list[NodeEffect] = []
        ends = after(self.now, Seconds(seconds))
        while self.now < ends:
            self.now = after(self.now, Seconds(min(step, ends - self.now)))
            said += self.hear(NodeTick())
        return said

    # --- what is seen -----------------------------------------------------------------------

    @property
    def last_call(self) -> CallId:
        """Return the call that the node made last."""
        return CallId(number=self.node.last_call)

    def replies(self, message_id: str) -> list[Reply]:
        """Return all answers to a message so far, progress and end."""
        return [r for r in self.said if isinstance(r, Reply) and r.message_id == message_id]

    def answer(self, message_id: str) -> Reply | None:
        """Return the one final answer to a message, None while there is none."""
        final = [reply for reply in self.replies(message_id) if reply.last]
        assert len(final) <= 1, f"{message_id} was answered {len(final)} times"
        return final[0] if final else None

    def code(self, message_id: str) -> Code | None:
        """Return why a message was refused, None when it was not."""
        reply = self.answer(message_id)
        return None if reply is None or reply.failure is None else reply.failure.code

    def told(self, client: str) -> list[Reply | Push]:
        """Return all that a client was sent so far."""
        to = connection_of(client)
        return [e for e in self.said if isinstance(e, Reply | Push) and e.connection == to]

    def pushed(self, client: str) -> list[str]:
        """Return every order that a client was sent so far."""
        return [push.message.order for push in self.told(client) if isinstance(push, Push)]

    def heard(self, kind: type[_Message], card: str = "gpu0") -> list[_Message]:
        """Return all messages of a kind that a card was told so far."""
        return [message for message in self.to_card(card) if isinstance(message, kind)]

    def to_card(self, card: str = "gpu0") -> list[CardInbox]:
        """Return all that a card was told so far."""
        return [e.message for e in self.said if isinstance(e, ForCard) and e.card == card]


def connection_of(client: str) -> Connection:
    return Connection(client.encode())


def fields(reply: Reply | None) -> Mapping[str, object]:
    """Return the fields of an answer that has some."""
    assert reply is not None
    assert reply.failure is None, reply.failure
    assert isinstance(reply.data, Mapping)
    return reply.data


def pushed_message(effects: list[NodeEffect]) -> OrderMessage:
    """Return the one order among effects."""
    (push,) = [effect for effect in effects if isinstance(effect, Push)]
    return push.message
