"""The card's books: capacity, what a lease counts, when memory counts as free (B1 to B6)."""

import pytest

from berth.actors.card.books import close, measure
from berth.actors.card.messages import CardRead, Resumed
from berth.actors.card.state import Card
from berth.ids import LeaseId, ProcessId
from berth.lease import Stuck
from berth.readings import UNTOLD, GpuProcess, Reading, Unmeasured
from berth.units import Instant, MiB, Seconds
from tests.cores.playing import GPU0, Played


def reading(*rows: GpuProcess, total: int = 1000, used: int, reserved: int = 0) -> Reading:
    return Reading(
        taken=Instant(1000.0),
        total=MiB(total),
        used=MiB(used),
        reserved=MiB(reserved),
        processes=rows,
    )


def row(pid: int, mib: int | Unmeasured, *, parents: tuple[int, ...] = ()) -> GpuProcess:
    used = mib if isinstance(mib, Unmeasured) else MiB(mib)
    ancestors = tuple(ProcessId(parent, 1) for parent in parents)
    return GpuProcess(process=ProcessId(pid, 1), name=f"p{pid}", used=used, ancestors=ancestors)


def test_capacity_is_total_less_baseline_once() -> None:
    """B2: what belongs to no process is taken off the total, and nowhere else."""
    measured = measure(Card(identity=GPU0), reading(row(7, 300), used=350, reserved=20))
    assert (measured.baseline, measured.capacity) == (50, 950)
    assert close(Card(identity=GPU0), measured).free == 650


def test_baseline_follows_the_reading_while_nobody_holds_a_lease() -> None:
    """B2: a driver that keeps more for itself makes the card smaller for the next lease."""
    card = Played(total=1000)
    card.unexplained = 100
    card.read()
    assert card.card.baseline == 100
    card.unexplained = 140
    card.read()
    assert card.card.baseline == 140


def test_baseline_only_falls_under_a_lease_and_the_rest_is_unexplained() -> None:
    """B2: memory that turns up beside a lease is nobody's, and taken."""
    card = Played(total=1000)
    card.unexplained = 100
    card.read()
    card.runs("a", 500)
    card.unexplained = 160
    card.read()
    measured = card.card.measured
    assert measured is not None
    assert (measured.baseline, measured.unexplained) == (100, 60)
    assert close(card.card, measured).free == 1000 - 100 - 60 - 500
    card.unexplained = 70
    card.read()
    assert card.card.baseline == 70


def test_processes_that_exceed_the_card_are_clamped_and_reported() -> None:
    """B5: a sum over processes above the card's own figure is no reason to fail, or to grant."""
    card = Played(total=1000)
    card.card = Card(identity=GPU0, baseline=MiB(40))
    card.hear(CardRead(reading=reading(row(7, 600), used=500)))
    measured = card.card.measured
    assert measured is not None
    assert (measured.clamped, measured.baseline, measured.unexplained) == (100, 40, 0)
    assert close(card.card, measured).free == 1000 - 40 - 600


def test_lease_counts_its_ask_until_it_uses_more() -> None:
    """B3: granted memory is taken whether it is used yet or not."""
    card = Played(total=1000)
    card.asks("a", 400)
    card.read()
    assert _counts(card, "a") == 400
    card.uses("a", 150)
    card.read()
    assert _counts(card, "a") == 400
    card.uses("a", 430)
    card.read()
    assert _counts(card, "a") == 430


def test_driver_free_is_what_it_shows_less_what_is_promised() -> None:
    """B4: memory that a granted engine has not allocated yet is free for nobody else."""
    card = Played(total=1000)
    card.asks("a", 400)
    card.uses("a", 150)
    card.read()
    measured = card.card.measured
    assert measured is not None
    books = close(card.card, measured)
    assert measured.reading.free == 850
    assert books.driver_free == 850 - 250


def test_released_lease_counts_its_ask_until_a_later_reading() -> None:
    """B3: a reading from before the release shows nothing of it, even if it shows little used."""
    card = Played(total=1000)
    card.asks("a", 400)
    card.started("a")
    card.uses("a", 0)
    card.read()
    card.uses("a", 400)
    before_release = card.look()
    card.later(0.1, reading=False)
    card.says("a", "released", lingers=True)
    assert _counts(card, "a") == 400
    card.hear(CardRead(reading=before_release))
    assert _counts(card, "a") == 400
    card.later(0.1, reading=False)
    card.uses("a", 120)
    card.read()
    assert _counts(card, "a") == 120


