"""Theory of operation of the node.

The node is the edge behind the socket. It owns who asked what over which connection, the numbers of
requests and leases, and which card a request goes to. It decides nothing about memory: that is the
cards'. It never waits: what a card or the journal must answer is noted, with a deadline.

A client's operation goes one of four ways:

 1. Answered at once: `hello`, `card.list`, and what can be refused without a card.
 2. Passed on as a *call*; the `CallDone` or `CallFailed` that comes back is the answer. None
    within 5 s is answered as a failure.
 3. Gathered from all cards (`status`). What has not come within 1 s is left out.
 4. A request for a lease. It goes to its card and ends there, in exactly one of granted, refused
    or withdrawn. Until then its client hears where it stands: when that changes, and every 5 s.
    A client that cannot be reached, or whose process has ended, has withdrawn.

A request is known by its client's own key. Sent again with the same key (the client was cut off, or
berthd was restarted) it finds its place in the queue or its lease, and never makes a second one.

Holders hear a ping every 5 s. One that cannot be reached keeps its lease: its process counts, and
the trees actor watches that.

Requests and names are in `requests.py`, holds in `holds.py`, which card takes a request for any in
`choice.py`, the agreement on several cards in `agreement.py`, holders that come back in
`attaching.py`, what clients hear unasked in `telling.py`, operations that cards must answer in
`calls.py`, the making of answers in `desk.py`.
"""

from typing import Final, assert_never

from msgspec.structs import replace

from berth.actors.card.messages import (
    CardInbox,
    CloseCard,
    HolderAnswered,
    HolderStarted,
    ReclaimLease,
    ReleaseLease,
    StopLease,
)
from berth.actors.node import (
    agreement,
    attaching,
    calls,
    choice,
    confirming,
    holds,
    reading,
    requests,
    status,
    telling,
)
from berth.actors.node.desk import Desk
from berth.actors.node.inbox import (
    CallDone,
    CallFailed,
    CallId,
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
)
from berth.actors.node.messages import (
    AskLease,
    AttachLease,
    Called,
    CardRestarted,
    CloseNode,
    EventsRead,
    EventTold,
    Failure,
    GiveBack,
    ListCards,
    NodeClosed,
    NodeEffect,
    NodeInbox,
    NodeTick,
    PeerGone,
    Pong,
    Publish,
    Reclaim,
    ReleaseHolds,
    ReplyData,
    SayHello,
    ShowEvents,
    ShowStatus,
    SocketDied,
    Stop,
    TakeHold,
    TellStarted,
    TellWord,
    Withdraw,
)
from berth.actors.node.state import Node
from berth.errors import BerthBug, Code
from berth.units import Instant, Seconds
from berth.wire import PROTOCOL

HEARTBEAT: Final = Seconds(5.0)


def decide(node: Node, event: NodeInbox, now: Instant) -> tuple[Node, tuple[NodeEffect, ...]]:
    """Return the node after `event`, and what to tell whom."""
    desk = Desk(node, now)
    match event:
        case Called():
            _on_called(desk, event)
        case PeerGone():
            _on_peer_gone(desk, event)
        case RequestStands():
            requests.on_stands(desk, event)
        case RequestGranted():
            requests.on_granted(desk, event)
        case RequestRefused():
            requests.on_refused(desk, event)
        case OrderGiven():
            telling.on_order(desk, event)
        case LeaseEnded():
            requests.on_lease_ended(desk, event)
        case CallDone():
            calls.on_done(desk, event)
        case CallFailed():
            calls.on_failed(desk, event)
        case CardDescribed():
            status.on_described(desk, event)
        case EventsRead():
            reading.on_read(desk, event)
        case EventTold():
            desk.effects.append(Publish(event=event.event))
        case CardRestarted():
            telling.ask_again(desk, event.card)
            agreement.start_over(desk, event.card)
        case ShareStands() | ShareAccepted() | ShareDeclined() | ShareInDoubt():
            agreement.take(desk, event)
        case Surveyed():
            _refuse(desk, choice.on_surveyed(desk, event))
        case SocketDied():
            raise BerthBug(f"the socket thread died: {event.cause}")
        case CloseNode():
            desk.node = replace(desk.node, closing=True)
            for card in desk.node.cards:
                desk.to_card(card.name, CloseCard())
        case NodeTick():
            _on_tick(desk)
        case _:
            assert_never(event)
    if desk.node.closing and not desk.node.closed and not desk.node.requests:
        desk.node = replace(desk.node, closed=True)
        desk.effects.append(NodeClosed())
    return desk.finish()


