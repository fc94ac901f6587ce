"""Theory of operation of a card.

A card owns its leases and its queue, and nothing else changes them. It hears what clients want and
what holders say (from the node), what the driver shows (from its probe) and what became of
processes (from the trees actor). It decides, changes its state, and says what is to be told.

Every event is handled in the same order:

 1. `_take` takes the event itself: a new waiter, a holder's word, a reading, a deadline passed.
 2. `_settle` brings the card to rest. As long as the queue has somebody who fits, it is granted
    (`queue.plan`). Then holders are asked, those nobody needs any more are told to run on, and
    every waiter whose reason changed is told.
 3. Waiters whose wait has run out are refused; what they stood in the way of is settled again.
 4. `Turn.finish` puts the journal's record first; answers and orders ride on it.

What is never done here:

 - Granting on a holder's word. `released` only starts the wait for a reading that was *taken
   afterwards* and shows the memory free (H1, B3). Until there is one, the lease counts what it
   was granted, even where an older reading shows less.
 - Granting without a fresh reading, while old holders may still come back after a restart, or
   while the journal cannot be written.
 - Freeing memory that no reading shows free. Too late, it is *stuck*: told, and still counted.

Every wait is a state with a deadline, all of them looked at on each tick (`deadlines.py`):

    waiter         refuse_at   refused, with who stood in its way
    Granted        wake_at     its holder is woken, in case it is stopped
                   start_by    taken back, and its tree ended
    Starting       ready_by    counts as ready
    Draining       deadline    woken, or its tree ended by berthd (see DrainPhase)
    Keeping        hear_by     counts as running again; a later drain will find out
    Releasing      free_by     stuck
    recovering     …_until     silent holders are detached; grants go on
    reading        5 s         stale: nothing is granted

The handlers of holders' words are in `holders.py`, those of readings in `sight.py`.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from msgspec.structs import replace

from berth.actors.card import drains, holders, sight
from berth.actors.card.attaching import on_attach
from berth.actors.card.books import Books, close
from berth.actors.card.deadlines import on_resumed, on_tick, refuse_expired
from berth.actors.card.messages import (
    AttachHolder,
    CardEffect,
    CardInbox,
    CardRead,
    CardUnread,
    CloseCard,
    Describe,
    ForgetWaiters,
    GrantLost,
    HolderAnswered,
    HolderGone,
    HolderStarted,
    JournalState,
    NameFreed,
    ReclaimLease,
    ReleaseLease,
    Resumed,
    SeekLease,
    StopLease,
    Tick,
    TreeSeen,
    WatchAgain,
    WithdrawRequest,
    XidThrown,
)
from berth.actors.card.outlook import eta, outlook, with_figures
from berth.actors.card.queue import is_recallable, plan
from berth.actors.card.reclaiming import on_reclaim
from berth.actors.card.state import Card, Measured, Waiter
from berth.actors.card.turn import Turn
from berth.actors.card.view import describe
from berth.actors.node.inbox import CardDescribed, RequestGranted, RequestStands
from berth.errors import Code
from berth.ids import RequestId, lease_of
from berth.lease import Detached, Granted, Held, WholeCard
from berth.readings import Unknown
from berth.standing import LEAVING, Blocker, How, Outlook, sentence
from berth.units import Instant, Seconds, after, left, show_duration, show_gib, since

START_WITHIN: Final = Seconds(30.0)
"""How long a granted command may take to be started before the grant is taken back (S6)."""


def decide(card: Card, event: CardInbox, now: Instant) -> tuple[Card, tuple[CardEffect, ...]]:
    """Return the card after `event`, and what to tell whom."""
    turn = Turn(card, now)
    if isinstance(event, Describe):
        turn.then.append(CardDescribed(call=event.call, card=card.name, status=describe(card, now)))
        return turn.finish()
    _take(turn, event)
    _end_recovery(turn)
    _settle(turn)
    if refuse_expired(turn):
        _settle(turn)
    return turn.finish()


def _take(turn: Turn, event: CardInbox) -> None:
    match event:
        case SeekLease():
            _on_seek(turn, event)
        case NameFreed():
            _on_name_freed(turn, event)
        case WithdrawRequest():
            _on_withdraw(turn, event)
        case HolderStarted():
            holders.on_started(turn, event)
        case HolderAnswered():
            holders.on_answer(turn, event)
        case ReleaseLease():
            holders.on_release(turn, event)
        case AttachHolder():
            on_attach(turn, event)
        case StopLease():
            drains.on_stop(turn, event)
        case ReclaimLease():
            on_reclaim(turn, event)
        case HolderGone():
            holders.on_gone(turn, event)
        case TreeSeen():
            holders.on_tree(turn, event)
        case CardRead():
            sight.on_read(turn, event)
        case CardUnread():
            sight.on_unread(turn, event.why)
        case XidThrown():
            sight.on_xid(turn, event)
        case GrantLost():
            holders.on_grant_lost(turn, event)
        case JournalState():
            turn.card = replace(turn.card, journal_writable=event.writable)
        case WatchAgain():
            turn.watch_all()
            turn.tell_pace()
        case Resumed():
            on_resumed(turn, event.slept)
        case ForgetWaiters():
            turn.card = replace(turn.card, queue=())
        case CloseCard():
            _on_close(turn)
        case Tick():
            on_tick(turn)
        case Describe():
            pass
        case _:
            assert_never(event)


def _on_seek(turn: Turn, event: SeekLease) -> None:
    waiter = Waiter(
        request=event.request,
        terms=event.terms,
        ask=event.ask,
        holder=event.holder,
        cards=event.cards,
        arrived=Instant(turn.now - event.waited),
        refuse_at=after(turn.now, Seconds(max(0.0, event.terms.wait - event.waited))),
        behind=event.behind,
    )
    if not event.again:
        turn.waiter_event("queued", waiter, _asks(waiter), _ask_facts(waiter))
    if turn.card.closing:
        turn.refuse(waiter, Code.SHUTTING_DOWN, "berthd is stopping; ask again when it is back")
        return
    too_big = _too_big(turn.card, waiter)
    if too_big:
        turn.refuse(waiter, Code.TOO_BIG, too_big)
        return
    turn.card = turn.card.with_waiter(waiter)


def _asks(waiter: Waiter) -> str:
    if isinstance(waiter.ask, WholeCard):
        return f"the whole card, {waiter.terms.priority.word}"
    return f"{show_gib(waiter.ask)} GiB, {waiter.terms.priority.word}"


def _ask_facts(waiter: Waiter) -> dict[str, int | str | None]:
    return {
        "mib": None if isinstance(waiter.ask, WholeCard) else waiter.ask,
        "priority": waiter.terms.priority.word,
    }


def _too_big(card: Card, waiter: Waiter) -> str:
    """Return why the ask can never fit, empty when it could."""
    if isinstance(waiter.ask, WholeCard) or card.measured is None:
        return ""
    capacity = card.measured.capacity
    if waiter.ask <= capacity:
        return ""
    return (
        f"{show_gib(waiter.ask)} GiB is more than {card.name} can hand out "
        f"({show_gib(capacity)} GiB)"
    )


def _on_name_freed(turn: Turn, event: NameFreed) -> None:
    waiter = turn.card.waiter(event.request)
    if waiter is not None:
        turn.swap(replace(waiter, behind=""))


def _on_withdraw(turn: Turn, event: WithdrawRequest) -> None:
    waiter = turn.card.waiter(event.request)
    if waiter is None:
        if event.call is not None:
            turn.failed(event.call, Code.NOT_FOUND, f"{event.request} does not wait here")
        return
    turn.card = turn.card.without_waiter(event.request)
    turn.waiter_event("withdrawn", waiter, event.why)
    if event.call is not None:
        turn.done(event.call)


def _on_close(turn: Turn) -> None:
    turn.card = replace(turn.card, closing=True)
    for waiter in turn.card.queue:
        turn.refuse(waiter, Code.SHUTTING_DOWN, "berthd is stopping; ask again when it is back")


def _end_recovery(turn: Turn) -> None:
    """Recovery is over as soon as no holder of before the restart is still silent."""
    card = turn.card
    silent = card.strangers_may_return or any(isinstance(one, Detached) for one in card.leases)
    if card.recovering_until is not None and not silent:
        turn.card = replace(turn.card, recovering_until=None)


def _settle(turn: Turn) -> None:
    """Bring the card to rest: grant, ask, let run on, tell."""
    halted = _halted(turn)
    if halted is not None:
        _stand_still(turn, halted)
        return
    measured = turn.card.fresh(turn.now)
    if measured is None:
        return
    wanted = plan(turn.card, close(turn.card, measured), turn.now)
    for _ in turn.card.queue:
        if wanted.grant is None:
            break
        _grant(turn, wanted.grant, measured)
        wanted = plan(turn.card, close(turn.card, measured), turn.now)
    for lease in turn.card.leases:
        if is_recallable(lease):
            drains.recall(turn, lease, wanted.needed.get(lease.id))
    for lease, waiter in wanted.asks:
        drains.ask_to_finish(turn, lease, waiter)
    _tell_all(turn, wanted.blockers, close(turn.card, measured))


def _stand_still(turn: Turn, halted: Blocker) -> None:
    """Grant nothing and ask nobody. Whoever was asked for those who have all left runs on (Q3)."""
    _tell_all(turn, {waiter.request: (halted,) for waiter in turn.card.queue}, None)
    for lease in turn.card.leases:
        if is_recallable(lease) and not turn.card.queue:
            drains.recall(turn, lease, None)


def _halted(turn: Turn) -> Blocker | None:
    """Return why nothing at all is granted on the card now, None when something may be."""
    card = turn.card
    if card.recovering_until is not None:
        remaining = left(card.recovering_until, turn.now)
        return Blocker(who="berthd", how=How.RECOVERING, left=remaining)
    if card.fresh(turn.now) is None:
        asleep = card.unread is not None and card.unread.why is Unknown.ASLEEP
        how = How.WAKING if asleep else How.UNMEASURED
        return Blocker(who=card.name, how=how, ref=card.name)
    if not card.journal_writable:
        return Blocker(who="berthd", how=How.NO_JOURNAL)
    return None


def _grant(turn: Turn, waiter: Waiter, measured: Measured) -> None:
    hold_for = waiter.terms.hold_for
    held = Held(
        id=lease_of(waiter.request),
        terms=waiter.terms,
        ask=waiter.ask,
        holder=waiter.holder,
        cards=waiter.cards,
        granted=turn.now,
        unexplained=measured.unexplained,
        until=None if hold_for is None else after(turn.now, hold_for),
    )
    start_by = after(turn.now, START_WITHIN)
    lease = Granted(held=held, wake_at=turn.hear_by(), start_by=start_by)
    turn.card = turn.card.without_waiter(waiter.request)
    turn.add(lease)
    turn.measure_hand_off(waiter)
    turn.lease_event(
        "granted",
        lease,
        _how_granted(waiter, turn.now),
        waited_s=round(since(waiter.arrived, turn.now), 3),
        avoided=waiter.lacked_room,
        **_ask_facts(waiter),
    )
    turn.then.append(
        RequestGranted(
            request=waiter.request, lease=lease.id, card=turn.card.identity, start_by=start_by
        )
    )
    if held.holder is None:
        holders.start_hold(turn, lease)
    else:
        turn.watch(lease)


def _how_granted(waiter: Waiter, now: Instant) -> str:
    """Return what was granted, and who made room for it."""
    gave = [b.who for b in waiter.blockers or () if b.how in LEAVING]
    if not gave:
        return _asks(waiter)
    waited = show_duration(since(waiter.arrived, now))
    return f"{_asks(waiter)}; waited {waited} for {', '.join(gave)}"


def _tell_all(
    turn: Turn, reasons: Mapping[RequestId, tuple[Blocker, ...]], books: Books | None
) -> None:
    """Note of every waiter why it waits, and tell those to whom that is news."""
    queue = []
    shown: dict[int, tuple[Blocker, ...]] = {}  # many wait for the same reason
    for place, waiter in enumerate(turn.card.queue, 1):
        plain = reasons.get(waiter.request, ())
        if books is None:
            blockers, look = plain, None
        else:
            if id(plain) not in shown:
                figures = (with_figures(turn.card, books, one, turn.now) for one in plain)
                shown[id(plain)] = tuple(figures)
            blockers = shown[id(plain)]
            look = outlook(books, waiter, blockers, first=place == 1)
        queue.append(_told(turn, waiter, place, blockers, look))
    turn.card = replace(turn.card, queue=tuple(queue))


def _told(
    turn: Turn,
    waiter: Waiter,
    place: int,
    blockers: tuple[Blocker, ...],
    look: Outlook | None,
) -> Waiter:
    if waiter.blockers == blockers and waiter.outlook == look:
        return waiter
    lacked_room = waiter.lacked_room or any(b.how not in _NOT_ROOM for b in blockers)
    after_ = replace(waiter, blockers=blockers, outlook=look, lacked_room=lacked_room)
    if not _same(waiter.blockers, blockers):
        turn.then.append(
            RequestStands(
                request=waiter.request,
                card=turn.card.name,
                position=place,
                waiting=len(turn.card.queue),
                blockers=blockers,
                why=sentence(blockers, look),
                outlook=look,
                eta=eta(turn.card, after_, turn.now),
            )
        )
    return after_


_NOT_ROOM: Final = frozenset(
    {
        How.SAME_NAME,
        How.RECOVERING,
        How.UNMEASURED,
        How.WAKING,
        How.NO_JOURNAL,
        How.FIRST_IN_LINE,
    }
)


def _same(before: tuple[Blocker, ...] | None, now: tuple[Blocker, ...]) -> bool:
    """Tell whether two reasons are the same but for their figures."""
    if before is None or len(before) != len(now):
        return False
    return all(
        (one.who, one.how, one.ref, one.in_flight)
        == (other.who, other.how, other.ref, other.in_flight)
        for one, other in zip(before, now, strict=True)
    )
