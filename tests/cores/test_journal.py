"""The journal: what is written, what is passed on and when (see `journal/core.py`)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.actors.card.messages import GrantLost, JournalState
from berth.actors.journal.core import (
    EVENTS_KEPT_UNWRITTEN,
    Batch,
    Dated,
    Journal,
    PassOn,
    PublishEvent,
    TellKept,
    Write,
    decide,
    overlaid,
    timestamp,
)
from berth.actors.journal.inbox import JournalTick, KeptUnread, WriteFailed
from berth.actors.journal.messages import (
    DropHold,
    DropLease,
    Kept,
    ReadEvents,
    ReadKept,
    Record,
    SaveBaseline,
    SaveLease,
)
from berth.actors.node.inbox import CallId, RequestRefused
from berth.errors import Code
from berth.ids import CardName, LeaseId, RequestId
from berth.readings import CardIdentity
from berth.units import Instant, MiB
from tests.actors.kept import WAITING
from tests.cores.playing_journal import (
    WALL,
    PlayedJournal,
    a_lease,
    done,
    dropped,
    granted,
    happened,
    saved,
)

# --- 1, 2: written, then passed on ----------------------------------------------------------------


def test_nothing_is_passed_on_before_it_is_on_disk() -> None:
    """H1, S6: nobody hears of a grant that a kill -9 could still undo."""
    record = Record(entries=(saved(), happened()), then=(granted(),))
    journal, effects = decide(Journal(), Dated(event=record, wall=WALL), Instant(1000.0))
    (write,) = effects
    assert isinstance(write, Write)
    assert list(write.batch.latest.values()) == [saved()]
    assert [event.kind for event in write.batch.events] == ["lease.queued"]
    assert journal.riding == (granted(),)


def test_what_rides_is_passed_on_in_order_once_written() -> None:
    """3.7: the answer rides on its record; events are published first."""
    journal = PlayedJournal()
    journal.record(happened(), then=(granted(), done()))
    assert journal.passed_on() == [granted(), done()]
    assert isinstance(journal.said[0], PublishEvent)
    assert journal.journal.riding == ()


def test_record_without_anything_to_write_still_passes_on() -> None:
    """A card may send a record of facts alone; its riders are not lost."""
    journal = PlayedJournal()
    journal.record(then=(done(),))
    assert journal.passed_on() == [done()]


def test_event_is_told_as_the_protocol_says() -> None:
    """Spec 16: seq, at, kind, card, lease, request, name, and its own facts beside."""
    journal = PlayedJournal()
    journal.record(happened("lease.granted", 7))
    (event,) = journal.published()
    assert event == journal.events[0]
    assert event.flat() == {
        "seq": 1,
        "at": "2026-11-30T12:00:00.000Z",
        "kind": "lease.granted",
        "card": "gpu0",
        "lease": None,
        "request": "r7",
        "name": "chat",
        "why": "",
        "mib": 14000,
    }


@pytest.mark.parametrize(
    ("wall", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (WALL + 0.25, "2026-11-30T12:00:00.250Z"),
        (WALL + 0.0004, "2026-11-30T12:00:00.000Z"),
    ],
)
def test_time_of_an_event_is_in_utc_with_milliseconds(wall: float, text: str) -> None:
    """Spec 16: `"at":"2026-11-30T12:00:00.000Z"`, always of one length, so it sorts as text."""
    assert timestamp(wall) == text


def test_reads_go_straight_to_the_shell() -> None:
    """They come after all that was recorded before, and change nothing."""
    events = ReadEvents(call=CallId(number=1), after_seq=None, within=None, limit=10)
    kept = ReadKept(role="card gpu0", incarnation=2)
    for asked, effect in ((events, events), (kept, TellKept(asked=kept, unwritten=Batch()))):
        before = Journal(last_seq=5)
        assert decide(before, Dated(event=asked, wall=WALL), Instant(1.0)) == (before, (effect,))


def test_what_could_not_be_written_lies_over_what_is_on_the_disk() -> None:
    """S6: an actor that starts while the disk is full takes up nothing that was over long ago."""
    old, new = a_lease(1), a_lease(2)
    unwritten = Batch(
        latest={
            ("GPU-0", "L1"): DropLease(card_key="GPU-0", lease=LeaseId("L1")),
            ("GPU-0", "L2"): SaveLease(card_key="GPU-0", lease=new),
            ("GPU-1", ""): SaveBaseline(card_key="GPU-1", baseline=MiB(7)),
        }
    )
    kept = overlaid(Kept(leases={"GPU-0": (old,)}, last_seq=3), unwritten)
    assert (kept.leases, kept.baselines, kept.last_seq) == ({"GPU-0": (new,)}, {"GPU-1": 7}, 3)


def test_node_is_told_of_a_lost_grant_on_several_cards() -> None:
    """M2: the cards may all have been started again, and none of them knows of it any more."""
    cards = tuple(CardIdentity(name=CardName(f"gpu{n}"), index=n) for n in range(2))
    both = replace(granted(1), cards=cards)
    record = Record(entries=(happened("lease.granted"),), then=(both,))
    journal, _ = decide(Journal(), Dated(event=record, wall=WALL), Instant(1.0))
    failed = Dated(event=WriteFailed(batch=1, why="full"), wall=WALL)
    _, effects = decide(journal, failed, Instant(1.0))
    passed = [one.message for one in effects if isinstance(one, PassOn)]
    assert [(one.request, one.code) for one in passed if isinstance(one, RequestRefused)] == [
        ("r1", Code.NO_JOURNAL)
    ]


def test_grant_that_was_lost_is_not_written_later() -> None:
    """S6: nobody has seen it; the next start must not find it."""
    record = Record(entries=(SaveLease(card_key="GPU-0", lease=a_lease(1)),), then=(granted(1),))
    journal, _ = decide(Journal(), Dated(event=record, wall=WALL), Instant(1.0))
    failed = WriteFailed(batch=1, why="full")
    journal, _ = decide(journal, Dated(event=failed, wall=WALL), Instant(1.0))
    (entry,) = journal.unwritten.latest.values()
    assert entry == DropLease(card_key="GPU-0", lease=LeaseId("L1"))


# --- the one sequence -----------------------------------------------------------------------------


def test_sequence_goes_on_after_the_last_number_given() -> None:
    """S6: the sequence is the node's and outlives berthd."""
    journal = PlayedJournal(journal=Journal(last_seq=41, prune_at=Instant(1e9)))
    journal.record(happened(), happened())
    assert [event.seq for event in journal.published()] == [42, 43]


