"""What a waiter and a holder are told beside the plain reason; how long hand-offs take."""

import msgspec
import pytest

from berth.actors.card.messages import HolderAnswered, HolderWord, Resumed
from berth.actors.card.state import HAND_OFFS_KEPT, HandOffs
from berth.actors.card.view import describe
from berth.actors.journal.messages import Record, SaveHandOffs
from berth.actors.node.inbox import CallId, RequestStands
from berth.cli.render.figures import room_of
from berth.client.state import FOR_EVER
from berth.lease import Releasing
from berth.units import MiB, Seconds
from berth.views import LeaseView, WaiterView
from tests.cores.playing import Played

GIB = 1024


def holder(card: Played, name: str) -> LeaseView:
    """Return the row of a lease as status shows it now."""
    return next(row for row in describe(card.card, card.now).leases if row.name == name)


def waiter(card: Played, name: str) -> WaiterView:
    """Return the row of a waiter as status shows it now."""
    return next(row for row in describe(card.card, card.now).waiting if row.name == name)


def tells(card: Played, name: str, in_flight: int) -> None:
    """Let a holder say how many replies it has still to give."""
    engine = card.engines[name]
    card.hear(
        HolderAnswered(
            call=CallId(number=999),
            lease=engine.lease,
            peer=engine.process,
            attempt=engine.attempt,
            word=HolderWord.HEARD,
            in_flight=in_flight,
        )
    )


def contended() -> Played:
    """Return a card on which images waits for chat, which was asked to finish."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB)
    card.later(5)
    card.asks("images", 16 * GIB)
    return card


def hands_over(card: Played, old: str, new: str) -> None:
    """Let a holder that was asked give way to a waiter, and that one serve."""
    card.says(old, "heard")
    card.says(old, "boundary")
    card.says(old, "released")
    card.later(1)
    assert card.granted(new)
    card.started(new)
    card.uses(new, 16 * GIB)
    card.says(new, "ready")
    card.says(new, "served")
    card.read()


def test_waiter_hears_how_many_replies_are_in_flight() -> None:
    """The wrapper has counted them in its slots, so the waiter is told."""
    card = contended()
    card.later(6)
    tells(card, "chat", 2)
    row = waiter(card, "images")
    assert row.why == "chat is finishing 2 replies; then 24.0 GiB is free and you fit"
    assert row.blockers[0].in_flight == 2
    assert row.blockers[0].mib == 14 * GIB
    assert row.blockers[0].lease == card.engines["chat"].lease
    assert holder(card, "chat").note == "asked to finish for images 6s ago; 2 replies in flight"
    assert holder(card, "chat").for_ == card.engines["images"].request


def test_a_reply_that_ends_is_news_to_the_waiter() -> None:
    """The count is the progress that a person watches."""
    card = contended()
    tells(card, "chat", 2)
    card.said.clear()
    tells(card, "chat", 1)
    told = [message for message in card.to_node() if isinstance(message, RequestStands)]
    assert [message.why for message in told] == [
        "chat is finishing 1 reply; then 24.0 GiB is free and you fit"
    ]


def test_what_a_waiter_lacks_is_told_in_mib() -> None:
    """What it is short of is the figure that settles arguments."""
    card = contended()
    row = waiter(card, "images")
    assert (row.short_mib, row.then_mib) == (6 * GIB, 24 * GIB)
    assert holder(card, "chat").counts_mib == 14 * GIB
    shown = describe(card.card, card.now).card
    assert (shown.books_free_mib, shown.driver_free_mib) == (10 * GIB, 10 * GIB)


def test_the_time_left_of_a_turn_runs_down_in_the_sentence() -> None:
    """Q4: the waiter is told how much is left, and it is right when it is read."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB, min_turn=Seconds(100.0))
    card.asks("images", 16 * GIB)
    first = waiter(card, "images")
    card.later(40)
    later = waiter(card, "images")
    assert first.why == "chat keeps its turn for 1m40s"
    assert later.why == "chat keeps its turn for 1m"
    assert (later.eta_s, later.eta_of) == (60.0, "turn")


