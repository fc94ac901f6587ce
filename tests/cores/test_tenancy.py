"""A script's lease, from asking to its end: orders, breaks of the line, deadlines."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from berth.client.core import decide
from berth.client.messages import (
    Connected,
    Disconnected,
    Done,
    Failure,
    GiveBack,
    GiveWay,
    Granted,
    LeasedCard,
    Ordered,
    Passed,
    Queued,
    Refused,
    Send,
    Served,
    TenancyEvent,
    Warn,
)
from berth.client.state import (
    FOR_EVER,
    WITHDRAW_WITHIN,
    Asking,
    Holding,
    Over,
    Returning,
    Starting,
    Tenancy,
    Wish,
    Withdrawing,
    begin,
    wake_at,
)
from berth.errors import Code
from berth.lease import START_WITHIN
from berth.units import Instant, Seconds, after
from berth.wire import TRY_FOR

GPU0 = LeasedCard(card="gpu0", uuid="GPU-0", vendor="nvidia")


@dataclass
class Played:
    """A script's lease under play; `sent` is what it said since last looked at."""

    wait: float = 60.0
    berthd_seen: bool = True
    now: Instant = Instant(1000.0)
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    tenancy: Tenancy = field(init=False)

    def __post_init__(self) -> None:
        wish = Wish(
            terms={"name": "train", "needs_mib": 14000},
            key="secret",
            pid=77,
            wait=Seconds(self.wait),
            berthd_seen=self.berthd_seen,
        )
        self.tenancy = begin(wish, self.now)

    def hear(self, *events: TenancyEvent) -> list[str]:
        """Let things happen; return the ops that were sent."""
        self.sent = []
        for event in events:
            self.tenancy, effects = decide(self.tenancy, event, self.now)
            for effect in effects:
                match effect:
                    case Send():
                        self.sent.append((effect.op, dict(effect.fields)))
                    case Warn():
                        self.warned.append(effect.text)
        return [op for op, _ in self.sent]

    def passes(self, seconds: float) -> list[str]:
        """Let time pass."""
        self.now = after(self.now, Seconds(seconds))
        return self.hear(Passed())

    def holding(self, lease: str = "L7") -> "Played":
        """Be granted, and heard to have started."""
        self.hear(Connected(), granted(lease), Done(op="lease.started", lease=lease))
        assert isinstance(self.tenancy.phase, Holding)
        return self

    def is_over(self) -> bool:
        """Tell whether it ended without a failure."""
        return self.tenancy.phase == Over()

    def words(self) -> list[tuple[str, int]]:
        """Return the words said in answer to orders."""
        return [(f["state"], f["attempt"]) for op, f in self.sent if op == "lease.answer"]


def granted(lease: str = "L7", start_by: float | None = 1030.0) -> Granted:
    by = None if start_by is None else Instant(start_by)
    return Granted(lease=lease, name="train", cards=(GPU0,), start_by=by)


def ordered(order: str, attempt: int = 1, lease: str = "L7") -> Ordered:
    return Ordered(order=order, lease=lease, attempt=attempt, why="for chat")


def refused(op: str, code: str, lease: str = "", *, waited_out: bool = False) -> Refused:
    failure = Failure(code=code, message="a sentence", waited_out=waited_out)
    return Refused(op=op, lease=lease, failure=failure)


def test_request_carries_its_terms_key_and_wait() -> None:
    """Spec 16: what `lease.request` needs, and the key it is found again under."""
    played = Played()
    assert played.hear(Connected()) == ["lease.request"]
    assert played.sent[0][1] == {
        "name": "train",
        "needs_mib": 14000,
        "key": "secret-0",
        "wait_s": 60.0,
        "waited_s": 0.0,
    }


def test_grant_is_the_scripts_only_when_its_start_was_heard() -> None:
    """S6: a grant not started in time is somebody else's; a script must not work on it."""
    played = Played()
    assert played.hear(Connected(), granted()) == ["lease.request", "lease.started"]
    assert played.sent[1][1] == {"lease": "L7", "pids": [77]}
    assert not played.tenancy.settled
    played.hear(Done(op="lease.started", lease="L7"))
    assert played.tenancy.settled


def test_grant_that_was_slept_through_is_given_back_and_asked_for_anew() -> None:
    """S6: `start_by` is near, so the card may go to somebody else: nothing is started."""
    played = Played()
    played.hear(Connected())
    played.now = Instant(1029.5)
    assert played.hear(granted()) == ["lease.release", "lease.request"]
    assert played.sent[1][1]["key"] == "secret-1"
    assert isinstance(played.tenancy.phase, Asking)