RECORDS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12)


@given(RECORDS)
def test_sequence_has_no_gap_whatever_the_disk_does(records: list[tuple[int, bool]]) -> None:
    """S5: a gap means that a listener missed something, so the journal itself makes none."""
    journal = PlayedJournal()
    for count, full in records:
        journal.full = full
        journal.record(saved(), *(happened() for _ in range(count)))
    journal.full = False
    journal.later(4)
    told = [event.seq for event in journal.published()]
    assert told == list(range(1, len(told) + 1))
    assert [event.seq for event in journal.events] == told
    assert journal.journal.unwritten.empty


# --- 3: not written -------------------------------------------------------------------------------


def test_grant_that_could_not_be_written_is_lost_and_its_card_told() -> None:
    """S6: `no_journal`: no new grants; everything else goes on."""
    journal = PlayedJournal(full=True)
    journal.record(saved(), happened(), then=(granted(), done()))
    assert journal.passed_on() == [done()]
    assert journal.to_cards() == [
        GrantLost(leases=(LeaseId("L1"),)),
        JournalState(writable=False),
    ]


def test_release_that_could_not_be_written_is_passed_on() -> None:
    """S6: a journal that can't be written: releases and drains go on."""
    journal = PlayedJournal(full=True)
    journal.record(dropped(), happened("lease.freed"), then=(done(),))
    assert journal.passed_on() == [done()]
    assert GrantLost not in {type(told) for told in journal.to_cards()}
    assert journal.published()[0].kind == "lease.freed"


