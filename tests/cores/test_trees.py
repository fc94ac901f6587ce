"""Holders' processes, watched and where need be ended (see `trees/core.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from berth.actors.card.messages import HolderGone, TreeSeen
from berth.actors.trees.core import (
    ForCard,
    ForOtherCards,
    KillLeftovers,
    LookAtTrees,
    SendSignal,
    StopWaiting,
    Trees,
    TreesEffect,
    WaitForExit,
    decide,
)
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
from berth.ids import CardName, Key, LeaseId, ProcessId
from berth.units import Instant, Seconds, after

L1 = LeaseId("L1")
L2 = LeaseId("L2")
GPU0 = CardName("gpu0")
GPU1 = CardName("gpu1")
ROOT = ProcessId(70, 1)
CHILD = ProcessId(71, 1)
OTHER = ProcessId(72, 1)


def watch(lease: LeaseId = L1, card: CardName = GPU0, **changes: Any) -> WatchTree:
    terms: dict[str, Any] = {
        "name": "chat",
        "root": ROOT,
        "key": Key("k"),
        "members": frozenset({CHILD}),
        "scope": "berth-L1.scope",
        "ends_with_root": True,
    }
    return WatchTree(lease=lease, card=card, **(terms | changes))


@dataclass
class PlayedTrees:
    """The trees actor under play. Looks are answered at once with what lives `below` each root."""

    now: Instant = Instant(1000.0)
    trees: Trees = field(default_factory=Trees)
    said: list[TreesEffect] = field(default_factory=list)
    elsewhere: list[ForOtherCards] = field(default_factory=list)
    below: Mapping[LeaseId, frozenset[ProcessId]] | None = None

    def hear(self, event: TreesInbox) -> list[TreesEffect]:
        """Let it hear an event; return what it says to it."""
        self.trees, effects = decide(self.trees, event, self.now)
        self.elsewhere += [effect for effect in effects if isinstance(effect, ForOtherCards)]
        said: list[TreesEffect] = [one for one in effects if not isinstance(one, ForOtherCards)]
        for effect in tuple(said):
            if isinstance(effect, LookAtTrees) and self.below is not None:
                said += self.hear(TreesSeen(members=self.below))
        self.said += said
        return said

    def later(self, seconds: float, step: float = 0.5) -> list[TreesEffect]:
        said: list[TreesEffect] = []
        ends = after(self.now, Seconds(seconds))
        while self.now < ends:
            self.now = after(self.now, Seconds(min(step, ends - self.now)))
            said += self.hear(TreesTick())
        return said

    def signals(self) -> list[tuple[tuple[ProcessId, ...], str]]:
        return [(e.processes, e.signal) for e in self.said if isinstance(e, SendSignal)]


def watching(**changes: Any) -> PlayedTrees:
    """Return a trees actor that watches one holder, its first look behind it."""
    trees = PlayedTrees()
    trees.hear(watch(**changes))
    trees.later(0.5)
    return trees


def looks(said: list[TreesEffect]) -> int:
    return sum(isinstance(effect, LookAtTrees) for effect in said)


# --- 1: looked at ---------------------------------------------------------------------------------


def test_holder_that_is_watched_is_waited_for_and_looked_at_with_the_next_tick() -> None:
    """R5: who is gone already at berthd's start is found out at once."""
    trees = PlayedTrees()
    assert trees.hear(watch()) == [WaitForExit(lease=L1, root=ROOT)]
    assert trees.hear(TreesTick()) == [LookAtTrees(roots={L1: ROOT})]


def test_trees_are_looked_at_every_two_seconds() -> None:
    """3.9: the deadline of `look_at`; it fires at 2 s and not before."""
    trees = watching()
    assert looks(trees.later(1.5)) == 0
    assert looks(trees.later(0.5)) == 1
    assert looks(trees.later(1.5)) == 0
    assert looks(trees.later(0.5)) == 1


def test_nobody_is_looked_at_when_nobody_is_watched() -> None:
    """Spec 15: an idle berthd reads no process table."""
    assert PlayedTrees().later(10) == []


def test_card_is_told_when_the_members_change_and_only_then() -> None:
    """R5: the journal knows the tree last seen; the same tree again is no news."""
    trees = PlayedTrees()
    trees.hear(watch())
    trees.below = {L1: frozenset({CHILD, OTHER})}
    seen = TreeSeen(lease=L1, members=frozenset({CHILD, OTHER}))
    assert ForCard(card=GPU0, message=seen) in trees.later(2)
    assert not [e for e in trees.later(10) if isinstance(e, ForCard)]
    trees.below = {L1: frozenset()}
    gone = TreeSeen(lease=L1, members=frozenset())
    assert [e for e in trees.later(2) if isinstance(e, ForCard)] == [
        ForCard(card=GPU0, message=gone)
    ]


def test_members_that_the_card_knows_already_are_no_news() -> None:
    """S6: after a restart the card's own journal is where the members come from."""
    trees = PlayedTrees(below={L1: frozenset({CHILD})})
    trees.hear(watch())
    assert not [e for e in trees.later(5) if isinstance(e, ForCard)]