def test_start_that_is_refused_for_good_is_not_tried_for_ever() -> None:
    """Asked anew it would be granted and refused again, a lease left behind each time."""
    played = Played()
    played.hear(Connected(), granted())
    assert played.hear(refused("lease.started", Code.NOT_YOURS, "L7")) == []
    assert isinstance(played.tenancy.phase, Over)
    assert played.tenancy.phase.failure is not None


def test_start_that_came_too_late_asks_anew() -> None:
    """Berthd took the grant back while the word was on its way."""
    played = Played()
    played.hear(Connected(), granted())
    assert played.hear(refused("lease.started", "not_found", "L7")) == ["lease.request"]
    assert played.sent[0][1]["key"] == "secret-1"


def test_start_that_is_not_heard_has_an_end() -> None:
    """Every wait has a deadline: the script is told, and the grant given back."""
    played = Played()
    played.hear(Connected(), granted())
    assert played.passes(START_WITHIN + 0.1) == ["lease.release"]
    assert isinstance(played.tenancy.phase, Over)


@pytest.mark.parametrize("code", ["too_big", "no_card", "wait_expired"])
def test_refusal_ends_it_with_code_and_sentence(code: str) -> None:
    """A script is told what the command line is told."""
    played = Played()
    played.hear(Connected(), refused("lease.request", code, waited_out=code == "wait_expired"))
    phase = played.tenancy.phase
    assert isinstance(phase, Over)
    assert phase.failure == Failure(
        code=code, message="a sentence", waited_out=code == "wait_expired"
    )


def test_waiter_asks_again_under_its_key_with_what_it_has_waited() -> None:
    """S6: berthd restarted; the request finds its place as far as the protocol can tell it."""
    played = Played()
    played.hear(Connected(), Queued(request="r7", why="chat is at work"))
    played.passes(20.0)
    assert played.hear(Disconnected(), Connected()) == ["lease.request"]
    assert played.sent[0][1]["key"] == "secret-0"
    assert played.sent[0][1]["waited_s"] == pytest.approx(20.0)


def test_berthd_that_was_never_heard_is_tried_for_ten_seconds() -> None:
    """R4: a restart of berthd takes a moment; nobody at all is told soon."""
    played = Played()
    assert played.passes(TRY_FOR - 0.1) == []
    assert isinstance(played.tenancy.phase, Asking)
    played.passes(0.2)
    assert isinstance(played.tenancy.phase, Over)


def test_no_berthd_since_boot_is_told_at_once() -> None:
    """R4: nobody is restarting."""
    played = Played(berthd_seen=False)
    played.passes(0.0)
    phase = played.tenancy.phase
    assert isinstance(phase, Over)
    assert phase.failure is not None
    assert phase.failure.code == "no_berth"


def test_waiter_whose_berthd_stays_away_waits_its_wait_and_no_longer() -> None:
    """R4: one that was heard waits on; its wait ends all the same."""
    played = Played(wait=60.0)
    played.hear(Connected(), Queued(request="r7"), Disconnected())
    played.passes(59.0)
    assert isinstance(played.tenancy.phase, Asking)
    played.passes(1.1)
    phase = played.tenancy.phase
    assert isinstance(phase, Over)
    assert phase.failure is not None
    assert phase.failure.waited_out


def test_order_is_heard_and_noted_and_nothing_else_happens() -> None:
    """S5: a script gives way at its own boundary."""
    played = Played().holding()
    played.hear(ordered("drain", 3))
    assert played.words() == [("heard", 3)]
    assert played.tenancy.wanted


def test_continue_takes_the_order_back() -> None:
    """Q3: nobody waits any more, so the script need not give way."""
    played = Played().holding()
    played.hear(ordered("drain", 3), ordered("continue", 4))
    assert played.words() == [("heard", 3), ("heard", 4)]
    assert not played.tenancy.wanted
    assert played.hear(GiveWay(wait=FOR_EVER)) == []


def test_giving_way_says_boundary_gives_back_and_queues_anew() -> None:
    """S5: the card goes to who waits; the script comes back under another key."""
    played = Played().holding()
    played.hear(ordered("drain", 3))
    assert played.hear(GiveWay(wait=Seconds(500.0))) == ["lease.answer", "lease.release"]
    assert played.words() == [("boundary", 3)]
    assert not played.tenancy.settled
    assert played.hear(Done(op="lease.release", lease="L7")) == ["lease.request"]
    assert (played.sent[0][1]["key"], played.sent[0][1]["wait_s"]) == ("secret-1", 500.0)
    played.hear(granted("L9"), Done(op="lease.started", lease="L9"))
    assert isinstance(played.tenancy.phase, Holding)
    assert played.tenancy.phase.lease == "L9"


def test_continue_that_crosses_a_release_comes_too_late() -> None:
    """The memory is gone already: a release that berthd has not heard is said again."""
    played = Played().holding()
    played.hear(ordered("drain"), GiveWay(wait=FOR_EVER))
    assert played.hear(ordered("continue", 2)) == ["lease.release"]
    assert isinstance(played.tenancy.phase, Returning)


