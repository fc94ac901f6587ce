"""What holds for the journal while its disk comes and goes, whatever is told to it.

Cards tell it records with riders: grants, orders, answers. The disk is full now and then. berthd
may be killed after any of it: what is on the disk then is what the next berthd has.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from berth.actors.card.messages import GrantLost, JournalState
from berth.actors.journal.core import PassOn, PublishEvent, TellCards
from berth.actors.journal.messages import DropLease, Entry, Happened, SaveLease
from berth.actors.node.inbox import OrderGiven, RequestGranted, ToNode
from berth.ids import Attempt, CardName, LeaseId
from berth.lease import Order
from berth.units import Seconds
from tests.cores.playing_journal import PlayedJournal, a_lease, done, dropped, granted, saved

TRIED_AGAIN_WITHIN = 3.0


class JournalMachine(RuleBasedStateMachine):
    """A journal, its disk, and a card and a node that believe what they are told."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = PlayedJournal()
        self.number = 0
        self.books: dict[str, SaveLease] = {}
        self.granted: set[str] = set()
        self.lost: set[str] = set()
        self.card_thinks_writable = True
        self.published: list[int] = []
        self.owed: list[ToNode] = []
        self.passed: list[ToNode] = []
        self.seen = 0

    # --- what happens -----------------------------------------------------------------------

    @rule(gap=st.booleans())
    def grant(self, gap: bool) -> None:
        """A card grants. It does so only while it thinks that the journal can be written."""
        if not self.card_thinks_writable and not gap:
            return
        self.number += 1
        entry = saved(self.number)
        self.books[entry.lease.id] = entry
        self._record(entry, self._told("lease.granted"), then=(granted(self.number),))

    @rule(attempt=st.integers(1, 9))
    def order(self, attempt: int) -> None:
        """A card orders a holder: the order is journaled first, and goes out in any case."""
        for lease in list(self.books)[:1]:
            number = int(lease[1:])
            entry = saved(number, attempt)
            self.books[lease] = entry
            given = OrderGiven(
                card=CardName("gpu0"),
                lease=LeaseId(lease),
                order=Order.DRAIN,
                attempt=Attempt(attempt),
                grace=Seconds(1.0),
                why="",
            )
            self._owe(given)
            self._record(entry, self._told("lease.draining", number), then=(given,))

    @rule()
    def free(self) -> None:
        """A card frees a lease: who holds it hears so in any case."""
        for lease in list(self.books)[:1]:
            number = int(lease[1:])
            del self.books[lease]
            answer = done(1000 + self.number)
            self._owe(answer)
            self._record(dropped(number), self._told("lease.freed", number), then=(answer,))

    @rule()
    def happen(self) -> None:
        """Something happens that changes no lease."""
        self._record(Happened(kind="stowaway.seen", card=CardName("gpu0")))

    @rule(full=st.booleans())
    def fill_or_empty_the_disk(self, full: bool) -> None:
        self.journal.full = full

    @rule(seconds=st.sampled_from([0.5, 2.5, 10.0]))
    def pass_time(self, seconds: float) -> None:
        self.journal.later(seconds)
        self._follow()

    def _owe(self, message: ToNode) -> None:
        self.owed.append(message)

    def _told(self, kind: str, number: int | None = None) -> Happened:
        lease = LeaseId(f"L{self.number if number is None else number}")
        return Happened(kind=kind, card=CardName("gpu0"), lease=lease)

    def _record(self, *entries: Entry, then: tuple[ToNode, ...] = ()) -> None:
        self.journal.record(*entries, then=then)
        self._follow()

    def _follow(self) -> None:
        """Do what the card and the node do with what they hear."""
        said, self.seen = self.journal.said[self.seen :], len(self.journal.said)
        for effect in said:
            match effect:
                case PassOn(message=RequestGranted() as grant):
                    self.granted.add(grant.lease)
                case PassOn(message=message):
                    self.passed.append(message)
                case TellCards(message=GrantLost(leases=leases)):
                    self.card_thinks_writable = False
                    for lease in leases:
                        self.lost.add(lease)
                        if self.books.pop(lease, None) is not None:
                            self.journal.record(DropLease(card_key="GPU-0", lease=lease))
                            self._follow()
                case TellCards(message=JournalState(writable=writable)):
                    self.card_thinks_writable = writable
                case PublishEvent(event=event):
                    self.published.append(event.seq)
                case _:
                    pass

    # --- what holds -------------------------------------------------------------------------

    @invariant()
    def grant_that_is_told_is_on_the_disk(self) -> None:
        """S6: a grant that a client has seen survives a kill at any moment."""
        for lease in self.granted & set(self.books):
            assert self.journal.written(lease) is not None
        assert not self.granted & self.lost

    @invariant()
    def every_grant_is_told_or_lost(self) -> None:
        """A card must not keep a lease that nobody will ever start."""
        assert set(self.books) <= self.granted

    @invariant()
    def orders_and_answers_go_on(self) -> None:
        """S6: releases and drains need no disk; each is told once, in its order."""
        assert self.passed == self.owed

    @invariant()
    def card_knows_whether_it_may_grant(self) -> None:
        assert self.card_thinks_writable == self.journal.journal.writable

    @invariant()
    def alert_stands_as_long_as_the_trouble(self) -> None:
        """One alert when it begins, one word when it is over; people hear of both."""
        kinds = [e.kind for e in self.journal.published() if e.kind.startswith("alert.")]
        assert kinds == ["alert.raised", "alert.cleared"] * (len(kinds) // 2) + (
            [] if self.card_thinks_writable else ["alert.raised"]
        )

    @invariant()
    def events_are_numbered_without_a_gap(self) -> None:
        """W3: whoever sees a gap asks for what is missing. Lost grants' events never were."""
        assert self.published == sorted(set(self.published))
        if not self.lost:
            assert self.published == list(range(1, len(self.published) + 1))

    def teardown(self) -> None:
        """Once there is room again, the disk says what the books say, and nothing is left over."""
        self.journal.full = False
        self.journal.later(TRIED_AGAIN_WITHIN)
        self._follow()
        self.journal.later(TRIED_AGAIN_WITHIN)
        self._follow()
        assert self.card_thinks_writable
        kept = {
            lease: self.journal.written(lease)
            for lease in map("L{}".format, range(1, self.number + 1))
        }
        assert {lease: on for lease, on in kept.items() if on is not None} == {
            lease: entry.lease for lease, entry in self.books.items()
        }
        assert {event.seq for event in self.journal.events} >= set(self.published)


def test_played_leases_tell_their_attempts_apart() -> None:
    """The machine above compares leases: two orders must not look alike."""
    assert a_lease(1, 1) != a_lease(1, 2)


JournalMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestJournalMachine = JournalMachine.TestCase