def _on_called(desk: Desk, called: Called) -> None:
    op = called.op
    match op:
        case SayHello():
            desk.reply(called, _hello(desk.node))
        case ListCards():
            cards = [requests.card_grant(card) for card in desk.node.cards]
            desk.reply(called, {"cards": cards})
        case ShowStatus():
            status.on_asked(desk, called)
        case ShowEvents():
            reading.on_asked(desk, called, op)
        case AskLease():
            requests.on_ask(desk, called, op.wanted)
        case AttachLease():
            attaching.on_attach(desk, called, op)
        case TellStarted() | TellWord() | GiveBack():
            _from_holder(desk, called, op)
        case Withdraw():
            requests.on_withdraw(desk, called, op)
        case Stop():
            _on_stop(desk, called, op)
        case TakeHold():
            holds.on_take(desk, called, op)
        case ReleaseHolds():
            holds.on_release(desk, called, op)
        case Reclaim():
            _on_reclaim(desk, called, op)
        case Pong():
            desk.reply(called, {})
        case _:
            assert_never(op)


def _hello(node: Node) -> ReplyData:
    return {"version": node.version, "protocol": PROTOCOL, "pid": node.pid, "node": node.name}


def _from_holder(desk: Desk, called: Called, op: TellStarted | TellWord | GiveBack) -> None:
    """Pass a holder's word to its card."""
    peer = called.peer.process

    def message(call: CallId) -> CardInbox:
        match op:
            case TellStarted():
                return HolderStarted(
                    call=call, lease=op.lease, peer=peer, members=op.members, scope=op.scope
                )
            case GiveBack():
                return ReleaseLease(call=call, lease=op.lease, peer=peer)
            case TellWord():
                return HolderAnswered(
                    call=call,
                    lease=op.lease,
                    peer=peer,
                    attempt=op.attempt,
                    word=op.word,
                    why=op.why,
                    in_flight=op.in_flight,
                )

    calls.pass_on(desk, called, op.lease, message)


def _on_stop(desk: Desk, called: Called, op: Stop) -> None:
    """Stop whatever goes by that name: a lease at its card, a waiter at once."""
    waiting, leases = desk.node.named(op.target)
    if not waiting and not leases:
        hint = "see berth status"
        desk.refuse(called, Code.NOT_FOUND, f"nothing here is called {op.target}", hint)
        return
    for request in waiting:
        party = desk.node.requests[request]
        requests.withdraw(desk, request, "stopped by a person")
        failure = Failure(code=Code.WITHDRAWN, message="withdrawn: stopped by a person")
        desk.answer(party, None, failure)
    for lease in leases[:-1]:
        for card in desk.node.leases[lease].cards:
            if desk.node.governs(card):
                stop = StopLease(call=desk.silent_call(), lease=lease, at_once=op.at_once)
                desk.to_card(card, stop)
    if not leases:
        desk.reply(called, {"stopped": [*waiting]})
        return
    last = leases[-1]
    calls.pass_on(
        desk, called, last, lambda call: StopLease(call=call, lease=last, at_once=op.at_once)
    )


def _on_reclaim(desk: Desk, called: Called, op: Reclaim) -> None:
    """Have the cards end what is left of that lease, or of all leases of that name."""
    _, leases = desk.node.named(op.target)
    if not leases:
        hint = "see berth status"
        desk.refuse(called, Code.NOT_FOUND, f"there is no lease called {op.target}", hint)
        return
    for lease in leases[:-1]:
        for card in desk.node.leases[lease].cards:
            if desk.node.governs(card):
                desk.to_card(card, ReclaimLease(call=desk.silent_call(), lease=lease))
    last = leases[-1]
    calls.pass_on(desk, called, last, lambda call: ReclaimLease(call=call, lease=last))


# --- answers that come back ---------------------------------------------------------------------


def _refuse(desk: Desk, *refused: RequestRefused | None) -> None:
    for event in refused:
        if event is not None:
            requests.on_refused(desk, event)


# --- time, and clients that are gone --------------------------------------------------------------


def _on_peer_gone(desk: Desk, event: PeerGone) -> None:
    requests.lost(desk, event.connection)
    calls.lost(desk, event.connection)
    status.lost(desk, event.connection)


def _on_tick(desk: Desk) -> None:
    status.on_tick(desk)
    calls.on_tick(desk)
    reading.on_tick(desk)
    agreement.on_tick(desk)
    confirming.on_tick(desk)
    _refuse(desk, *choice.on_tick(desk))
    telling.send_heartbeats(desk, HEARTBEAT)
