"""A card that sleeps, throws Xids, or whose driver does not tell who holds what."""

from msgspec.structs import replace

from berth.actors.card.books import close
from berth.actors.card.messages import CardEffect, CardRead, SetPace, WatchAgain, XidThrown
from berth.actors.card.state import Measured
from berth.actors.card.view import describe
from berth.actors.journal.messages import Happened, Record
from berth.readings import Reading, Unknown
from berth.standing import How
from berth.units import Seconds, after
from tests.cores.playing import Played

BLIND = "no process is told from another here"


def happened(said: list[CardEffect], kind: str) -> list[Happened]:
    entries = [entry for one in said if isinstance(one, Record) for entry in one.entries]
    return [one for one in entries if isinstance(one, Happened) and one.kind == kind]


# --- asleep ---------------------------------------------------------------------------------------


def test_sleeping_card_is_woken_by_a_request_and_the_grant_waits_for_the_reading() -> None:
    """B1: nothing is granted on what was read before it fell asleep."""
    card = Played()
    card.unread(Unknown.ASLEEP)
    assert SetPace(fast=False, wake=True) in card.asks("chat", 4000)
    waiter = card.card.waiter(card.engines["chat"].request)
    assert waiter is not None
    assert [blocker.how for blocker in waiter.blockers or ()] == [How.WAKING]
    card.later(1.0, reading=False)
    assert not card.granted("chat")
    card.readable_again()
    assert card.granted("chat")


def test_card_may_sleep_again_once_nobody_holds_it_or_waits() -> None:
    """B1: without a lease it is not woken to be read."""
    card = Played()
    said = card.asks("chat", 4000)
    assert SetPace(fast=True, wake=True) in said
    card.started("chat")
    card.gives_back("chat")
    said = card.later(1.0)
    assert card.lease("chat") is None
    assert said.count(SetPace(fast=False, wake=False)) == 1


def test_probe_that_was_started_again_is_told_the_pace() -> None:
    """A new probe knows nothing: a sleeping card would never be woken for who waits on it."""
    card = Played()
    card.unread(Unknown.ASLEEP)
    card.asks("chat", 4000)
    assert SetPace(fast=False, wake=True) in card.hear(WatchAgain())


def test_wait_for_a_card_that_does_not_wake_ends() -> None:
    """Q3: as for any card that cannot be read."""
    card = Played()
    card.unread(Unknown.ASLEEP)
    card.asks("chat", 4000, wait=5.0)
    card.later(5.0, reading=False)
    assert not card.waits("chat")
    assert happened(card.said, "lease.refused")[0].facts["code"] == "unmeasured"


# --- Xids -----------------------------------------------------------------------------------------


def test_xid_is_an_event_of_the_card_and_changes_nothing() -> None:
    """Whether a card can be read is for readings to say."""
    card = Played()
    before = card.card
    (event,) = happened(card.hear(XidThrown(xid=31, times=3)), "card.xid")
    assert (event.card, event.facts) == ("gpu0", {"xid": 31, "times": 3})
    assert event.why.startswith("Xid 31: ")
    assert event.why.endswith(", 3 times")
    assert card.card == before


# --- a driver that does not tell who holds what ---------------------------------------------------


class Blind(Played):
    """A card whose readings have no rows."""

    def look(self) -> Reading:
        return replace(super().look(), processes=(), blind=BLIND)

    def measured(self) -> Measured:
        assert self.card.measured is not None
        return self.card.measured

    def room(self) -> int:
        return close(self.card, self.measured()).room


def test_leases_on_a_blind_card_are_not_taken_for_strangers() -> None:
    """B3, H5: what no row explains is what the leases asked for; twice it would be contested."""
    card = Blind(total=1000)
    card.runs("chat", 600)
    card.later(4.0)
    assert card.measured().stowaways == ()
    assert card.measured().unexplained == 0
    assert card.room() == 400
    assert happened(card.said, "lease.contested") == []
    card.asks("small", 400)
    assert card.granted("small")


def test_blind_card_says_why_it_does_not_tell_who_holds_what() -> None:
    """A person sees leases without a figure, and must read the reason beside them."""
    card = Blind(total=1000)
    shown = describe(card.card, card.now).card
    assert (shown.state, shown.why) == ("ok", BLIND)


def test_lease_on_a_blind_card_is_freed_by_the_card_alone() -> None:
    """B3: a driver without process figures: the second half alone, and not before it shows."""
    card = Blind(total=1000)
    card.runs("chat", 600)
    card.runs("other", 300)
    card.later(2.0)
    card.gone("other", lingers=True)
    card.later(1.0)
    assert card.lease("other") is not None
    card.uses("other", None)
    card.later(1.0)
    assert card.lease("other") is None
    card.gone("chat", lingers=True)
    card.later(1.0)
    assert card.lease("chat") is not None
    card.uses("chat", None)
    card.later(1.0)
    assert card.lease("chat") is None


def test_strangers_on_a_blind_card_take_room_once_leases_hold_their_asks() -> None:
    """B2: what is more than the leases asked for is unexplained, and nobody's."""
    card = Blind(total=1000)
    card.runs("chat", 300)
    card.later(2.0)
    card.unexplained = 500
    card.read()
    assert card.measured().unexplained == 500
    assert card.room() == 200
    card.asks("more", 400)
    assert not card.granted("more")


def test_whole_card_on_a_blind_card_is_handed_over() -> None:
    """B4: a holder of the whole card covers all that is used, and nothing once it is free."""
    card = Blind(total=1000)
    card.runs("chat", None)
    card.uses("chat", 700)
    card.later(2.0)
    assert card.measured().unexplained == 0
    assert happened(card.said, "lease.contested") == []
    card.gone("chat")
    card.later(1.0)
    card.asks("next", None)
    card.later(1.0)
    assert card.granted("next")


def test_reading_that_a_release_overtook_is_still_covered() -> None:
    """It shows the memory of a lease that had not released: nobody is overdrawn by it."""
    card = Blind(total=1000)
    card.runs("chat", 600)
    card.runs("other", 300)
    card.later(2.0)
    overtaken = card.look()
    card.now = after(card.now, Seconds(0.25))
    card.gone("chat", lingers=True)
    card.hear(CardRead(reading=overtaken))
    assert card.measured().unexplained == 0
    assert happened(card.said, "lease.contested") == []
    card.now = after(card.now, Seconds(0.25))
    card.read()
    assert card.measured().unexplained == 600
    assert happened(card.said, "lease.contested") == []


# --- contested ------------------------------------------------------------------------------------


def test_what_one_reading_shows_beside_the_grants_is_not_contested() -> None:
    """H5: rows and memory are two calls; who dies between them leaves nobody's memory."""
    card = Played(total=1000)
    card.runs("chat", 800)
    card.unexplained = 800
    glitch = card.look()
    card.later(1.0, reading=False)
    for _ in range(2):  # also when the same reading comes twice
        card.hear(CardRead(reading=glitch))
    card.unexplained = 0
    card.later(4.0)
    assert happened(card.said, "lease.contested") == []


def test_what_two_readings_show_beside_the_grants_is_contested_once() -> None:
    """H5: told once, with who it is."""
    card = Played(total=1000)
    card.runs("chat", 800)
    card.uses("chrome", 500)
    card.later(8.0)
    (event,) = happened(card.said, "lease.contested")
    assert event.why.startswith("chrome took")
