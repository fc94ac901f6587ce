"""The law of `EDGES`: which state of a lease may follow which, and under what word it is shown."""

from itertools import product
from typing import Final, get_args

import pytest
from msgspec.structs import replace

from berth.errors import BerthBug
from berth.ids import Attempt, Key, LeaseId, ProcessId, RequestId
from berth.lease import (
    EDGES,
    WHOLE_CARD,
    Detached,
    Draining,
    DrainPhase,
    Edge,
    Granted,
    Held,
    Keeping,
    Lease,
    Order,
    Priority,
    Releasing,
    Running,
    Starting,
    Stuck,
    Terms,
    become,
    state_word,
    with_held,
)
from berth.units import Instant

NOW: Final = Instant(1000.0)
HELD: Final = Held(
    id=LeaseId("L1"),
    terms=Terms(name="chat", key=Key("k")),
    ask=WHOLE_CARD,
    holder=ProcessId(7, 1),
    granted=NOW,
)
RUNNING: Final = Running(held=HELD, ready=NOW)
SAMPLES: Final[tuple[Lease, ...]] = (
    Granted(held=HELD, start_by=NOW),
    Starting(held=HELD, ready_by=NOW),
    RUNNING,
    Draining(
        held=HELD,
        order=Order.DRAIN,
        wanted_by=RequestId("r2"),
        asked=NOW,
        phase=DrainPhase.ASKED,
        deadline=NOW,
        before=RUNNING,
    ),
    Keeping(held=HELD, hear_by=NOW, asked=NOW, before=RUNNING),
    Releasing(held=HELD, released=NOW, free_by=NOW),
    Stuck(held=HELD, released=NOW),
    Detached(held=HELD),
)
STATES: Final[frozenset[type[Lease]]] = frozenset(get_args(Lease))
ALLOWED: Final = frozenset((edge.before, edge.after) for edge in EDGES)

COMES_AS: Final = (Granted, Running, Detached)
"""How a lease gets onto the books: by a grant, by a first attach (R4), out of the journal (S6)."""
FREED_FROM: Final = frozenset({Releasing, Stuck})
"""From here a lease leaves the books, by the reading that shows it free (B3)."""

WORDS: Final = frozenset(
    {"starting", "running", "draining", "releasing", "stuck", "parking", "parked", "resuming"}
    | {"lending", "detached"}
)


def sample(state: type[Lease]) -> Lease:
    return next(lease for lease in SAMPLES if type(lease) is state)


def named(lease: Lease) -> str:
    return type(lease).__name__


def edge_id(edge: Edge) -> str:
    return f"{edge.before.__name__}-{edge.after.__name__}"


def reached_from(*starts: type[Lease]) -> set[type[Lease]]:
    reached = set(starts)
    while more := {after for before, after in ALLOWED if before in reached} - reached:
        reached |= more
    return reached


def test_there_is_a_sample_of_every_state() -> None:
    """A state that is added to the union is looked at by every test below."""
    assert {type(lease) for lease in SAMPLES} == STATES


def test_table_speaks_of_leases_and_says_why() -> None:
    """3.5: the table is drawn for people, so every line has its cause."""
    assert {state for pair in ALLOWED for state in pair} <= STATES
    assert all(edge.cause for edge in EDGES)


def test_every_state_is_reached() -> None:
    """A state that nothing leads to is dead code, or an edge was forgotten."""
    assert reached_from(*COMES_AS) == STATES


@pytest.mark.parametrize(
    "state", [type(lease) for lease in SAMPLES if type(lease) not in FREED_FROM]
)
def test_every_state_is_left_and_leads_to_release(state: type[Lease]) -> None:
    """H1: no lease is for ever; whatever it is in, it can come to the reading that frees it."""
    assert {after for before, after in ALLOWED if before is state} - {state}
    assert Releasing in reached_from(state)


@pytest.mark.parametrize("edge", EDGES, ids=edge_id)
def test_lease_becomes_what_the_table_allows(edge: Edge) -> None:
    """The table is what `become` goes by."""
    after = sample(edge.after)
    assert become(sample(edge.before), after) is after


@pytest.mark.parametrize(
    ("before", "after"),
    [pair for pair in product(SAMPLES, SAMPLES) if (type(pair[0]), type(pair[1])) not in ALLOWED],
    ids=named,
)
def test_lease_becomes_nothing_else(before: Lease, after: Lease) -> None:
    """H1: no step is skipped; a change outside the table is a bug of Berth's own."""
    with pytest.raises(BerthBug, match=f"L1: {named(before)} cannot become {named(after)}"):
        become(before, after)


@pytest.mark.parametrize("edge", EDGES, ids=edge_id)
def test_lease_never_becomes_another_lease(edge: Edge) -> None:
    """S6: one lease's state never overwrites another's, not even along an edge."""
    other = with_held(sample(edge.after), replace(HELD, id=LeaseId("L2")))
    with pytest.raises(BerthBug, match="L1 cannot become L2"):
        become(sample(edge.before), other)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (Granted, "starting"),
        (Starting, "starting"),
        (Running, "running"),
        (Draining, "draining"),
        (Keeping, "draining"),
        (Releasing, "releasing"),
        (Stuck, "stuck"),
        (Detached, "detached"),
    ],
)
def test_state_is_shown_by_its_word_of_the_protocol(state: type[Lease], word: str) -> None:
    """Spec 16: scripts compare these words; two states may share one, none has its own beside."""
    assert state_word(sample(state)) == word


def test_every_state_has_a_word_of_the_protocol() -> None:
    """Spec 16 lists the words; a new state must not bring one that no client knows."""
    assert {state_word(lease) for lease in SAMPLES} <= WORDS


@pytest.mark.parametrize("lease", SAMPLES, ids=named)
def test_lease_stays_in_its_state_when_it_carries_something_else(lease: Lease) -> None:
    """H6: the number of an order is noted without a change of state."""
    noted = with_held(lease, replace(lease.held, attempt=Attempt(3)))
    assert type(noted) is type(lease)
    assert (noted.held.attempt, noted.id, noted.name) == (3, "L1", "chat")


def test_priorities_are_in_the_order_of_the_rule() -> None:
    """Q1: hold > foreground > interactive > batch > background, by the words of the wire."""
    words = [priority.word for priority in sorted(Priority, reverse=True)]
    assert words == ["hold", "foreground", "interactive", "batch", "background"]