def test_cards_are_told_once_that_the_journal_cannot_be_written() -> None:
    """S6: a state is told when it changes; each lost grant is told by itself."""
    journal = PlayedJournal(full=True)
    journal.record(happened(), then=(granted(1),))
    journal.record(happened(), then=(granted(2),))
    journal.later(10)
    told = journal.to_cards()
    assert told.count(JournalState(writable=False)) == 1
    assert [t.leases for t in told if isinstance(t, GrantLost)] == [("L1",), ("L2",)]


def test_alert_is_raised_once_and_cleared_once() -> None:
    """S6, W4: no new grants is an alert; it names the disk's own words."""
    journal = PlayedJournal(full=True)
    journal.record(happened())
    journal.record(happened())
    journal.full = False
    journal.record(happened())
    alerts = [event for event in journal.published() if event.kind.startswith("alert.")]
    assert [event.kind for event in alerts] == ["alert.raised", "alert.cleared"]
    assert alerts[0].why.endswith("so nothing is granted: disk is full")
    assert all((event.card, event.name) == (None, "journal") for event in alerts)


def test_what_could_not_be_written_is_written_with_the_next_record() -> None:
    """S6: the latest state of each lease, in the same transaction as the new one."""
    journal = PlayedJournal(full=True)
    journal.record(saved(1, attempt=1), happened())
    journal.record(saved(1, attempt=2), saved(2))
    journal.full = False
    journal.record(dropped(2), happened())
    assert journal.written("L1") == a_lease(1, attempt=2)
    assert journal.written("L2") is None
    latest = journal.tries[-1].latest
    assert list(latest.values()) == [saved(1, attempt=2), dropped(2)]
    assert [event.kind for event in journal.events] == [
        "lease.queued",
        "alert.raised",
        "lease.queued",
    ]


def test_last_state_of_a_lease_wins_within_one_record_too() -> None:
    """S6: a batch holds one word on each lease, the last one."""
    journal = PlayedJournal()
    journal.record(saved(1, attempt=1), saved(1, attempt=2))
    assert list(journal.tries[-1].latest.values()) == [saved(1, attempt=2)]


def test_same_lease_on_two_cards_is_two_records() -> None:
    """M2: a multi-card lease is kept for each of its cards."""
    journal = PlayedJournal()
    journal.record(saved(), SaveLease(card_key="GPU-1", lease=a_lease()))
    assert set(journal.disk) == {("GPU-0", "L1"), ("GPU-1", "L1")}


def test_baseline_of_a_card_is_kept_beside_its_leases() -> None:
    """B2: kept in the journal per boot; the last one wins."""
    journal = PlayedJournal(full=True)
    journal.record(SaveBaseline(card_key="GPU-0", baseline=MiB(400)))
    journal.record(saved(), SaveBaseline(card_key="GPU-0", baseline=MiB(300)))
    journal.full = False
    journal.later(2)
    assert journal.disk["GPU-0", ""] == SaveBaseline(card_key="GPU-0", baseline=MiB(300))


def test_nothing_is_passed_on_or_published_twice() -> None:
    """3.12: what was told when the write failed is not told again when it succeeds."""
    journal = PlayedJournal(full=True)
    journal.record(happened(), then=(done(),))
    journal.full = False
    journal.later(4)
    assert journal.passed_on() == [done()]
    seqs = [event.seq for event in journal.published()]
    assert seqs == sorted(set(seqs))


def test_journal_does_not_grow_without_end_while_it_cannot_be_written() -> None:
    """S6: the latest events are kept, the oldest are given up; leases never are."""
    journal = PlayedJournal(full=True)
    journal.record(saved())
    journal.record(*(happened() for _ in range(EVENTS_KEPT_UNWRITTEN + 50)))
    unwritten = journal.journal.unwritten
    assert len(unwritten.events) == EVENTS_KEPT_UNWRITTEN
    assert unwritten.events[-1].seq == journal.journal.last_seq
    assert list(unwritten.latest.values()) == [saved()]


