"""`berth status NAME`: the sum that settles arguments, as agreed."""

import pytest

from berth.cli.render.lines import Look, painted
from berth.cli.render.sums import about_name, known_names
from berth.words import cells
from tests.cli import boards
from tests.cli.boards import SITUATIONS, zoo
from tests.cli.test_board import agreed

SUMS = [
    ("zoo", "sd-batch"),
    ("zoo", "gemma-70b"),
    ("zoo", "reader"),
    ("zoo", "qwen3-27b"),
    ("zoo", "L29"),
    ("zoo", "gpu0"),
    ("held", "chat"),
    ("held", "hold"),
    ("lending", "qwen-32b"),
    ("lending", "gpu1"),
    ("contested", "gpu0"),
    ("pair", "pair"),
]


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize(("situation", "name"), SUMS)
def test_sum_looks_as_agreed(
    situation: str, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    """What the card can hand out, less whom, equals free, short of what; and why."""
    look = Look(width=width)
    shown = painted(about_name(SITUATIONS[situation](), name, look), look)
    agreed(f"sum-{situation}-{name}-{width}", shown, request)


def figures(shown: str) -> dict[str, float]:
    """Return the figures of a sum by their labels."""
    found = {}
    for row in shown.splitlines():
        words = row[2:21].strip(), row[21:27].strip()
        try:
            found[words[0]] = float(words[1])
        except ValueError:
            continue
    return found


def test_sum_adds_up() -> None:
    """What is taken off what can be handed out is what is left: to the tenth that is shown."""
    look = Look(width=80)
    found = figures(painted(about_name(zoo(), "sd-batch", look), look))
    taken = sum(value for value in found.values() if value < 0)
    assert found["gpu0 can hand out"] + taken == pytest.approx(found["by the books"], abs=0.1)
    short = found["you ask"] - found["by the books"]
    assert short == pytest.approx(12.8)


def waits(gib: float | None, *blockers: boards.Row) -> str:
    """Return the sum of a waiter beside three holders, a squatter and one that may stay."""
    books: boards.Row = {"books_free_mib": boards.mib(8.6), "driver_free_mib": boards.mib(8.6)}
    status = boards.status(
        boards.card(**books),
        leases=[
            boards.lease(1, "script", 4.9),
            boards.lease(2, "chat", 4.0),
            boards.lease(3, "tail", 0.5, state="releasing"),
        ],
        waiting=[boards.waiter(4, "train", gib, "why", blockers=list(blockers))],
        stowaways=[boards.stowaway("chrome", 0.6), boards.stowaway("ollama", 5.0, squatter=True)],
    )
    return painted(about_name(status, "train", Look()), Look())


def test_everybody_is_in_the_way_of_the_whole_card() -> None:
    """B4: also who would give way but is not asked yet; what may stay is not asked for."""
    shown = waits(
        None,
        boards.blocker("chat", "in_turn", lease="L2", left_s=60.0),
        boards.blocker("ollama", "stowaway", ref="gpu0", mib=boards.mib(5.0)),
    )
    assert "not needed" not in shown
    rows = [row.strip() for row in shown.splitlines()]
    assert "a script             -4.9   running, in your way" in rows
    assert "b chat               -4.0   running, keeps its turn for 1m" in rows
    assert "c tail               -0.5   releasing, in your way" in rows
    assert "you ask              23.0   the whole card, short of 14.4" in rows
    found = figures(shown)
    assert found["gpu0 can hand out"] - 0.6 == pytest.approx(found["you ask"], abs=0.1)


@pytest.mark.parametrize("how", ["first_in_line", "other_cards", "recovering", "unmeasured"])
def test_nobody_is_said_to_be_needless_where_that_is_not_known(how: str) -> None:
    """Who waits for its turn in the queue has not been told whose memory it will take."""
    assert "not needed" not in waits(6.0, boards.blocker("other", how, ref="r1"))
    assert "not needed for you" in waits(6.0, boards.blocker("chat", "in_turn", lease="L2"))


@pytest.mark.parametrize("name", ["sd-batch", "r9", "qwen3-27b", "L31", "gpu0", "0", "GPU-1"])
def test_engine_lease_request_and_card_are_found(name: str) -> None:
    """Any name that Berth uses works; a card also by index and UUID."""
    assert about_name(zoo(), name, Look(width=80))


def test_two_of_a_name_are_both_shown() -> None:
    """On the socket names may repeat."""
    twice = boards.status(
        boards.card(), leases=[boards.lease(1, "chat", 4.0), boards.lease(2, "chat", 5.0)]
    )
    shown = painted(about_name(twice, "chat", Look()), Look())
    assert "(L1)" in shown
    assert "(L2)" in shown


def test_what_is_not_there_is_nothing() -> None:
    """The caller tells what there is instead."""
    assert about_name(zoo(), "nobody", Look()) == []
    assert about_name(zoo(), "", Look()) == []
    assert {"gpu0", "sd-batch", "r9", "train", "L29"} <= set(known_names(zoo()))


@pytest.mark.parametrize("width", [24, 40, 61, 80])
def test_sum_of_a_hostile_name_is_harmless(width: int) -> None:
    """Names stay text, and no line is wider than the screen."""
    status = boards.hostile()
    look = Look(width=width)
    for row in status["leases"]:
        shown = painted(about_name(status, row["lease"], look), look)
        assert {char for char in shown if not char.isprintable()} <= {"\n"}
        assert max(cells(text) for text in shown.splitlines()) <= width