def test_the_turn_of_a_job_is_no_time_for_its_own_priority() -> None:
    """Q2: it runs to its end whatever its turn, so nothing may be promised of the turn's end."""
    card = Played(total=24 * GIB)
    card.runs("train", 14 * GIB, boundary=False, priority="interactive", min_turn=Seconds(120.0))
    card.asks("images", None, wait=1000.0)
    for _ in range(2):
        row = waiter(card, "images")
        assert [(one.how, one.left_s) for one in row.blockers] == [("busy", None)]
        assert row.why == "train is a job and runs to its end"
        assert (row.eta_s, row.eta_of) == (None, None)
        card.later(130, step=2.0)
    assert card.orders("train") == []


@pytest.mark.parametrize("boundary", [True, False])
def test_the_turn_of_one_that_outranks_the_waiter_is_no_time(boundary: bool) -> None:
    """Q2: the lower waits when the turn is over as well, so it is told so from the start."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB, boundary=boundary, priority="foreground", min_turn=Seconds(60.0))
    card.asks("images", 16 * GIB)
    assert card.blockers("images") == [("chat", "outranks")]
    assert waiter(card, "images").eta_s is None


@pytest.mark.parametrize("boundary", [True, False])
def test_a_turn_is_a_time_for_a_higher_priority(boundary: bool) -> None:
    """Q4: its end is what lets the order go out, to a job as well, and then the order goes out."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB, boundary=boundary, min_turn=Seconds(60.0))
    card.asks("images", 16 * GIB, priority="foreground")
    row = waiter(card, "images")
    assert (row.eta_s, row.eta_of) == (60.0, "turn")
    card.later(61)
    assert card.orders("chat") == ["drain"]


@pytest.mark.parametrize(
    ("wait", "told"), [(FOR_EVER, None), (86400.0 * 366, None), (86400.0 * 364, 86400.0 * 364)]
)
def test_who_waits_as_long_as_it_takes_has_no_end_told(wait: float, told: float | None) -> None:
    """A script that gave way without a limit waits ten years: that is no figure for a person."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB)
    card.asks("script", 16 * GIB, wait=Seconds(wait))
    assert waiter(card, "script").wait_left_s == told


def test_what_the_driver_shows_free_and_what_could_be_granted_have_two_names() -> None:
    """A card that is leased whole has no room, however little of it is used: the board says 0."""
    card = Played(total=24 * GIB)
    card.runs("script", None)
    card.uses("script", 4 * GIB)
    card.read()
    shown = describe(card.card, card.now).card
    assert (shown.free_mib, shown.room_mib) == (20 * GIB, 0)
    assert room_of(msgspec.to_builtins(shown)) == shown.room_mib
    card.unread()
    shown = describe(card.card, card.now).card
    assert (shown.free_mib, shown.room_mib) == (None, None)


def test_room_is_the_less_of_books_and_driver_and_never_below_nothing() -> None:
    """B4: a grant needs both; what is overdrawn is no room either."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB)
    card.uses("chat", 4 * GIB)
    card.uses("chrome", 3 * GIB)
    card.read()
    assert describe(card.card, card.now).card.room_mib == 7 * GIB
    card.uses("chrome", 12 * GIB)
    card.read()
    assert describe(card.card, card.now).card.room_mib == 0


def test_a_silent_holder_is_told_as_such() -> None:
    """H6: who does not answer is not "finishing"."""
    card = contended()
    card.later(6)
    assert waiter(card, "images").blockers[0].how == "silent"
    assert "it does not answer" in (holder(card, "chat").note or "")


def test_hand_off_is_measured_from_the_order_to_the_grant() -> None:
    """U6: the ETA rests on what hand-offs have taken here, and on nothing else."""
    card = contended()
    assert waiter(card, "images").eta_s is None
    card.later(2)
    hands_over(card, "chat", "images")
    assert card.card.hand_offs == HandOffs(count=1, recent=(Seconds(2.5),))
    (granted,) = [e for e in card.events("lease.granted") if e.name == "images"]
    assert granted.why == "16.0 GiB, interactive; waited 2.5s for chat"


def test_the_next_hand_off_is_expected_to_take_as_long() -> None:
    """U6: a measured hand-off is arithmetic; one that takes longer is unknown again."""
    card = contended()
    card.later(2)
    hands_over(card, "chat", "images")
    card.later(5)
    card.asks("chat2", 14 * GIB)
    row = waiter(card, "chat2")
    assert (row.eta_s, row.eta_of) == (2.5, "handoff")
    card.later(1)
    assert waiter(card, "chat2").eta_s == 1.5
    card.later(2)
    assert waiter(card, "chat2").eta_s is None


