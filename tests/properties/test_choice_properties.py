"""What holds for the set of holders that is asked for a waiter, whatever the choice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.actors.card.choosing import Candidate, choose
from berth.ids import Key, LeaseId, ProcessId
from berth.lease import Held, Priority, Running, Terms
from berth.standing import Blocker, How
from berth.units import Instant, MiB


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Draw holders: few, of which every set is looked at, or so many that one is built."""
    count = draw(st.integers(0, 12))
    return [_candidate(draw, number) for number in range(count)]


def _candidate(draw: st.DrawFn, number: int) -> Candidate:
    terms = Terms(
        name=f"e{number}",
        key=Key(f"k{number}"),
        priority=draw(st.sampled_from([Priority.BATCH, Priority.INTERACTIVE])),
        boundary=draw(st.booleans()),
    )
    held = Held(
        id=LeaseId(f"L{number}"),
        terms=terms,
        ask=MiB(1),
        holder=ProcessId(100 + number, 1),
        granted=Instant(float(number)),
    )
    busy = draw(st.sampled_from([None, None, Blocker(who=terms.name, how=How.BUSY)]))
    return Candidate(
        lease=Running(held=held, ready=Instant(0.0)),
        gain=draw(st.sampled_from([0, 1, 50, 100, 100, 300, 700])),
        asked=draw(st.booleans()),
        obstacle=busy,
    )


@settings(max_examples=300, deadline=None)
@given(candidates(), st.sampled_from([1, 40, 100, 120, 350, 800, 2000]))
def test_set_that_is_chosen_suffices_and_nobody_in_it_could_be_left_out(
    offered: list[Candidate], shortfall: int
) -> None:
    """Q6: nobody is asked to finish for nothing; and who could make it fit is found."""
    chosen = choose(offered, shortfall)
    if chosen is None:
        assert sum(candidate.gain for candidate in offered) < shortfall
        return
    freed = sum(candidate.gain for candidate in chosen)
    assert freed >= shortfall
    assert all(freed - candidate.gain < shortfall for candidate in chosen)
    assert all(candidate in offered for candidate in chosen)
