"""A status in the making: every card describes itself, and what they said is put together.

There is one at a time. Whoever asks while it is made gets the next one, which begins after that: so
it shows all that was done before it was asked for, and a crowd that asks costs the cards no more
than one.
"""

from typing import Final

from msgspec.structs import replace

from berth.actors.card.messages import Describe
from berth.actors.node.desk import Desk, with_item
from berth.actors.node.inbox import CardDescribed
from berth.actors.node.messages import Called, Reply
from berth.actors.node.state import Gathering
from berth.ids import Connection
from berth.units import Seconds, after, since
from berth.views import NodeView, Status
from berth.wire import PROTOCOL

GATHER_WITHIN: Final = Seconds(1.0)


def on_asked(desk: Desk, called: Called) -> None:
    """A client asks for the status."""
    asked = (*desk.node.status_asked, (called.peer.connection, called.message_id))
    desk.node = replace(desk.node, status_asked=asked)
    if desk.node.gathering is None:
        _begin(desk)


def _begin(desk: Desk) -> None:
    """Ask every card, for all who have asked so far."""
    call = desk.silent_call()
    gathering = Gathering(
        call=call, asked=desk.node.status_asked, answer_by=after(desk.now, GATHER_WITHIN)
    )
    desk.node = replace(desk.node, gathering=gathering, status_asked=())
    for card in desk.node.cards:
        desk.to_card(card.name, Describe(call=call))
    if not desk.node.cards:
        _show(desk, gathering)


def on_described(desk: Desk, event: CardDescribed) -> None:
    """A card has described itself; the last one completes the status."""
    gathering = desk.node.gathering
    if gathering is None or gathering.call != event.call:
        return
    gathering = replace(gathering, parts=with_item(gathering.parts, event.card, event))
    desk.node = replace(desk.node, gathering=gathering)
    if len(gathering.parts) == len(desk.node.cards):
        _show(desk, gathering)


def on_tick(desk: Desk) -> None:
    """Answer with what was said in time."""
    gathering = desk.node.gathering
    if gathering is not None and desk.now >= gathering.answer_by:
        _show(desk, gathering)


def lost(desk: Desk, connection: Connection) -> None:
    """A client is gone: it waits for no status any more."""
    asked = tuple(one for one in desk.node.status_asked if one[0] != connection)
    desk.node = replace(desk.node, status_asked=asked)


def _show(desk: Desk, gathering: Gathering) -> None:
    """Answer all who have asked with what the cards have said; begin the next one, if asked for."""
    order = [card.name for card in desk.node.cards if card.name in gathering.parts]
    parts = [gathering.parts[name].status for name in order]
    status = Status(
        v=PROTOCOL,
        node=NodeView(
            name=desk.node.name,
            version=desk.node.version,
            pid=desk.node.pid,
            uptime_s=round(since(desk.node.started, desk.now), 1),
        ),
        cards=tuple(part.card for part in parts),
        leases=tuple(lease for part in parts for lease in part.leases),
        waiting=tuple(waiter for part in parts for waiter in part.waiting),
        stowaways=tuple(stowaway for part in parts for stowaway in part.stowaways),
    )
    for connection, message_id in gathering.asked:
        desk.effects.append(Reply(connection=connection, message_id=message_id, data=status))
    desk.node = replace(desk.node, gathering=None)
    if desk.node.status_asked:
        _begin(desk)