def test_reading_begun_before_the_release_frees_nothing() -> None:
    """B3: it may have looked before the memory was even taken."""
    card = Played(total=1000)
    card.asks("a", 400)
    card.started("a")
    early = card.look()
    card.later(0.1, reading=False)
    card.gives_back("a")
    card.hear(CardRead(reading=early))
    assert card.granted("a")
    card.later(0.1, reading=False)
    card.read()
    assert not card.granted("a")


def test_memory_that_nobody_explains_any_more_keeps_a_released_lease() -> None:
    """B3: the process row is gone, the memory is not; 64 MiB more than at the grant are allowed."""
    card = Played(total=1000)
    card.runs("a", 400)
    card.later(1)
    card.gives_back("a")
    card.uses("a", None)
    card.unexplained = 65
    card.later(1)
    assert card.granted("a")
    card.unexplained = 64
    card.later(1)
    assert not card.granted("a")


def test_stuck_lease_counts_what_is_measured() -> None:
    """H4: memory that a released engine keeps is taken for as long as it is seen."""
    card = Played(total=1000)
    card.runs("a", 400)
    card.later(1)
    card.says("a", "released", lingers=True)
    card.uses("a", 180)
    card.later(31)
    assert isinstance(card.lease("a"), Stuck)
    assert _counts(card, "a") == 180
    card.asks("b", 820)
    assert card.granted("b")


def test_whole_card_counts_as_all_that_is_left() -> None:
    """B2: a whole-card holder counts as capacity, beside strangers that were there."""
    card = Played(total=1000, reserved=50)
    card.uses("chrome", 100)
    card.read()
    card.asks("a", None)
    assert card.granted("a")
    assert _counts(card, "a") == 850


def test_whole_card_waits_for_a_squatter_but_not_for_an_allowed_process() -> None:
    """B4: more than 1 GiB of a process not on the allow list keeps a card from being whole."""
    card = Played(total=10000)
    card.uses("python", 1025)
    card.read()
    card.asks("a", None)
    assert card.blockers("a") == [("python", "stowaway")]
    card.uses("python", 1024)
    card.read()
    assert card.granted("a")


def test_nobody_is_asked_to_go_for_a_whole_card_beside_a_squatter() -> None:
    """B4, Q6: an engine's end would not make it fit, so it is not ended for that."""
    card = Played(total=10000)
    card.runs("chat", 4000)
    card.uses("python", 2000)
    card.uses("ollama", 3000)
    card.uses("chrome", 500)
    card.read()
    card.later(4)
    card.asks("a", None)
    assert card.blockers("a") == [("ollama", "stowaway"), ("python", "stowaway")]
    assert card.orders("chat") == []
    (row,) = card.shown().waiting
    assert [one.mib for one in row.blockers] == [3000, 2000]
    assert "you fit" not in row.why
    card.uses("python", 0)
    card.uses("ollama", 0)
    card.read()
    assert card.blockers("a") == [("chat", "draining")]
    assert card.orders("chat") == ["drain"]


def test_hold_is_told_of_no_squatter() -> None:
    """B4: it looks at leases only, so a squatter is not in its way."""
    card = Played(total=10000)
    card.runs("chat", 4000)
    card.uses("python", 2000)
    card.read()
    card.asks("hold", None, priority="hold")
    assert card.blockers("hold") == [("chat", "draining")]


def test_whole_card_is_not_granted_beside_a_release_in_flight() -> None:
    """B4: no process shows any more, but no reading has shown the memory free either."""
    card = Played(total=1000)
    card.runs("a", 400)
    card.later(1)
    card.gives_back("a")
    card.uses("a", None)
    card.unexplained = 300
    card.later(1)
    card.asks("b", None)
    assert not card.granted("b")


def test_hold_looks_at_leases_only() -> None:
    """B4: a person may take a card that a stowaway is on."""
    card = Played(total=1000)
    card.uses("python", 900)
    card.read()
    card.asks("me", None, priority="hold")
    assert card.granted("me")


