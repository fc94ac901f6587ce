"""The one translator between the wire's JSON and what the actors say to each other."""

import msgspec

from berth.actors.card.messages import HolderWord
from berth.actors.node.messages import (
    AskLease,
    AttachLease,
    ClientOp,
    GiveBack,
    ListCards,
    Pong,
    Reclaim,
    ReleaseHolds,
    Reply,
    SayHello,
    ShowEvents,
    ShowStatus,
    Stop,
    TakeHold,
    TellStarted,
    TellWord,
    Wanted,
    Withdraw,
)
from berth.errors import Code
from berth.ids import Attempt, Key, LeaseId, ProcessId, RequestId
from berth.lease import Priority, Terms
from berth.probes.procfs import identify, is_or_descends
from berth.standing import count
from berth.units import MiB, Seconds, show_line
from berth.wire import (
    ONE_LINE,
    PROTOCOL,
    Answer,
    AnyOp,
    AttachOp,
    CardListOp,
    ErrorBody,
    EventsOp,
    HelloOp,
    HoldOp,
    LeaseAnswerOp,
    LeaseReleaseOp,
    LeaseRequestOp,
    LeaseStartedOp,
    LeaseTerms,
    PongOp,
    ReclaimOp,
    ReleaseOp,
    StatusOp,
    StopOp,
    WithdrawOp,
)

_DECODER = msgspec.json.Decoder(AnyOp)
_ENCODER = msgspec.json.Encoder()
_NOT_ONE_LINE = f"`str` matching regex {ONE_LINE!r}"
_ATTACH_STATES = frozenset({"starting", "running", "draining"})


class _Envelope(msgspec.Struct):
    """As much of a request as is needed to answer that it is wrong."""

    v: object = None
    id: object = ""
    op: object = ""


