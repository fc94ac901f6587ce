"""What engines needed before (B7), and what they use where they have no lease (B6)."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.actors.card.recovery import restored
from berth.actors.card.state import Card, Learned, Settings, Waiter
from berth.actors.card.survey import survey
from berth.actors.journal.messages import Kept, Record, SaveUsage
from berth.actors.journal.usage_files import read_usage, usage_path, write_usage
from berth.actors.node.inbox import Fit, ShareStands, Stand
from berth.actors.trees.messages import Elsewhere
from berth.errors import Code
from berth.ids import CardName, Key, LeaseId, ProcessId, RequestId
from berth.lease import WHOLE_CARD, Priority, Terms
from berth.units import MiB
from tests.cores.playing import GPU0, Played


def run_of(card: Played, name: str, *peaks: int) -> None:
    """Let an engine run, use so much one after the other, and end."""
    card.asks(name, 900)
    card.started(name)
    for peak in peaks:
        card.uses(name, peak)
        card.later(3)
    card.gives_back(name)
    card.uses(name, None)
    card.later(1)
    assert not card.granted(name)


def saved(card: Played) -> list[SaveUsage]:
    records = [effect for effect in card.said if isinstance(effect, Record)]
    return [entry for one in records for entry in one.entries if isinstance(entry, SaveUsage)]


def test_peak_of_a_run_is_learned_when_it_is_over() -> None:
    """B7: the most that any reading showed, kept under the engine's name."""
    card = Played(total=1000)
    run_of(card, "a", 300, 700, 500)
    assert card.card.learned["a"] == Learned(runs=1, peaks=(MiB(700),))
    assert saved(card)[-1].engines == {"a": (1, (700,))}


def test_what_is_needed_is_the_largest_of_the_last_five_runs() -> None:
    """B7: an engine that is set up smaller is believed after a while."""
    card = Played(total=1000)
    for peak in (800, 400, 410, 420, 430):
        run_of(card, "a", peak)
    assert card.card.learned["a"].needs == 800
    run_of(card, "a", 440)
    assert card.card.learned["a"].needs == 440


def test_run_that_used_nothing_teaches_nothing() -> None:
    """B7: it crashed before it loaded."""
    card = Played(total=1000)
    run_of(card, "a")
    assert (card.card.learned, saved(card)) == ({}, [])


def test_whole_card_waits_until_what_is_left_covers_what_it_needed() -> None:
    """B4: a browser on the card may be tolerated and still leave too little."""
    card = Played(total=1000)
    run_of(card, "a", 800)
    card.strangers["chrome"] = (ProcessId(900, 1), 300)
    card.read()
    card.asks("a", None)
    assert card.waits("a")
    card.asks("b", None, wait=0.0)
    card.strangers["chrome"] = (ProcessId(900, 1), 150)
    card.read()
    assert card.granted("a")


def knows(card: Played, name: str, peak: int) -> None:
    """Let the card know what an engine needed in a run before."""
    learned = {name: Learned(runs=1, peaks=(MiB(peak),))}
    card.card = replace(card.card, learned=learned)
    card.judge.start_again(card.card)


@given(reserved=st.integers(0, 9000), nobodys=st.integers(0, 1000), peak=st.integers(1, 24576))
def test_engine_that_had_more_once_gets_all_that_an_empty_card_has(
    reserved: int, nobodys: int, peak: int
) -> None:
    """B4: a driver that keeps more than it did, named or not, would keep it waiting for ever."""
    card = Played(reserved=reserved, unexplained=nobodys)
    knows(card, "big", peak)
    card.asks("big", None)
    assert card.granted("big")


def test_engine_that_needed_all_gets_it_once_the_card_is_empty() -> None:
    """B4: also when it waited for others, and whatever the driver took meanwhile."""
    card = Played()
    knows(card, "big", 24400)
    card.runs("chat", 8000)
    card.asks("big", None)
    card.unexplained = 60
    card.says("chat", "released")
    card.later(3)
    assert card.granted("big")


def test_engine_with_a_known_size_waits_while_something_uses_its_card() -> None:
    """B4: what a dead process left may go, and a grant beside it would be a collision."""
    card = Played(reserved=700, unexplained=9000)
    knows(card, "big", 24400)
    card.asks("big", None)
    assert card.blockers("big") == [("gpu0", "unexplained")]
    (row,) = card.shown().waiting
    assert row.why == "gpu0 shows 9.5 GiB in use that belongs to no process"
    card.uses("chrome", 300)
    card.read()
    assert card.blockers("big") == [("chrome", "stowaway"), ("gpu0", "unexplained")]
    card.unexplained = 0
    card.read()
    assert card.blockers("big") == [("chrome", "stowaway")]
    card.uses("chrome", None)
    card.read()
    assert card.granted("big")


def test_share_of_an_engine_that_had_more_once_fits_on_an_empty_card() -> None:
    """M2: a whole card of several is held to the same rule."""
    card = Played(reserved=700)
    knows(card, "big", 24400)
    card.asks("big", None, others=("gpu1",))
    stands = [one.stand for one in card.to_node() if isinstance(one, ShareStands)]
    assert stands == [Stand.FITS]


