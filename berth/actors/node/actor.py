"""The node's shell: passes on what its core decided."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from berth.actors.base import ActorDied, Address, BerthActor, Clock, Pong
from berth.actors.card.messages import CardInbox
from berth.actors.journal.inbox import JournalInbox
from berth.actors.journal.messages import ReadEvents, Record
from berth.actors.node.core import decide
from berth.actors.node.messages import (
    Called,
    Failure,
    ForCard,
    NodeClosed,
    NodeEffect,
    NodeInbox,
    Publish,
    Push,
    Reply,
)
from berth.actors.node.socket import CloseSocket, SocketThread
from berth.actors.node.state import Node
from berth.errors import Code
from berth.ids import CardName
from berth.units import Seconds

CLOSE_WITHIN: Final = Seconds(2.0)
"""How long the socket thread may take to send what is waiting."""


@dataclass
class Given:
    """The last numbers that the nodes of one berthd have given; they outlive the node."""

    number: int = 0
    call: int = 0


class NodeActor(BerthActor[NodeInbox, Node, NodeEffect]):
    """The edge behind the socket."""

    def __init__(
        self,
        *,
        node: Node,
        cards: Mapping[CardName, Address[CardInbox]],
        journal: Address[JournalInbox],
        socket: Path,
        on_closed: Callable[[], None],
        given: Given,
        clock: Clock,
        supervisor: Address[ActorDied | Pong],
        incarnation: int = 0,
    ) -> None:
        super().__init__(
            role="node",
            state=node,
            decide=decide,
            clock=clock,
            supervisor=supervisor,
            incarnation=incarnation,
        )
        self._cards = cards
        self._journal = journal
        self._path = socket
        self._on_closed = on_closed
        self._given = given
        self._socket: SocketThread | None = None

    def begin(self) -> None:
        """Open the door."""
        self._socket = SocketThread(self._path, self.actor_ref)
        self._socket.start()

    def end(self) -> None:
        """Close the door, once what is waiting has gone out."""
        if self._socket is not None:
            self._socket.tell(CloseSocket())
            self._socket.join(timeout=CLOSE_WITHIN)

    def hear(self, message: NodeInbox) -> None:
        """Take one event through the core; the door may tell another in place of a client's."""
        super().hear(message)
        if isinstance(message, Called) and self._socket is not None:
            self._socket.handled()

    def leave_out(self, message: NodeInbox) -> None:
        """Refuse what has made the node fail twice."""
        if isinstance(message, Called) and self._socket is not None:
            why = "this has made berthd's node fail twice, and is set aside; see the crash report"
            failure = Failure(code=Code.INTERNAL, message=why)
            connection, message_id = message.peer.connection, message.message_id
            self._socket.tell(Reply(connection=connection, message_id=message_id, failure=failure))
            self._socket.handled()

    def perform(self, effect: NodeEffect) -> None:
        """Send an effect where it belongs."""
        self._given.number, self._given.call = self.state.last_number, self.state.last_call
        match effect:
            case Reply() | Push() | Publish():
                if self._socket is not None:
                    self._socket.tell(effect)
            case ForCard():
                self._cards[effect.card].tell(effect.message)
            case Record() | ReadEvents():
                self._journal.tell(effect)
            case NodeClosed():
                self._on_closed()
            case _:
                assert_never(effect)
