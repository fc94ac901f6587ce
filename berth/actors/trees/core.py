"""Theory of operation of the trees actor.

It watches the process of every holder, and what lives below it. Its core decides; the shell reads
/proc, waits on pidfds and sends signals.

 1. A holder's tree is looked at every 2 s. Its card is told when the members change, so that the
    journal knows them too: what a dead wrapper left is found from there after a restart.
 2. A holder's process is gone. A wrapped run's leftovers are killed: the tree last seen, the scope,
    and every process with the run's mark in its environment. Then the card is told, and the watch
    is over. A script's children are its own; it is only told.
 3. A card wants a tree ended (H3): SIGTERM to what is below the wrapper, and when the grace is over
    SIGKILL to all of it, the wrapper last. A script gets SIGTERM, itself only, and no more.
 4. A card gives a lease up (H4): SIGKILL to all that is known of it, and nobody is told.

Every other card is told of a holder's processes too: what they use there is named after the lease.

A signal goes to a process only after its start time was compared: never to another of its pid.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from berth.actors.card.messages import HolderGone, TreeSeen
from berth.actors.trees.messages import (
    Elsewhere,
    EndTree,
    ForgetTree,
    KillTree,
    LeftoversKilled,
    RootExited,
    TellElsewhere,
    TreesInbox,
    TreesSeen,
    TreesTick,
    WakeHolder,
    WatchTree,
)
from berth.ids import CardName, LeaseId, ProcessId
from berth.units import Instant, Seconds, after

LOOK_EVERY: Final = Seconds(2.0)


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """One holder under watch. `kill_at`: its tree is being ended, and then its grace is over."""

    asked: WatchTree
    cards: tuple[CardName, ...]
    members: frozenset[ProcessId]
    kill_at: Instant | None = None


class Trees(msgspec.Struct, frozen=True, kw_only=True):
    """All holders under watch."""

    watches: Mapping[LeaseId, Watch] = msgspec.field(default_factory=dict)
    look_at: Instant = Instant(0.0)


class WaitForExit(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: tell `RootExited` when this process ends, at once if it is gone already."""

    lease: LeaseId
    root: ProcessId