def test_card_that_is_empty_is_surveyed_as_one_that_fits_now() -> None:
    """Q9: `any` must not pass over an empty card for what the engine had once."""
    card = Played(reserved=700)
    knows(card, "big", 24400)
    waiter = Waiter(
        request=RequestId("r9"),
        terms=Terms(name="big", key=Key("k"), priority=Priority.INTERACTIVE),
        ask=WHOLE_CARD,
        holder=ProcessId(9, 1),
        cards=(GPU0.name,),
        arrived=card.now,
        refuse_at=card.now,
    )
    assert survey(card.card, waiter, card.now).rank is Fit.NOW


def test_waiter_that_can_never_fit_any_more_is_refused_and_holds_up_nobody() -> None:
    """Q7: the driver keeps more than when it asked; it would wait for ever, and others with it."""
    card = Played()
    card.runs("job", 400, boundary=False)
    card.asks("huge", 24400)
    card.asks("small", 24000)
    assert (card.waits("huge"), card.waits("small")) == (True, True)
    card.reserved = 150
    card.unexplained = 300
    card.read()
    assert card.waits("huge"), "what is nobody's may go"
    card.reserved = 177
    card.read()
    assert card.refusal("huge") is Code.TOO_BIG
    card.unexplained = 0
    card.read()
    assert card.granted("small") or card.waits("small")
    card.gone("job")
    card.later(3)
    assert card.granted("small")


def test_who_asks_before_the_first_reading_is_refused_by_it() -> None:
    """Q7: while the card is unread nobody can say what is too big; then it must be said."""
    card = Played()
    card.card = Card(identity=GPU0, settings=card.settings)
    card.judge.start_again(card.card)
    card.asks("huge", 30000)
    assert card.waits("huge")
    card.read()
    assert card.refusal("huge") is Code.TOO_BIG


def test_learned_sizes_outlive_berthd() -> None:
    """B7: a card finds what was kept under its UUID."""
    usage = {"GPU-0": SaveUsage(card_key="GPU-0", card=GPU0.name, engines={"a": (3, (MiB(7),))})}
    card = restored(GPU0, Settings(), Kept(usage=usage), Played().now)
    assert card.learned == {"a": Learned(runs=3, peaks=(MiB(7),))}


def test_file_is_written_whole_and_read_again(tmp_path: Path) -> None:
    """B7: `usage.json` for the first card, `usage.gpu1.json` for the next."""
    first = SaveUsage(card_key="GPU-0", card=CardName("gpu0"), engines={"a": (2, (MiB(5),))})
    second = SaveUsage(card_key="GPU-1", card=CardName("gpu1"), engines={})
    write_usage(tmp_path, first)
    write_usage(tmp_path, second)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["usage.gpu1.json", "usage.json"]
    assert read_usage(tmp_path) == {"GPU-0": first, "GPU-1": second}


def test_card_that_moved_to_another_index_finds_its_own(tmp_path: Path) -> None:
    """M1: by UUID, not by index; of two files for one card the fuller counts."""
    old = SaveUsage(card_key="GPU-0", card=CardName("gpu1"), engines={"a": (2, (MiB(5),))})
    new = SaveUsage(card_key="GPU-0", card=CardName("gpu0"), engines={"a": (1, (MiB(4),))})
    write_usage(tmp_path, old)
    write_usage(tmp_path, new)
    assert read_usage(tmp_path)["GPU-0"] == old


def test_damaged_file_is_set_aside_and_learning_goes_on(tmp_path: Path) -> None:
    """B7: nothing is silently dropped, and berthd starts."""
    path = usage_path(tmp_path, CardName("gpu0"))
    for damage in (
        b"",
        b"{",
        b"[]",
        b'{"v":1,"card":"x","name":"gpu0","engines":{"a":{"runs":-1}}}',
    ):
        path.write_bytes(damage)
        assert read_usage(tmp_path) == {}
        assert path.with_name("usage.json.damaged").read_bytes() == damage
        assert not path.exists()


def test_memory_on_a_card_outside_the_lease_is_named_after_it_and_no_squatter() -> None:
    """B6: it counts there as a stowaway, is told once, and does not keep a whole card away."""
    card = Played(total=10000)
    other = ProcessId(77, 1)
    card.hear(Elsewhere(lease=LeaseId("L9"), name="chat", processes=frozenset({other})))
    card.strangers["python"] = (other, 2000)
    card.read()
    card.later(3)
    assert [event.name for event in card.events("stowaway.seen")] == ["chat"]
    (row,) = card.shown().stowaways
    assert (row.name, row.used_mib, row.squatter) == ("chat", 2000, False)
    card.asks("all", None)
    assert card.granted("all")


def test_stowaway_is_itself_again_once_the_other_lease_is_over() -> None:
    """B6: then it is a process without a lease, and a squatter of that size."""
    card = Played(total=10000)
    other = ProcessId(77, 1)
    card.hear(Elsewhere(lease=LeaseId("L9"), name="chat", processes=frozenset({other})))
    card.hear(Elsewhere(lease=LeaseId("L9"), name="chat", processes=frozenset()))
    card.strangers["python"] = (other, 2000)
    card.read()
    card.asks("all", None)
    assert card.waits("all")