class BadRequest(Exception):  # noqa: N818 -- it is the client's error, and an answer to it
    """A message that cannot be taken. `message_id` is the client's own where it could be read."""

    def __init__(self, message_id: str, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message_id = message_id
        self.code = code
        self.message = message
        self.hint = hint


def decode(frame: bytes | memoryview, peer: ProcessId) -> tuple[str, ClientOp]:
    """Return the client's own id for its operation, and the operation.

    Raises:
        BadRequest: it is no JSON, of another version, or not as the protocol says; or it names
            processes that are not the peer's.
    """
    try:
        op: AnyOp = _DECODER.decode(frame)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _what_is_wrong(frame, error) from None
    if op.v != PROTOCOL:
        raise _other_version(op.id, op.v)
    return op.id, _translate(op, peer)


def _what_is_wrong(frame: bytes | memoryview, error: Exception) -> BadRequest:
    try:
        envelope = msgspec.json.decode(frame, type=_Envelope)
    except (msgspec.MsgspecError, RecursionError):
        return BadRequest("", Code.BAD_REQUEST, f"not a JSON object: {error}")
    message_id = envelope.id if isinstance(envelope.id, str) else ""
    if envelope.v != PROTOCOL:
        return _other_version(message_id, envelope.v)
    why = str(error).replace(_NOT_ONE_LINE, "one line without control characters")
    return BadRequest(message_id, Code.BAD_REQUEST, f"op {envelope.op!r}: {why}")


def _other_version(message_id: str, version: object) -> BadRequest:
    message = f"berthd speaks protocol {PROTOCOL}, this client {version!r}"
    return BadRequest(message_id, Code.BAD_REQUEST, message, "update the older of the two")


def _translate(op: AnyOp, peer: ProcessId) -> ClientOp:
    match op:
        case HelloOp():
            return SayHello()
        case StatusOp():
            return ShowStatus()
        case EventsOp():
            within = None if op.last_s is None else Seconds(op.last_s)
            return ShowEvents(after_seq=op.since, within=within, limit=op.limit)
        case CardListOp():
            return ListCards()
        case LeaseRequestOp():
            return AskLease(wanted=_wanted(op))
        case AttachOp():
            return _attach(op, peer)
        case LeaseStartedOp():
            return TellStarted(
                lease=LeaseId(op.lease), members=_own(op.id, op.pids, peer), scope=op.scope
            )
        case LeaseAnswerOp():
            return TellWord(
                lease=LeaseId(op.lease),
                attempt=Attempt(op.attempt),
                word=_word(op),
                why=show_line(op.why),
                in_flight=op.in_flight,
            )
        case LeaseReleaseOp():
            return GiveBack(lease=LeaseId(op.lease))
        case WithdrawOp():
            return Withdraw(request=RequestId(op.request))
        case StopOp():
            target = op.lease or op.name
            if not target:
                raise BadRequest(op.id, Code.BAD_REQUEST, "stop: name a lease or an engine")
            return Stop(target=target, at_once=op.now)
        case HoldOp():
            return _hold(op)
        case ReleaseOp():
            cards = () if op.cards is None or op.all else _named(op.cards)
            return ReleaseHolds(
                target="" if op.lease is None or op.all else op.lease,
                cards=() if cards == ("all",) else cards,
            )
        case ReclaimOp():
            target = op.lease or op.name
            if not target:
                raise BadRequest(op.id, Code.BAD_REQUEST, "reclaim: name a lease or an engine")
            return Reclaim(target=target)
        case PongOp():
            return Pong()


def _hold(op: HoldOp) -> TakeHold:
    cards = () if op.cards is None else _named(op.cards)
    everything = op.all or cards == ("all",)
    return TakeHold(
        cards=() if everything else cards,
        everything=everything,
        mib=() if op.needs_mib is None else (MiB(op.needs_mib),),
        hold_for=None if op.for_s is None else Seconds(op.for_s),
        reason=op.reason,
        patient=op.wait,
    )


def _named(cards: list[str] | str) -> tuple[str, ...]:
    return (cards,) if isinstance(cards, str) else tuple(cards)


def _word(op: LeaseAnswerOp) -> HolderWord:
    try:
        return HolderWord(op.state)
    except ValueError:
        known = ", ".join(word.value for word in HolderWord)
        message = f"lease.answer: state {op.state!r} is none of {known}"
        raise BadRequest(op.id, Code.BAD_REQUEST, message) from None


def _wanted(op: LeaseTerms) -> Wanted:
    needs = op.needs_mib
    sizes = () if needs is None else tuple(needs) if isinstance(needs, list) else (needs,)
    cards = _cards(op)
    if len(sizes) > 1 and len(sizes) != len(cards):
        on = count(len(cards) or 1, "card")
        message = f"needs_mib has {len(sizes)} figures for {on}; give one for each, or one for all"
        raise BadRequest(op.id, Code.BAD_REQUEST, message)
    return Wanted(
        terms=_terms(op),
        mib=tuple(MiB(size) for size in sizes),
        cards=cards,
        waited=Seconds(op.waited_s),
        numbered=op.numbered,
    )


def _cards(op: LeaseTerms) -> tuple[str, ...]:
    return () if op.cards is None else _named(op.cards)


def _terms(op: LeaseTerms) -> Terms:
    return Terms(
        name=op.name,
        key=Key(op.key),
        priority=_priority(op),
        wait=Seconds(op.wait_s),
        min_turn=Seconds(op.min_turn_s),
        drain_wait=Seconds(op.drain_wait_s),
        grace=Seconds(op.grace_s),
        start_limit=Seconds(op.start_limit_s),
        pinned=op.pinned,
        boundary=op.boundary,
        fail_closed=op.fail_closed,
        wrapped=op.wrapped,
        exclusive=op.exclusive,
        group=op.group,
        containers=tuple(op.containers),
    )


_PRIORITIES = {p.word: p for p in Priority if p is not Priority.HOLD}


def _priority(op: LeaseTerms) -> Priority:
    if op.priority is None:
        return Priority.INTERACTIVE if op.boundary else Priority.BATCH
    try:
        return _PRIORITIES[op.priority]
    except KeyError:
        known = ", ".join(_PRIORITIES)
        message = f"priority {op.priority!r} is none of {known}"
        raise BadRequest(op.id, Code.BAD_REQUEST, message) from None


def _attach(op: AttachOp, peer: ProcessId) -> AttachLease:
    if op.state not in _ATTACH_STATES:
        known = ", ".join(sorted(_ATTACH_STATES))
        message = f"attach: state {op.state!r} is none of {known}"
        raise BadRequest(op.id, Code.BAD_REQUEST, message)
    return AttachLease(
        wanted=_wanted(op),
        lease=None if op.lease is None else LeaseId(op.lease),
        state=op.state,
        attempt=Attempt(op.attempt),
        members=_own(op.id, op.pids, peer),
        ran_for=Seconds(op.started_s),
        scope=op.scope,
    )


def _own(message_id: str, pids: list[int], peer: ProcessId) -> frozenset[ProcessId]:
    """Return the processes named, which must be the peer's own or descend from it (S4)."""
    members = set()
    for pid in pids:
        process = identify(pid)
        if process is None:
            continue
        if not is_or_descends(pid, peer):
            message = f"process {pid} is not yours"
            raise BadRequest(message_id, Code.NOT_YOURS, message)
        members.add(process)
    return frozenset(members)


def encode_reply(reply: Reply) -> bytes:
    """Return a reply as it goes out."""
    failure = reply.failure
    error = None
    if failure is not None:
        error = ErrorBody(
            code=failure.code.value,
            message=failure.message,
            hint=failure.hint,
            waited_out=failure.waited_out,
        )
    return _ENCODER.encode(
        Answer(
            id=reply.message_id,
            ok=failure is None,
            last=reply.last,
            data=reply.data,
            error=error,
        )
    )


def encode_refusal(bad: BadRequest) -> bytes:
    """Return the answer to a message that cannot be taken."""
    error = ErrorBody(code=bad.code.value, message=bad.message, hint=bad.hint)
    return _ENCODER.encode(Answer(id=bad.message_id, ok=False, last=True, error=error))


def encode(message: object) -> bytes:
    """Return an order or an event as it goes out."""
    return _ENCODER.encode(message)
