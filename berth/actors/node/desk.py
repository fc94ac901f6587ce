"""One decision of the node in the making: the node as it changes, and what is to be told."""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from berth.actors.card.messages import CardInbox
from berth.actors.node.inbox import CallId
from berth.actors.node.messages import (
    Called,
    Failure,
    ForCard,
    NodeEffect,
    Push,
    Reply,
    ReplyData,
)
from berth.actors.node.state import Calling, Confirming, Holding, Node, Party
from berth.cards import find_card, known_cards, no_card
from berth.errors import Code
from berth.ids import CardName, Connection
from berth.readings import CardIdentity
from berth.units import Instant, Seconds, after
from berth.wire import OrderMessage

ANSWER_WITHIN: Final = Seconds(5.0)
"""How long a card or the journal may take to answer an operation."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class Desk(msgspec.Struct):
    """Collects what one event changes and causes."""

    node: Node
    now: Instant
    effects: list[NodeEffect] = msgspec.field(default_factory=list)
    _told: set[Connection] = msgspec.field(default_factory=set)

    def finish(self) -> tuple[Node, tuple[NodeEffect, ...]]:
        """Return the node and what to tell; who has heard something by that is noted at once."""
        if self._told:
            told = {**self.node.told, **dict.fromkeys(self._told, self.now)}
            self.node = replace(self.node, told=told)
        return self.node, tuple(self.effects)

    def reply(self, called: Called, data: ReplyData) -> None:
        """Answer an operation, for good."""
        self.effects.append(
            Reply(connection=called.peer.connection, message_id=called.message_id, data=data)
        )

    def refuse(self, called: Called, code: Code, message: str, hint: str = "") -> None:
        """Answer an operation that cannot be done."""
        self.effects.append(
            Reply(
                connection=called.peer.connection,
                message_id=called.message_id,
                failure=Failure(code=code, message=message, hint=hint),
            )
        )

    def card_named(self, called: Called, text: str) -> CardIdentity | None:
        """Return the card that a client means; tell it where there is none of that name (M1)."""
        card = find_card(self.node.cards, text)
        if card is None:
            hint = f"there is {known_cards(self.node.cards)}"
            self.refuse(called, Code.NO_CARD, no_card(text), hint)
        return card

    def has_cards(self, called: Called) -> bool:
        """Tell whether berthd governs a card at all; a client hears it where it does not."""
        if not self.node.cards:
            hint = "see berth daemon --gpu"
            self.refuse(called, Code.NO_CARD, "berthd governs no card", hint)
        return bool(self.node.cards)

    def answer(
        self, party: Party | Calling | Holding, data: ReplyData, failure: Failure | None = None
    ) -> None:
        """Answer whoever is behind a request or a call, if it is still there."""
        self._say(party, data, failure, last=True)

    def progress(self, party: Party, data: ReplyData) -> None:
        """Tell a waiting client where it stands."""
        self._say(party, data, None, last=False)

    def _say(
        self,
        party: Party | Calling | Holding,
        data: ReplyData,
        failure: Failure | None,
        *,
        last: bool,
    ) -> None:
        if party.connection is None:
            return
        self.note_told(party.connection)
        self.effects.append(
            Reply(
                connection=party.connection,
                message_id=party.message_id,
                data=data,
                failure=failure,
                last=last,
            )
        )

    def push(self, connection: Connection, message: OrderMessage) -> None:
        """Send a holder an order."""
        self.note_told(connection)
        self.effects.append(Push(connection=connection, message=message))

    def to_card(self, card: CardName, message: CardInbox) -> None:
        """Tell a card something."""
        self.effects.append(ForCard(card=card, message=message))

    def call(
        self,
        called: Called,
        cards: tuple[CardName, ...] = (),
        attaching: Party | None = None,
        confirming: Confirming | None = None,
    ) -> CallId:
        """Note an operation that somebody else will answer: every one of the cards, or another."""
        call = CallId(number=self.node.last_call + 1)
        calling = Calling(
            connection=called.peer.connection,
            message_id=called.message_id,
            answer_by=after(self.now, ANSWER_WITHIN),
            cards=cards,
            attaching=attaching,
            confirming=confirming,
        )
        self.node = replace(
            self.node,
            last_call=call.number,
            calls=with_item(self.node.calls, call, calling),
        )
        return call

    def silent_call(self) -> CallId:
        """Return a call that nobody waits for."""
        self.node = replace(self.node, last_call=self.node.last_call + 1)
        return CallId(number=self.node.last_call)

    def next_number(self) -> int:
        """Return the number of a new request, and of the lease it may become."""
        self.node = replace(self.node, last_number=self.node.last_number + 1)
        return self.node.last_number

    def note_told(self, connection: Connection) -> None:
        """Note that a client has heard from berthd just now."""
        self._told.add(connection)

    def told_now(self, connection: Connection | None) -> bool:
        """Tell whether a client has heard from berthd in this very decision."""
        return connection in self._told


def with_item(items: Mapping[_K, _V], key: _K, value: _V) -> Mapping[_K, _V]:
    """Return the mapping with one item set."""
    return {**items, key: value}


def without_item(items: Mapping[_K, _V], key: _K) -> Mapping[_K, _V]:
    """Return the mapping without one item."""
    rest = dict(items)
    rest.pop(key, None)
    return rest