def test_release_is_said_again_until_it_is_heard() -> None:
    """A long-lived notebook gave its card back while berthd was away: it must not stay leased."""
    played = Played().holding()
    assert played.hear(Disconnected(), GiveBack()) == ["lease.release"]
    assert played.passes(5.1) == ["lease.release"]
    assert played.hear(Connected()) == ["lease.release"]
    assert isinstance(played.tenancy.phase, Returning)
    played.hear(refused("lease.release", "not_found", "L7"))
    assert played.is_over()


def test_release_that_failed_inside_berthd_is_tried_again() -> None:
    """`internal` says nothing about the lease: it may still be there."""
    played = Played().holding()
    played.hear(GiveBack())
    assert played.hear(refused("lease.release", "internal", "L7")) == ["lease.release"]


def test_giving_way_to_a_berthd_that_stays_away_ends_with_its_wait() -> None:
    """The script asked for so long; it is told."""
    played = Played().holding()
    played.hear(ordered("drain"), Disconnected(), GiveWay(wait=Seconds(8.0)))
    played.passes(5.1)
    assert isinstance(played.tenancy.phase, Returning)
    played.passes(5.1)
    assert isinstance(played.tenancy.phase, Over)


def test_stopped_script_gives_way_for_good() -> None:
    """`berth stop`: the lease does not come back, and the script is told who said so."""
    played = Played().holding()
    played.hear(Ordered(order="stop", lease="L7", attempt=1, why="stopped by a person"))
    played.hear(GiveWay(wait=FOR_EVER), Done(op="lease.release", lease="L7"))
    phase = played.tenancy.phase
    assert isinstance(phase, Over)
    assert phase.failure is not None
    assert phase.failure.message == "train was stopped by a person"


def test_drain_after_a_stop_does_not_make_it_less() -> None:
    """A waiter asks for a lease that a person has stopped already."""
    played = Played().holding()
    played.hear(ordered("stop", 1), ordered("drain", 2), GiveWay(wait=FOR_EVER))
    phase = played.tenancy.phase
    assert isinstance(phase, Returning)
    assert phase.comes_back is None


def test_holder_attaches_after_a_break() -> None:
    """S6: berthd restarted; the holder says what it holds, and how far it is."""
    played = Played().holding()
    played.hear(ordered("drain", 3))
    played.passes(40.0)
    assert played.hear(Disconnected(), Connected()) == ["attach"]
    fields = played.sent[0][1]
    assert (fields["lease"], fields["key"], fields["state"]) == ("L7", "secret-0", "draining")
    assert (fields["attempt"], fields["pids"]) == (3, [77])
    assert fields["started_s"] == pytest.approx(40.0)


def test_attach_may_give_the_lease_another_number() -> None:
    """Berthd lost its journal: it took the holder in as somebody new."""
    played = Played().holding()
    played.hear(Disconnected(), Connected(), Done(op="attach", lease="L2"))
    assert isinstance(played.tenancy.phase, Holding)
    assert played.tenancy.phase.lease == "L2"


def test_holder_whose_number_is_anothers_now_attaches_without_it() -> None:
    """Berthd lost its journal, and gave the number away: what this one holds must be counted."""
    played = Played().holding()
    played.hear(Disconnected(), Connected())
    assert played.hear(refused("attach", Code.NOT_YOURS, "L7")) == ["attach"]
    assert played.sent[-1][1]["lease"] is None
    played.hear(Done(op="attach", lease="L2"))
    assert isinstance(played.tenancy.phase, Holding)
    assert played.tenancy.phase.lease == "L2"
    assert played.warned == []


def test_holder_that_is_refused_without_a_number_too_is_told() -> None:
    """Asked once more, and not for ever."""
    played = Played().holding()
    played.hear(Disconnected(), Connected())
    played.hear(refused("attach", Code.NOT_YOURS, "L7"))
    assert played.hear(refused("attach", Code.NOT_YOURS, "")) == []
    assert len(played.warned) == 1


@pytest.mark.parametrize("refused_first", [True, False])
def test_given_back_while_it_gets_another_number_it_is_given_back_under_that(
    *, refused_first: bool
) -> None:
    """Else the lease would stay for as long as the script's process lives."""
    played = Played().holding()
    played.hear(Disconnected(), Connected(), GiveBack())
    answers = [refused("lease.release", Code.NOT_FOUND, "L7"), Done(op="attach", lease="L2")]
    played.hear(*(answers if refused_first else reversed(answers)))
    assert isinstance(played.tenancy.phase, Returning)
    assert [fields["lease"] for op, fields in played.sent if op == "lease.release"][-1] == "L2"
    played.hear(Done(op="lease.release", lease="L2"))
    assert isinstance(played.tenancy.phase, Over)