# --- 3, 4, 5: time --------------------------------------------------------------------------------


def test_writing_is_tried_again_every_two_seconds() -> None:
    """3.9: the deadline of `try_at`; it fires at 2 s and not before."""
    journal = PlayedJournal(full=True)
    journal.record(happened())
    tries = len(journal.tries)
    journal.later(1.5)
    assert len(journal.tries) == tries
    journal.later(0.5)
    assert len(journal.tries) == tries + 1
    journal.later(1.5)
    assert len(journal.tries) == tries + 1
    journal.later(0.5)
    assert len(journal.tries) == tries + 2


def test_cards_are_told_when_it_can_be_written_again() -> None:
    """S6: grants go on as soon as the disk does."""
    journal = PlayedJournal(full=True)
    journal.record(saved())
    journal.full = False
    journal.later(2)
    assert journal.to_cards()[-1] == JournalState(writable=True)
    journal.later(10)
    assert journal.to_cards().count(JournalState(writable=True)) == 1
    assert journal.events[-1].kind == "alert.cleared"


def test_what_could_not_be_read_for_an_actor_is_read_again_after_two_seconds() -> None:
    """6: the deadline of `read_at`; of one role, for the last incarnation alone."""
    journal = PlayedJournal()
    for role, incarnation in (("card gpu0", 1), ("node", 1), ("card gpu0", 2)):
        journal.hear(KeptUnread(asked=ReadKept(role=role, incarnation=incarnation)))
    journal.later(1.5)
    assert journal.said == []
    journal.later(0.5)
    asked = [(one.asked.role, one.asked.incarnation) for one in journal.told_kept()]
    assert asked == [("node", 1), ("card gpu0", 2)]
    journal.later(10.0)
    assert len(journal.told_kept()) == 2


def test_read_for_an_actor_that_is_started_anew_takes_the_place_of_the_one_before() -> None:
    """6: the supervisor has given that one up."""
    journal = PlayedJournal()
    journal.hear(KeptUnread(asked=ReadKept(role="node", incarnation=1)))
    journal.hear(ReadKept(role="node", incarnation=2))
    journal.later(10.0)
    assert [one.asked.incarnation for one in journal.told_kept()] == [2]


def test_journal_with_nothing_to_write_writes_nothing() -> None:
    """Spec 15: an idle berthd touches no disk."""
    journal = PlayedJournal()
    journal.later(30)
    assert journal.tries == []


def test_old_events_are_dropped_every_ten_minutes() -> None:
    """S6: kept 30 days or 256 MiB; the deadline of `prune_at` fires each 600 s, not before."""
    journal = PlayedJournal(journal=Journal(prune_at=Instant(1600.0)))
    journal.later(599.5, step=599.5)
    assert journal.prunes() == 0
    journal.later(0.5)
    assert journal.prunes() == 1
    journal.later(599.5, step=599.5)
    assert journal.prunes() == 1
    journal.later(0.5)
    assert journal.prunes() == 2


def test_holds_that_could_not_be_written_are_overlaid_on_those_that_were() -> None:
    """3: an actor that starts while the disk is full takes up what is, not what was written."""
    other = replace(WAITING, request=RequestId("r9"))
    journal = PlayedJournal(full=True)
    journal.record(DropHold(request=WAITING.request))
    journal.record(other)
    assert overlaid(Kept(holds=(WAITING,)), journal.journal.unwritten).holds == (other,)


def test_new_journal_drops_old_events_at_its_first_tick() -> None:
    """S6: a berthd that never runs for ten minutes would never drop any."""
    _, effects = decide(Journal(), Dated(event=JournalTick(), wall=WALL), Instant(5.0))
    assert len(effects) == 1


def test_disk_that_stays_full_does_not_keep_old_events_from_being_dropped() -> None:
    """S6: dropping events is what may make room for the next write."""
    journal = PlayedJournal(full=True, journal=Journal(prune_at=Instant(1010.0)))
    journal.record(happened())
    journal.later(12)
    assert journal.prunes() == 1