def test_a_grant_without_a_hand_off_is_none() -> None:
    """Waiting for a stowaway to go is no hand-off, and would spoil the median."""
    card = Played(total=24 * GIB)
    card.uses("chrome", 20 * GIB)
    card.read()
    card.asks("chat", 14 * GIB)
    card.later(5)
    card.uses("chrome", None)
    card.later(3)
    assert card.granted("chat")
    assert card.card.hand_offs == HandOffs()


def test_median_is_of_the_latest() -> None:
    """An engine that was made faster shows in the ETA after a while; the count is of all."""
    hand_offs = HandOffs()
    for took in range(100):
        hand_offs = hand_offs.with_one(Seconds(float(took)))
    assert hand_offs.count == 100
    assert len(hand_offs.recent) == HAND_OFFS_KEPT
    assert hand_offs.median == 84.0


def test_hand_offs_are_kept_and_come_back_after_a_restart() -> None:
    """A berthd that was just started knows as much as before."""
    card = contended()
    card.later(2)
    hands_over(card, "chat", "images")
    records = [effect for effect in card.said if isinstance(effect, Record)]
    (kept,) = [e for r in records for e in r.entries if isinstance(e, SaveHandOffs)]
    assert kept == SaveHandOffs(card_key="GPU-0", count=1, recent=(Seconds(2.5),))
    card.restart()
    assert card.card.hand_offs == HandOffs(count=1, recent=(Seconds(2.5),))


def test_stuck_lease_names_what_is_shown_and_the_way_out() -> None:
    """H4: a red row without a way out is a dead end."""
    card = Played(total=24 * GIB)
    card.runs("train", 20 * GIB)
    card.says("train", "released", lingers=True)
    card.later(40)
    row = holder(card, "train")
    assert row.note == "said it released 40s ago, but gpu0 still shows 20.0 GiB"
    assert row.way_out == "berth reclaim train"


def test_a_name_that_a_shell_would_take_apart_is_not_put_into_a_command() -> None:
    """The way out is there to be pasted."""
    card = Played(total=24 * GIB)
    card.runs("a b; rm", 20 * GIB)
    card.says("a b; rm", "released", lingers=True)
    card.later(40)
    assert holder(card, "a b; rm").way_out == f"berth reclaim {card.engines['a b; rm'].lease}"


def test_what_came_back_is_told_with_its_size() -> None:
    """A figure says who gave how much, and to what that adds up."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB)
    card.gives_back("chat")
    lease = card.lease("chat")
    assert isinstance(lease, Releasing)
    assert lease.had == MiB(14 * GIB)
    card.uses("chat", None)
    card.later(1)
    (freed,) = card.events("lease.freed")
    assert freed.why.startswith("14.0 GiB back, ")


def test_holder_of_a_card_that_cannot_be_read_says_so() -> None:
    """B1: its figure is the last one, and the row must not look like a fresh one."""
    card = Played(total=24 * GIB)
    card.runs("chat", 14 * GIB)
    card.unread()
    assert holder(card, "chat").note == (
        "gpu0 cannot be read: last seen with 14.0 GiB; it grants nothing"
    )


def test_hold_runs_out_with_the_time_that_the_machine_slept() -> None:
    """S8: a hold for an hour is over an hour later, not an hour of waking later."""
    card = Played(total=24 * GIB)
    card.asks("hold", None, priority="hold", hold_for=Seconds(3600.0), reason="a game")
    assert holder(card, "hold").note == "a game; held by a person for 1h00m more"
    card.hear(Resumed(slept=Seconds(3000.0)))
    assert holder(card, "hold").left_s == 600.0
    card.later(598, step=2.0)
    assert holder(card, "hold").state == "running"
    card.later(3)
    card.read()
    assert not card.granted("hold")


def test_waiter_behind_a_hold_is_told_until_when() -> None:
    """Q1: a hold with a time is an ETA that is arithmetic."""
    card = Played(total=24 * GIB)
    card.asks("hold", None, priority="hold", hold_for=Seconds(60.0))
    card.asks("chat", 14 * GIB)
    row = waiter(card, "chat")
    assert row.why == "a person keeps the card for 1m (berth release ends it)"
    assert (row.eta_s, row.eta_of) == (60.0, "hold")