class StopWaiting(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: nobody cares for the end of this process any more."""

    lease: LeaseId


class LookAtTrees(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: read the process table and tell `TreesSeen`."""

    roots: Mapping[LeaseId, ProcessId]


class SendSignal(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: signal these processes, those of them that are still the same."""

    processes: tuple[ProcessId, ...]
    signal: str


class KillLeftovers(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: SIGKILL all that is left of a run whose wrapper is gone; tell `LeftoversKilled`."""

    watch: WatchTree
    members: frozenset[ProcessId]


class ForCard(msgspec.Struct, frozen=True, kw_only=True):
    """To a card."""

    card: CardName
    message: HolderGone | TreeSeen | Elsewhere


class ForOtherCards(msgspec.Struct, frozen=True, kw_only=True):
    """To every card but these."""

    cards: tuple[CardName, ...]
    message: Elsewhere


TreesEffect: TypeAlias = (
    WaitForExit | StopWaiting | LookAtTrees | SendSignal | KillLeftovers | ForCard | ForOtherCards
)
_Decision: TypeAlias = tuple[Trees, tuple[TreesEffect, ...]]


def decide(trees: Trees, event: TreesInbox, now: Instant) -> _Decision:
    """Return the watches after `event`, and what to do."""
    match event:
        case WatchTree():
            return _watch(trees, event)
        case ForgetTree():
            return _forget(trees, event)
        case WakeHolder():
            watch = trees.watches.get(event.lease)
            if watch is None:
                return trees, ()
            return trees, (SendSignal(processes=(watch.asked.root,), signal="SIGCONT"),)
        case EndTree():
            return _end(trees, event, now)
        case KillTree():
            return _kill(trees, event)
        case RootExited():
            return _root_exited(trees, event)
        case LeftoversKilled():
            return _gone(trees, event.lease)
        case TreesSeen():
            return _seen(trees, event)
        case TellElsewhere():
            return _tell_elsewhere(trees, event.card)
        case TreesTick():
            return _tick(trees, now)
        case _:
            assert_never(event)


def _watch(trees: Trees, event: WatchTree) -> _Decision:
    known = trees.watches.get(event.lease)
    cards = () if known is None else known.cards
    same = known is not None and known.asked.root == event.root
    watch = Watch(
        asked=event,
        cards=cards if event.card in cards else (*cards, event.card),
        members=event.members,
        kill_at=known.kill_at if same and known is not None else None,
    )
    trees = replace(trees, watches={**trees.watches, event.lease: watch}, look_at=Instant(0.0))
    wait = WaitForExit(lease=event.lease, root=event.root)
    return trees, (wait, ForOtherCards(cards=watch.cards, message=_elsewhere(watch)))


def _elsewhere(watch: Watch) -> Elsewhere:
    """Return what other cards should know of a holder."""
    asked = watch.asked
    return Elsewhere(
        lease=asked.lease,
        name=asked.name,
        processes=watch.members | {asked.root},
        scope=asked.scope,
    )


def _over(watch: Watch) -> ForOtherCards:
    """Have no card think of a holder any more."""
    over = Elsewhere(lease=watch.asked.lease, name=watch.asked.name, processes=frozenset())
    return ForOtherCards(cards=(), message=over)


def _tell_elsewhere(trees: Trees, card: CardName) -> _Decision:
    """Tell a card that starts of all holders that are not its own."""
    others = (watch for watch in trees.watches.values() if card not in watch.cards)
    return trees, tuple(ForCard(card=card, message=_elsewhere(watch)) for watch in others)


def _without(trees: Trees, lease: LeaseId) -> Trees:
    return replace(trees, watches={k: w for k, w in trees.watches.items() if k != lease})


def _forget(trees: Trees, event: ForgetTree) -> _Decision:
    """A lease is over on a card; on the last of them its holder is watched no more."""
    watch = trees.watches.get(event.lease)
    if watch is None:
        return trees, ()
    left = tuple(card for card in watch.cards if card != event.card)
    if not left:
        return _without(trees, event.lease), (StopWaiting(lease=event.lease), _over(watch))
    rest = replace(watch, cards=left)
    trees = replace(trees, watches={**trees.watches, event.lease: rest})
    return trees, (ForOtherCards(cards=left, message=_elsewhere(rest)),)


def _end(trees: Trees, event: EndTree, now: Instant) -> _Decision:
    watch = trees.watches.get(event.lease)
    if watch is None:
        return trees, ()
    if not watch.asked.ends_with_root:
        return trees, (SendSignal(processes=(watch.asked.root,), signal="SIGTERM"),)
    ending = replace(watch, kill_at=after(now, event.grace))
    trees = replace(trees, watches={**trees.watches, event.lease: ending})
    return trees, (SendSignal(processes=tuple(watch.members), signal="SIGTERM"),)


def _kill(trees: Trees, event: KillTree) -> _Decision:
    """End a lease that was given up, whether it was still watched or not."""
    watch = trees.watches.get(event.lease)
    members = event.members if watch is None else event.members | watch.members
    effects: list[TreesEffect] = [] if watch is None else [StopWaiting(lease=event.lease)]
    effects.append(SendSignal(processes=(*sorted(members), event.root), signal="SIGKILL"))
    if event.wrapped:
        left = WatchTree(
            lease=event.lease,
            name="",
            card=event.card,
            root=event.root,
            key=event.key,
            members=members,
            scope=event.scope,
            ends_with_root=True,
        )
        effects.append(KillLeftovers(watch=left, members=members))
    if watch is not None:
        effects.append(_over(watch))
    return _without(trees, event.lease), tuple(effects)


def _root_exited(trees: Trees, event: RootExited) -> _Decision:
    watch = trees.watches.get(event.lease)
    if watch is None or watch.asked.root != event.root:
        return trees, ()
    if not watch.asked.ends_with_root:
        return _gone(trees, event.lease)
    return trees, (KillLeftovers(watch=watch.asked, members=watch.members),)


def _gone(trees: Trees, lease: LeaseId) -> _Decision:
    watch = trees.watches.get(lease)
    if watch is None:
        return trees, ()
    told = tuple(ForCard(card=card, message=HolderGone(lease=lease)) for card in watch.cards)
    return _without(trees, lease), (StopWaiting(lease=lease), *told, _over(watch))


def _seen(trees: Trees, event: TreesSeen) -> _Decision:
    """Tell each card which of its trees have changed."""
    watches = dict(trees.watches)
    told: list[TreesEffect] = []
    for lease, members in event.members.items():
        watch = watches.get(lease)
        if watch is not None and watch.members != members:
            watches[lease] = replace(watch, members=members)
            seen = TreeSeen(lease=lease, members=members)
            told.extend(ForCard(card=card, message=seen) for card in watch.cards)
            elsewhere = _elsewhere(watches[lease])
            told.append(ForOtherCards(cards=watch.cards, message=elsewhere))
    return replace(trees, watches=watches), tuple(told)


def _tick(trees: Trees, now: Instant) -> _Decision:
    effects: list[TreesEffect] = []
    watches = dict(trees.watches)
    for lease, watch in trees.watches.items():
        if watch.kill_at is not None and now >= watch.kill_at:
            watches[lease] = replace(watch, kill_at=None)
            doomed = (*watch.members, watch.asked.root)
            effects.append(SendSignal(processes=doomed, signal="SIGKILL"))
    trees = replace(trees, watches=watches)
    if watches and now >= trees.look_at:
        trees = replace(trees, look_at=after(now, LOOK_EVERY))
        roots = {lease: watch.asked.root for lease, watch in watches.items()}
        effects.append(LookAtTrees(roots=roots))
    return trees, tuple(effects)
