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