def test_attach_that_is_refused_is_told() -> None:
    """The script goes on, for its memory is there; somebody should know."""
    played = Played().holding()
    played.hear(Disconnected(), Connected(), refused("attach", "no_card", "L7"))
    assert played.warned == ["L7 could not be attached again: a sentence"]


def test_break_before_the_start_was_heard_asks_under_the_same_key() -> None:
    """The request finds its lease, and is started then."""
    played = Played()
    played.hear(Connected(), granted())
    assert played.hear(Disconnected(), Connected()) == ["lease.request"]
    assert played.sent[0][1]["key"] == "secret-0"
    assert played.hear(granted(start_by=None)) == ["lease.started"]
    assert isinstance(played.tenancy.phase, Starting)


def test_giving_up_a_wait_withdraws_it() -> None:
    """Ctrl-C in the queue: nobody waits behind a request that nobody wants."""
    played = Played()
    played.hear(Connected(), Queued(request="r7"))
    assert played.hear(GiveBack()) == ["withdraw"]
    played.hear(Done(op="withdraw", lease=""))
    assert played.is_over()


def test_wait_that_is_given_up_before_its_first_answer_is_withdrawn_by_it() -> None:
    """A cancelled task: the request is on its way, and its number is not known yet."""
    played = Played()
    played.hear(Connected())
    assert played.hear(GiveBack()) == []
    assert not played.is_over()
    assert played.hear(Queued(request="r7")) == ["withdraw"]
    assert played.hear(Queued(request="r7")) == []
    played.hear(Done(op="withdraw", lease=""))
    assert played.is_over()


@pytest.mark.parametrize("answer", ["grant", "refusal", "none"])
def test_wait_that_is_given_up_before_its_first_answer_ends_with_it(answer: str) -> None:
    """Granted at once it is given back: else the card would be nobody's for half a minute."""
    played = Played()
    played.hear(Connected(), GiveBack())
    match answer:
        case "grant":
            assert played.hear(granted()) == ["lease.release"]
            played.hear(Done(op="lease.release", lease="L7"))
        case "refusal":
            played.hear(refused("lease.request", "too_big"))
        case _:
            played.passes(WITHDRAW_WITHIN + 0.1)
    assert played.is_over()


def test_wait_that_berthd_never_heard_of_is_over_at_once() -> None:
    """There is nothing to withdraw."""
    played = Played()
    assert played.hear(GiveBack()) == []
    assert played.is_over()


def test_grant_that_crosses_a_withdrawal_is_given_back() -> None:
    """Both were on their way: the lease must not stay."""
    played = Played()
    played.hear(Connected(), Queued(request="r7"), GiveBack())
    assert played.hear(granted()) == ["lease.release"]
    played.hear(refused("withdraw", "not_found"), Done(op="lease.release", lease="L7"))
    assert played.is_over()


def test_withdrawal_that_is_not_heard_has_an_end() -> None:
    """A person who pressed Ctrl-C does not wait for a hung berthd."""
    played = Played()
    played.hear(Connected(), Queued(request="r7"), GiveBack())
    assert isinstance(played.tenancy.phase, Withdrawing)
    played.passes(WITHDRAW_WITHIN + 0.1)
    assert played.is_over()


def test_ping_is_answered_whatever_the_script_does() -> None:
    """S5: a holder that does not answer counts as away."""
    played = Played().holding()
    assert played.hear(ordered("ping")) == ["pong"]


def test_card_that_was_started_again_is_told_what_it_holds() -> None:
    """The order `attach`: said again, as after a break."""
    played = Played().holding()
    assert played.hear(ordered("attach")) == ["attach"]


def test_order_that_a_script_cannot_do_is_answered() -> None:
    """A newer berthd may ask for more; it must not wait for ever."""
    played = Played().holding()
    played.hear(ordered("park", 5))
    assert played.words() == [("failed", 5)]


def test_order_about_another_lease_changes_nothing() -> None:
    """A late order to the lease that was given away."""
    played = Played().holding("L9")
    assert played.hear(ordered("drain", lease="L7")) == []
    assert not played.tenancy.wanted


def test_served_is_told_of_a_lease_that_is_held() -> None:
    """Q11: from then on the same priority may ask."""
    played = Played()
    assert played.hear(Served()) == []
    played.holding().hear(Served())
    assert played.words() == [("served", 0)]


def test_deadlines_are_looked_at_in_time() -> None:
    """A loop that sleeps past a deadline would miss it."""
    played = Played()
    played.hear(Connected(), Queued(request="r7"), GiveBack())
    assert wake_at(played.tenancy, played.now) <= after(played.now, Seconds(WITHDRAW_WITHIN))
