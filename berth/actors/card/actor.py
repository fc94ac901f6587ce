"""The card's shell: passes on what its core decided."""

from typing import assert_never

from berth.actors.base import ActorDied, Address, BerthActor, Clock, Pong
from berth.actors.card.core import decide
from berth.actors.card.messages import CardEffect, CardInbox, SeekLease, SetPace
from berth.actors.card.recovery import watches
from berth.actors.card.state import Card
from berth.actors.journal.inbox import JournalInbox
from berth.actors.journal.messages import Record
from berth.actors.node.inbox import (
    CallDone,
    CallFailed,
    CardDescribed,
    LeaseEnded,
    OrderGiven,
    RequestGranted,
    RequestRefused,
    RequestStands,
    ShareAccepted,
    ShareDeclined,
    ShareInDoubt,
    ShareStands,
    Surveyed,
    ToNode,
)
from berth.actors.trees.messages import (
    EndTree,
    ForgetTree,
    KillTree,
    TellElsewhere,
    TreesInbox,
    WakeHolder,
    WatchTree,
)
from berth.errors import Code
from berth.probes.messages import ProbeInbox


class CardActor(BerthActor[CardInbox, Card, CardEffect]):
    """One GPU: its leases and its queue."""

    def __init__(
        self,
        *,
        card: Card,
        node: Address[ToNode],
        journal: Address[JournalInbox],
        probe: Address[ProbeInbox],
        trees: Address[TreesInbox],
        clock: Clock,
        supervisor: Address[ActorDied | Pong],
        incarnation: int = 0,
    ) -> None:
        super().__init__(
            role=f"card {card.name}",
            state=card,
            decide=decide,
            clock=clock,
            supervisor=supervisor,
            incarnation=incarnation,
        )
        self._node = node
        self._journal = journal
        self._probe = probe
        self._trees = trees

    def begin(self) -> None:
        """Have the holders that the card starts with watched."""
        for watch in watches(self.state):
            self._trees.tell(watch)
        self._trees.tell(TellElsewhere(card=self.state.name))

    def leave_out(self, message: CardInbox) -> None:
        """Refuse what has made this card fail twice."""
        why = f"this has made {self.state.name} fail twice, and is set aside; see the crash report"
        call = getattr(message, "call", None)
        if isinstance(message, SeekLease):
            refused = RequestRefused(request=message.request, code=Code.INTERNAL, message=why)
            self._node.tell(refused)
        elif call is not None:
            self._node.tell(CallFailed(call=call, code=Code.INTERNAL, message=why))

    def perform(self, effect: CardEffect) -> None:
        """Send an effect where it belongs."""
        match effect:
            case Record():
                self._journal.tell(effect)
            case SetPace():
                self._probe.tell(effect)
            case WatchTree() | ForgetTree() | WakeHolder() | EndTree() | KillTree():
                self._trees.tell(effect)
            case (
                RequestStands()
                | RequestGranted()
                | RequestRefused()
                | OrderGiven()
                | CallDone()
                | CallFailed()
                | LeaseEnded()
                | CardDescribed()
                | ShareStands()
                | ShareAccepted()
                | ShareDeclined()
                | ShareInDoubt()
                | Surveyed()
            ):
                self._node.tell(effect)
            case _:
                assert_never(effect)
