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
    Of a crowd, nobody's coming or going alone: the next tick or reading does it for all of them.
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

from typing import Final, assert_never

from msgspec.structs import replace

from berth.actors.card import drains, holders, juggle, shares, sight
from berth.actors.card.attaching import on_attach
from berth.actors.card.books import close
from berth.actors.card.deadlines import on_resumed, on_tick, refuse_expired
from berth.actors.card.messages import (
    AskHolders,
    AttachHolder,
    CardEffect,
    CardInbox,
    CardRead,
    CardUnread,
    CaughtUp,
    CloseCard,
    CommitShare,
    ConfirmGrant,
    Describe,
    ForgetWaiters,
    GrantLost,
    HolderAnswered,
    HolderGone,
    HolderStarted,
    JournalState,
    NameFreed,
    OfferShare,
    ReclaimLease,
    ReleaseLease,
    Resumed,
    SeekLease,
    StopLease,
    Survey,
    Tick,
    TreeSeen,
    WatchAgain,
    WithdrawOffer,
    WithdrawRequest,
    XidThrown,
)
from berth.actors.card.obstacles import is_recallable
from berth.actors.card.queue import Plan, halted, plan
from berth.actors.card.reasons import tell_all
from berth.actors.card.reclaiming import on_reclaim
from berth.actors.card.state import Card, Measured, Waiter
from berth.actors.card.survey import outgrown, survey, too_big
from berth.actors.card.turn import Turn
from berth.actors.card.view import describe
from berth.actors.node.inbox import CardDescribed, RequestGranted
from berth.actors.trees.messages import Elsewhere
from berth.errors import Code
from berth.ids import lease_of
from berth.lease import Detached, Held, ask_facts, asks, granted
from berth.standing import LEAVING, Blocker
from berth.units import Instant, after, show_duration, since

CROWD: Final = 500
"""From how many waiters on one card not every coming and going is settled by itself."""


def decide(card: Card, event: CardInbox, now: Instant) -> tuple[Card, tuple[CardEffect, ...]]:
    """Return the card after `event`, and what to tell whom."""
    turn = Turn(card, now)
    if isinstance(event, Describe):
        turn.then.append(CardDescribed(call=event.call, card=card.name, status=describe(card, now)))
        return turn.finish()
    if isinstance(event, Survey):
        turn.then.append(survey(card, waiter_of(event.seek), now))
        return turn.finish()
    _take(turn, event)
    if isinstance(event, SeekLease | WithdrawRequest) and _is_crowd(turn.card):
        return turn.finish()
    if turn.card.closing:
        _refuse_all(turn)
    _end_recovery(turn)
    _settle(turn)
    if refuse_expired(turn):
        _settle(turn)
    return turn.finish()


def _is_crowd(card: Card) -> bool:
    """Tell whether so many wait that who comes and who goes is settled with the next tick.

    Each of them changes where all the others stand: thousands that come or go at once would keep
    the card busy for longer than it may be silent.
    """
    return len(card.queue) >= CROWD and not card.closing


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
        case ConfirmGrant():
            holders.on_confirm(turn, event)
        case StopLease():
            drains.on_stop(turn, event)
        case ReclaimLease():
            on_reclaim(turn, event)
        case HolderGone():
            holders.on_gone(turn, event)
        case TreeSeen():
            holders.on_tree(turn, event)
        case (CardRead() | CardUnread() | XidThrown() | Elsewhere()) as seen:
            sight.take(turn, seen)
            _refuse_outgrown(turn)
        case GrantLost():
            holders.on_grant_lost(turn, event)
        case JournalState():
            turn.card = replace(turn.card, journal_writable=event.writable)
        case WatchAgain():
            turn.watch_all()
            turn.tell_pace()
        case Resumed():
            on_resumed(turn, event.slept)
        case (
            AskHolders() | OfferShare() | WithdrawOffer() | CommitShare() | ForgetWaiters()
        ) as of_share:
            shares.take(turn, of_share)
        case CaughtUp():
            turn.card = replace(turn.card, awaits_node=False)
        case CloseCard():
            turn.card = replace(turn.card, closing=True)
        case Tick():
            on_tick(turn)
        case Describe() | Survey():
            pass
        case _:
            assert_never(event)


