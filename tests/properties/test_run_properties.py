"""What holds for a wrapper whatever berthd, the engine and the person do, in whatever order."""

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from berth.run.core import wake_at
from berth.run.messages import (
    Attached,
    DropChild,
    Leave,
    PostUnload,
    ReadBoundary,
    ReleaseHeard,
    RunEffect,
    Seen,
    SendWord,
    SignalGroup,
    SignalTree,
    StartChild,
)
from berth.run.state import (
    Asking,
    Leaving,
    Leftovers,
    NoDrain,
    Over,
    Running,
    Stopping,
    ToBoundary,
    Unloading,
)
from tests.cores.playing_run import CONT, KILL, TERM, PlayedRun, options

LONGEST_WAY_OUT = 8.0 + 8.0 + 8.0 + 5.0 + 5.0
"""Unload, grace, grace for leftovers, and the deadlines of killing and leaving, with a round up."""


class RunMachine(RuleBasedStateMachine):
    """A wrapper under every event that it can hear."""

    def __init__(self) -> None:
        super().__init__()
        self.run = PlayedRun()
        self.seen = 0
        self.reading = False
        self.unloading = False
        self.idle_in_a_row = 0
        self.ordered_now = False
        self.ordered_at_all = False
        self.signalled = False
        self.exited = False
        self.attempt = 0

    @initialize(
        boundary=st.booleans(),
        unload=st.booleans(),
        fail_closed=st.booleans(),
        berthd_seen=st.booleans(),
        missing=st.sampled_from([None, None, None, 127]),
    )
    def begin(
        self,
        boundary: bool,
        unload: bool,
        fail_closed: bool,
        berthd_seen: bool,
        missing: int | None,
    ) -> None:
        self.run = PlayedRun(
            options(
                boundary=boundary,
                unload=unload and boundary,
                fail_closed=fail_closed,
                berthd_seen_this_boot=berthd_seen,
            ),
            missing=missing,
        )

    # --- what happens -----------------------------------------------------------------------

    @rule()
    def connect(self) -> None:
        self.run.connects()

    @rule()
    def lose(self) -> None:
        self.run.loses_berthd()

    @rule(why=st.sampled_from(["", "busy", "pinned"]))
    def queue(self, why: str) -> None:
        self.run.queued(why)

    @rule()
    def grant(self) -> None:
        self.run.granted()

    @rule(waited_out=st.booleans())
    def refuse(self, waited_out: bool) -> None:
        self.run.refused(waited_out=waited_out)

    @rule(lease=st.sampled_from(["L1", "L2"]))
    def attached(self, lease: str) -> None:
        self.run.hear(Attached(lease=lease))

    @rule()
    def hear_release(self) -> None:
        self.run.hear(ReleaseHeard())

    @rule(used=st.sampled_from([None, 0, 5]), age=st.sampled_from([0.0, 1.0, 60.0]))
    def show(self, used: int | None, age: float) -> None:
        self.run.shown(used, age)

    @rule(
        order=st.sampled_from(["drain", "drain", "stop", "continue", "ping", "attach"]),
        at_once=st.booleans(),
    )
    def order(self, order: str, at_once: bool) -> None:
        """An order, as a card gives it: --fail-closed jobs are drained by nobody (Q2)."""
        job = not self.run.options.boundary
        assume(not (order == "drain" and job and self.run.options.fail_closed))
        at_once = at_once and order == "stop"
        if order in {"drain", "stop"}:
            self.attempt += 1
            self.ordered_at_all = True
            self.ordered_now |= at_once or job
        self.run.ordered(order, self.attempt, at_once=at_once)

    @precondition(lambda self: self.reading)
    @rule(seen=st.sampled_from([Seen.IDLE, Seen.IDLE, *Seen]), served=st.booleans())
    def answer(self, seen: Seen, served: bool) -> None:
        self.reading = False
        self.idle_in_a_row = self.idle_in_a_row + 1 if seen is Seen.IDLE else 0
        self.run.answers(seen, served=served)

    @precondition(lambda self: self.unloading)
    @rule(ok=st.booleans())
    def answer_unload(self, ok: bool) -> None:
        self.unloading = False
        self.run.unloaded(ok=ok)

    @precondition(lambda self: not self.exited)
    @rule(status=st.sampled_from([0, 0, 3]), signal=st.sampled_from([None, None, 9, 15]))
    def exit(self, status: int, signal: int | None) -> None:
        self.exited = True
        self.run.exits(status, signal)

    @rule()
    def nothing_left(self) -> None:
        if self.exited or isinstance(self.run.run.phase, Over):
            self.run.nothing_left()

    @rule(number=st.sampled_from([1, 2, 10, 15]))
    def signal(self, number: int) -> None:
        self.run.signalled(number)

    @rule(seconds=st.sampled_from([0.125, 0.25, 0.5, 3.0, 11.0]))
    def pass_time(self, seconds: float) -> None:
        self.run.later(seconds, step=0.25)

    # --- what holds -------------------------------------------------------------------------

    @invariant()
    def what_is_done_keeps_the_rules(self) -> None:
        said = [effect for _, effect in self.run.said]
        for place in range(self.seen, len(said)):
            self.look_at(said, place)
        self.seen = len(said)

    def look_at(self, said: list[RunEffect], place: int) -> None:
        """Look at one effect, those before it known to be good."""
        effect = said[place]
        assert not any(isinstance(other, Leave) for other in said[:place]), "done after leaving"
        match effect:
            case ReadBoundary():
                assert not self.signalled, "H2: no read after a signal"
                assert not self.reading, "two reads at once"
                self.reading = True
            case PostUnload():
                assert self.idle_in_a_row >= 2
                self.unloading = True
            case SignalGroup() if said[place + 1 : place + 2] == [SignalGroup(number=CONT)]:
                self.signalled = True
                self.check_that_it_may_be_stopped()
            case SignalTree(number=number) if not self.exited:
                assert number == KILL, "H3: SIGTERM goes to the group"
                assert self.signalled, "H3: SIGKILL comes after SIGTERM"
            case SendWord(word="released"):
                assert self.exited
            case SendWord(lease=lease):
                assert lease
            case _:
                pass

    def check_that_it_may_be_stopped(self) -> None:
        """H2, Q2: nobody is stopped unasked, and --fail-closed is never cut."""
        assert self.ordered_at_all
        if self.run.options.fail_closed:
            assert self.ordered_now or self.idle_in_a_row >= 2

    @invariant()
    def command_is_started_at_most_once_or_dropped(self) -> None:
        assert len(self.run.did(StartChild)) + len(self.run.did(DropChild)) <= 1

    @invariant()
    def every_deadline_fires(self) -> None:
        """One clause for each deadline of a run: none is ever more than a round behind."""
        now, asked = self.run.now - 0.25, self.run.options
        match self.run.run.phase:
            case Running(drain=NoDrain(read_at=at)):
                assert at is None or at > now
            case Running(drain=ToBoundary(asked=since, read_at=at)):
                assert at is None or at > now
                assert asked.fail_closed or since + asked.drain_wait > now
            case Running(drain=Unloading(stop_at=by)) | Leaving(leave_by=by):
                assert by > now
            case Running(drain=Stopping(kill_at=at)):
                assert at is None or at > now
            case Leftovers(kill_at=at, look_at=look_at):
                assert (look_at if at is None else at) > now
            case Asking(request=""):
                away = self.run.run.away_since
                allowed = 10.0 if asked.berthd_seen_this_boot else 0.0
                assert away is None or away + allowed > now
            case _:
                pass

    @invariant()
    def wrapper_wakes_up_within_a_second(self) -> None:
        assert wake_at(self.run.run, self.run.now) <= self.run.now + 1.0

    def teardown(self) -> None:
        """A command that has ended, and left nothing, has the wrapper leave in the end."""
        if not isinstance(self.run.run.phase, Asking | Over):
            if not self.exited:
                self.exited = True
                self.run.exits(0)
            self.run.nothing_left()
            self.run.later(LONGEST_WAY_OUT)
            assert self.run.status is not None
        self.what_is_done_keeps_the_rules()


def _is_berths_own(said: list[RunEffect], place: int) -> bool:
    """Tell whether a signal is Berth's: a SIGTERM that it sends is followed by a SIGCONT."""
    return said[place : place + 2] == [SignalGroup(number=TERM), SignalGroup(number=CONT)]


RunMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestRunMachine = RunMachine.TestCase