def test_look_that_comes_after_the_watch_is_over_is_dropped() -> None:
    """A late look must not bring a lease back."""
    trees = watching()
    trees.hear(ForgetTree(lease=L1, card=GPU0))
    assert trees.hear(TreesSeen(members={L1: frozenset({OTHER})})) == []
    assert not trees.trees.watches


def test_each_card_of_a_lease_is_told() -> None:
    """M2: one lease on several cards has one tree and several cards."""
    trees = watching()
    trees.hear(watch(card=GPU1))
    trees.hear(watch(card=GPU1))
    said = trees.hear(TreesSeen(members={L1: frozenset({OTHER})}))
    assert [effect.card for effect in said if isinstance(effect, ForCard)] == [GPU0, GPU1]


# --- 2: the holder's process is gone --------------------------------------------------------------


def test_leftovers_of_a_wrapped_run_are_killed_before_its_card_is_told() -> None:
    """R5: SIGKILL what is left of the scope or of the tree last seen, then free by reading."""
    trees = watching()
    said = trees.hear(RootExited(lease=L1, root=ROOT))
    assert said == [KillLeftovers(watch=watch(), members=frozenset({CHILD}))]
    assert trees.hear(LeftoversKilled(lease=L1)) == [
        StopWaiting(lease=L1),
        ForCard(card=GPU0, message=HolderGone(lease=L1)),
    ]
    assert not trees.trees.watches


def test_leftovers_are_those_of_the_last_look() -> None:
    """R5: the tree last seen, not the one it started with."""
    trees = PlayedTrees(below={L1: frozenset({OTHER})})
    trees.hear(watch())
    trees.later(0.5)
    (kill,) = trees.hear(RootExited(lease=L1, root=ROOT))
    assert isinstance(kill, KillLeftovers)
    assert kill.members == {OTHER}


def test_children_of_a_script_are_its_own() -> None:
    """S5: a script's lease has no wrapper: Berth kills nothing of it."""
    trees = watching(ends_with_root=False)
    assert trees.hear(RootExited(lease=L1, root=ROOT)) == [
        StopWaiting(lease=L1),
        ForCard(card=GPU0, message=HolderGone(lease=L1)),
    ]


def test_end_of_a_process_that_is_not_watched_any_more_is_dropped() -> None:
    """S6: the holder attached anew from another process; the old one's end is not its end."""
    trees = watching()
    trees.hear(watch(root=OTHER))
    assert trees.hear(RootExited(lease=L1, root=ROOT)) == []
    assert trees.hear(RootExited(lease=L2, root=ROOT)) == []
    assert trees.hear(LeftoversKilled(lease=L2)) == []
    assert set(trees.trees.watches) == {L1}


def test_watch_is_over_when_the_lease_is() -> None:
    """Nobody waits for the end of a process that holds nothing."""
    trees = watching()
    assert trees.hear(ForgetTree(lease=L1, card=GPU0)) == [StopWaiting(lease=L1)]
    assert trees.hear(ForgetTree(lease=L1, card=GPU0)) == []
    assert trees.later(10) == []


def test_leases_are_watched_independently() -> None:
    """Q8: one holder's end says nothing of another's."""
    trees = watching()
    trees.hear(watch(L2, GPU1, root=OTHER, ends_with_root=False))
    trees.hear(RootExited(lease=L2, root=OTHER))
    assert set(trees.trees.watches) == {L1}


# --- 3: ended -------------------------------------------------------------------------------------


def test_silent_holder_is_woken() -> None:
    """H6: not heard in 5 s: SIGCONT to the wrapper, in case it is stopped."""
    trees = watching()
    trees.hear(WakeHolder(lease=L1))
    assert trees.signals() == [((ROOT,), "SIGCONT")]


def test_tree_gets_sigterm_and_after_its_grace_sigkill_the_wrapper_last() -> None:
    """H3: SIGTERM, the grace, then SIGKILL to the whole tree; the deadline of `kill_at`."""
    trees = watching()
    trees.hear(EndTree(lease=L1, grace=Seconds(10.0)))
    assert trees.signals() == [((CHILD,), "SIGTERM")]
    trees.later(9.5)
    assert len(trees.signals()) == 1
    trees.later(0.5)
    assert trees.signals()[1:] == [((CHILD, ROOT), "SIGKILL")]
    trees.later(30)
    assert len(trees.signals()) == 2


def test_what_was_started_during_the_grace_is_killed_too() -> None:
    """H3: the whole tree, as it is when the grace is over."""
    trees = watching()
    trees.hear(EndTree(lease=L1, grace=Seconds(10.0)))
    trees.below = {L1: frozenset({CHILD, OTHER})}
    trees.later(10)
    killed, signal = trees.signals()[-1]
    assert (set(killed), killed[-1], signal) == ({CHILD, OTHER, ROOT}, ROOT, "SIGKILL")