def test_child_of_a_holder_belongs_to_its_lease() -> None:
    """B6: memory sits on a grandchild for many engines; its parents lead to the wrapper."""
    card = Played(total=1000)
    card.asks("a", 400)
    wrapper = card.engines["a"].process.pid
    card.hear(CardRead(reading=reading(row(7, 300, parents=(8, wrapper)), row(9, 50), used=350)))
    measured = card.card.measured
    assert measured is not None
    assert measured.used == {LeaseId("L1"): 300}
    assert [stranger.process.pid for stranger in measured.stowaways] == [9]


def test_process_of_a_scope_belongs_to_its_lease() -> None:
    """B6: a process that left the tree is still in its scope."""
    card = Played(total=1000)
    card.asks("a", 400)
    card.started("a", scope="berth-L1.scope")
    stray = GpuProcess(
        process=ProcessId(7, 1),
        name="x",
        used=MiB(10),
        scope="berth-L1.scope",
    )
    card.hear(CardRead(reading=reading(stray, used=10)))
    assert card.card.measured is not None
    assert card.card.measured.stowaways == ()


def test_unknown_process_size_is_never_taken_for_nothing() -> None:
    """B1: a released lease with a process of unknown size is not free, and counts its ask."""
    card = Played(total=1000)
    card.asks("a", 400)
    pid = card.engines["a"].process.pid
    card.hear(CardRead(reading=reading(row(pid, UNTOLD), used=0)))
    card.gives_back("a")
    card.later(1, reading=False)
    late = Reading(taken=card.now, total=MiB(1000), used=MiB(0), processes=(row(pid, UNTOLD),))
    card.hear(CardRead(reading=late))
    assert card.granted("a")
    assert _counts(card, "a") == 400


def test_stowaway_of_unknown_size_is_shown_and_not_summed() -> None:
    """B1: there is no arithmetic with an unknown."""
    measured = measure(Card(identity=GPU0), reading(row(7, UNTOLD), used=100))
    assert close(Card(identity=GPU0), measured).stowaways == 0
    assert len(measured.stowaways) == 1


@pytest.mark.parametrize("age", [5.0, 5.5])
def test_reading_older_than_five_seconds_is_no_ground_for_a_grant(age: float) -> None:
    """B1: fresh is at most 5 s."""
    card = Played(total=1000)
    card.later(age, step=age, reading=False)
    card.asks("a", 100)
    assert card.granted("a") == (age <= 5.0)


def test_whole_card_waits_for_a_stuck_lease_whose_memory_shows_with_no_process() -> None:
    """B4, H4: what a dead engine left is not its memory by any row, and is not free either."""
    card = Played(total=1000)
    card.runs("a", 400)
    card.uses("a", None)
    card.unexplained = 400
    card.gives_back("a")
    card.asks("b", None, wait=100.0)
    card.later(31.0)
    assert isinstance(card.lease("a"), Stuck)
    assert card.blockers("b") == [("a", "stuck")]
    card.unexplained = 0
    card.read()
    assert card.grants() == ["a", "b"]


def test_reading_begun_before_a_suspend_is_none_however_late_it_comes() -> None:
    """S8: an answer that was on its way while the machine slept is no ground for a grant."""
    card = Played(total=1000)
    card.later(1.0, reading=False)
    on_its_way = card.look()
    card.later(0.5, reading=False)
    card.hear(Resumed(slept=Seconds(600.0)))
    card.hear(CardRead(reading=on_its_way))
    card.asks("a", 100)
    assert card.blockers("a") == [("gpu0", "unmeasured")]
    card.later(0.5, reading=False)
    card.read()
    assert card.granted("a")


def test_holder_is_told_to_run_on_when_all_who_waited_have_left_a_card_that_is_not_read() -> None:
    """Q3: a waiter takes its drains along, also while nothing could be granted."""
    card = Played(total=1000)
    card.runs("a", 800)
    card.asks("b", 500)
    card.unread()
    card.withdraws("b")
    assert card.orders("a") == ["drain", "continue"]


def _counts(card: Played, name: str) -> int:
    measured = card.card.measured
    assert measured is not None
    return close(card.card, measured).counts[card.engines[name].lease]
