"""Events that clients ask for: read from the journal one request after the other.

The journal writes grants; whoever reads much of it must not keep it from that for long. So it has
one of these to do at a time, and what is granted meanwhile comes in between.
"""

from msgspec.structs import replace

from berth.actors.journal.messages import ReadEvents
from berth.actors.node.desk import Desk, without_item
from berth.actors.node.messages import Called, EventsRead, ShowEvents


def on_asked(desk: Desk, called: Called, op: ShowEvents) -> None:
    """A client asks for events."""
    call = desk.call(called)
    read = ReadEvents(call=call, after_seq=op.after_seq, within=op.within, limit=op.limit)
    desk.node = replace(desk.node, reads=(*desk.node.reads, read))
    if len(desk.node.reads) == 1:
        desk.effects.append(read)


def on_read(desk: Desk, event: EventsRead) -> None:
    """The journal has read what was asked for: the next one's turn."""
    calling = desk.node.calls.get(event.call)
    if calling is not None:
        desk.node = replace(desk.node, calls=without_item(desk.node.calls, event.call))
        desk.answer(calling, {"events": [told.flat() for told in event.events]})
    _go_on(desk)


def on_tick(desk: Desk) -> None:
    """Do not wait for what was answered as failed."""
    _go_on(desk)


def _go_on(desk: Desk) -> None:
    """Have the first read that somebody waits for."""
    reads = tuple(read for read in desk.node.reads if read.call in desk.node.calls)
    if reads and reads[:1] != desk.node.reads[:1]:
        desk.effects.append(reads[0])
    desk.node = replace(desk.node, reads=reads)