def test_tree_that_ends_in_its_grace_gets_no_sigkill() -> None:
    """H3: the pid may be somebody else's by then."""
    trees = watching()
    trees.hear(EndTree(lease=L1, grace=Seconds(10.0)))
    trees.hear(RootExited(lease=L1, root=ROOT))
    trees.hear(LeftoversKilled(lease=L1))
    trees.later(30)
    assert trees.signals() == [((CHILD,), "SIGTERM")]


def test_script_gets_sigterm_itself_and_no_more() -> None:
    """S5: `berth stop` sends SIGTERM to that pid alone."""
    trees = watching(ends_with_root=False)
    trees.hear(EndTree(lease=L1, grace=Seconds(1.0)))
    trees.later(30)
    assert trees.signals() == [((ROOT,), "SIGTERM")]


@pytest.mark.parametrize("event", [WakeHolder(lease=L2), EndTree(lease=L2, grace=Seconds(1.0))])
def test_nobody_is_signalled_for_a_lease_that_is_not_watched(event: TreesInbox) -> None:
    """A tree that nobody knows is nobody's to end."""
    assert watching().hear(event) == []


def test_watch_that_is_repeated_does_not_call_off_the_kill() -> None:
    """H3, H6: a wrapper may attach while its tree is being ended; the grace goes on."""
    trees = watching()
    trees.hear(EndTree(lease=L1, grace=Seconds(10.0)))
    trees.later(5)
    trees.hear(watch())
    trees.later(5)
    assert trees.signals()[1:] == [((CHILD, ROOT), "SIGKILL")]


# --- given up -------------------------------------------------------------------------------------


def reclaim(**changes: Any) -> KillTree:
    terms: dict[str, Any] = {
        "root": ROOT,
        "key": Key("k"),
        "members": frozenset({OTHER}),
        "scope": "berth-L1.scope",
        "wrapped": True,
    }
    return KillTree(lease=L1, card=GPU0, **(terms | changes))


def test_lease_that_is_given_up_is_killed_whole_and_watched_no_more() -> None:
    """H4: reclaim SIGKILLs the tree last seen, the scope, and what carries the run's mark."""
    trees = watching()
    trees.said.clear()
    said = trees.hear(reclaim())
    assert trees.signals() == [((CHILD, OTHER, ROOT), "SIGKILL")] or trees.signals() == [
        ((*sorted({CHILD, OTHER}), ROOT), "SIGKILL")
    ]
    assert any(isinstance(effect, KillLeftovers) for effect in said)
    assert any(isinstance(effect, StopWaiting) for effect in said)
    assert trees.trees.watches == {}
    assert trees.hear(LeftoversKilled(lease=L1)) == []


def test_lease_that_was_not_watched_any_more_is_killed_all_the_same() -> None:
    """H4: a stuck lease was released long ago, and so was its watch."""
    trees = PlayedTrees()
    said = trees.hear(reclaim())
    (left,) = [effect for effect in said if isinstance(effect, KillLeftovers)]
    assert (left.watch.scope, left.members) == ("berth-L1.scope", frozenset({OTHER}))


def test_script_that_is_given_up_is_killed_and_its_children_are_its_own() -> None:
    """S5: Berth knows nothing of a script's children; it has no mark to find them by."""
    trees = PlayedTrees()
    said = trees.hear(reclaim(wrapped=False, members=frozenset()))
    assert trees.signals() == [((ROOT,), "SIGKILL")]
    assert not any(isinstance(effect, KillLeftovers) for effect in said)


# --- what holders use on other cards --------------------------------------------------------------


def test_other_cards_are_told_of_a_holder_and_of_its_end() -> None:
    """B6: what it uses there is named after the lease, as long as there is one."""
    trees = PlayedTrees()
    trees.hear(watch())
    trees.hear(TreesSeen(members={L1: frozenset({CHILD, OTHER})}))
    trees.hear(ForgetTree(lease=L1, card=GPU0))
    told = [(one.cards, one.message.name, set(one.message.processes)) for one in trees.elsewhere]
    assert told == [
        ((GPU0,), "chat", {ROOT, CHILD}),
        ((GPU0,), "chat", {ROOT, CHILD, OTHER}),
        ((), "chat", set()),
    ]


def test_lease_that_is_over_on_one_of_its_cards_is_elsewhere_there() -> None:
    """M2, B6: the other card still has it; on this one its memory is a stowaway's now."""
    trees = PlayedTrees()
    trees.hear(watch(card=GPU0))
    trees.hear(watch(card=GPU1))
    trees.hear(ForgetTree(lease=L1, card=GPU0))
    assert trees.elsewhere[-1].cards == (GPU1,)
    assert trees.elsewhere[-1].message.processes == {ROOT, CHILD}


def test_card_that_starts_is_told_of_the_holders_of_others() -> None:
    """3.7: it has forgotten them."""
    trees = watching()
    assert trees.hear(TellElsewhere(card=GPU0)) == []
    (told,) = trees.hear(TellElsewhere(card=GPU1))
    assert isinstance(told, ForCard)
    assert isinstance(told.message, Elsewhere)
    assert told.message.lease == L1