def waiter_of(event: SeekLease) -> Waiter:
    """Return a request as it waits."""
    return Waiter(
        request=event.request,
        terms=event.terms,
        ask=event.ask,
        holder=event.holder,
        cards=event.cards,
        arrived=event.arrived,
        refuse_at=after(event.arrived, event.terms.wait),
        behind=event.behind,
        chosen=event.chosen,
    )


def _on_seek(turn: Turn, event: SeekLease) -> None:
    if turn.card.lease(lease_of(event.request)) is not None:
        return  # asked again, and granted meanwhile: the answer is on its way
    turn.card = turn.card.without_waiter(event.request)
    waiter = waiter_of(event)
    if not event.again:
        chosen = f"; any card: {waiter.chosen}" if waiter.chosen else ""
        turn.waiter_event(
            "queued",
            waiter,
            asks(waiter.ask, waiter.terms.priority) + chosen,
            ask_facts(waiter.ask, waiter.terms.priority),
        )
    if turn.card.closing:
        turn.refuse(waiter, Code.SHUTTING_DOWN, "berthd is stopping; ask again when it is back")
        return
    why = too_big(turn.card, waiter)
    if why:
        turn.refuse(waiter, Code.TOO_BIG, why)
        return
    turn.card = turn.card.with_waiter(waiter)


def _refuse_outgrown(turn: Turn) -> None:
    for waiter, why in outgrown(turn.card):
        turn.refuse(waiter, Code.TOO_BIG, why)


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
    turn.card = turn.card.without_offer(event.request).without_waiter(event.request)
    if event.refused is None:
        turn.waiter_event("withdrawn", waiter, event.why)
    else:
        turn.waiter_event("refused", waiter, event.why, {"code": event.refused.value})
    if event.call is not None:
        turn.done(event.call)


def _refuse_all(turn: Turn) -> None:
    """Berthd is stopping: refuse who waits, but for shares that are being agreed on."""
    for waiter in turn.card.queue:
        if turn.card.offer(waiter.request) is None:
            turn.refuse(waiter, Code.SHUTTING_DOWN, "berthd is stopping; ask again when it is back")


def _end_recovery(turn: Turn) -> None:
    """Recovery is over as soon as the node and every holder of before the restart have spoken."""
    card = turn.card
    silent = (
        card.awaits_node
        or card.strangers_may_return
        or any(isinstance(one, Detached) for one in card.leases)
    )
    if card.recovering_until is not None and not silent:
        turn.card = replace(turn.card, recovering_until=None)


def _settle(turn: Turn) -> None:
    """Bring the card to rest: grant, ask, let run on, tell."""
    why = halted(turn.card, turn.now)
    if why is not None:
        shares.tell_stands(turn, Plan())
        _stand_still(turn, why)
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
    shares.tell_stands(turn, wanted)
    tell_all(turn, wanted.blockers, close(turn.card, measured))


def _stand_still(turn: Turn, why: Blocker) -> None:
    """Grant nothing and ask nobody. Whoever was asked for those who have all left runs on (Q3)."""
    tell_all(turn, {waiter.request: (why,) for waiter in turn.card.queue}, None)
    for lease in turn.card.leases:
        if is_recallable(lease) and not turn.card.queue:
            drains.recall(turn, lease, None)


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
    lease = granted(held, turn.now)
    turn.card = juggle.taken(turn.card, waiter, lease.id).without_waiter(waiter.request)
    turn.add(lease)
    turn.measure_hand_off(waiter)
    turn.lease_event(
        "granted",
        lease,
        _how_granted(waiter, turn.now),
        waited_s=round(since(waiter.arrived, turn.now), 3),
        avoided=waiter.lacked_room,
        **ask_facts(waiter.ask, waiter.terms.priority),
    )
    turn.then.append(
        RequestGranted(
            request=waiter.request,
            lease=lease.id,
            cards=(turn.card.identity,),
            start_by=lease.start_by,
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
        return asks(waiter.ask, waiter.terms.priority)
    waited = show_duration(since(waiter.arrived, now))
    return f"{asks(waiter.ask, waiter.terms.priority)}; waited {waited} for {', '.join(gave)}"
