"""The board is what a person has read and agreed to: golden texts at every width.

`pytest tests/cli --redraw` writes them anew; the diff is there to be read.
"""

from pathlib import Path
from typing import Any

import pytest

from berth.cli.render.board import board, needs_a_person, summary
from berth.cli.render.lines import Line, Look, Style, painted, text_of
from berth.words import cells
from tests.cli import boards
from tests.cli.boards import SITUATIONS, card, crowd, lease, status, waiter, zoo

GOLDEN = Path(__file__).parent / "golden"
LOOKS = {
    "120": Look(width=120),
    "80": Look(width=80),
    "60": Look(width=60),
    "40": Look(width=40),
    "pipe": Look(),
    "ascii": Look(width=80, ascii=True),
}


def agreed(name: str, shown: str, request: pytest.FixtureRequest) -> None:
    """Compare a screen with what was agreed to."""
    path = GOLDEN / f"{name}.txt"
    if request.config.getoption("--redraw"):
        path.write_text(shown)
    assert shown == path.read_text()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_board_looks_as_agreed(situation: str, look: str, request: pytest.FixtureRequest) -> None:
    """The screens of the whole zoo, at every width, in ASCII and into a pipe."""
    shown = painted(board(SITUATIONS[situation](), LOOKS[look]), LOOKS[look])
    agreed(f"{situation}-{look}", shown, request)


@pytest.mark.parametrize("width", [*range(20, 140), 1000])
@pytest.mark.parametrize("situation", ["zoo", "hostile", "lending", "claimed", "no-cards"])
def test_no_line_is_wider_than_the_screen(situation: str, width: int) -> None:
    """A line that is too long wraps, and takes the whole screen with it."""
    look = Look(width=width)
    shown = painted(board(SITUATIONS[situation](), look), look)
    assert max(cells(row) for row in shown.splitlines()) <= width


@pytest.mark.parametrize("width", [32, 40, 60, 79, 80, 120, None])
def test_nothing_that_matters_gives_way(width: int | None) -> None:
    """State, size and reason are on every screen, however narrow."""
    look = Look(width=width)
    shown = " ".join(painted(board(zoo(), look), look).split())
    for word in ("draining", "stuck", "20.5", "14.0", "36.0", "you fit", "the card decides"):
        assert word in shown
    assert "berth reclaim train" in shown


@pytest.mark.parametrize("width", [30, 60, 80, None])
def test_hostile_names_never_reach_the_terminal_raw(width: int | None) -> None:
    """An engine may be called `ESC [2J`: no control character but the line's end goes out."""
    look = Look(width=width)
    shown = painted(board(boards.hostile(), look), look)
    assert {char for char in shown if not char.isprintable()} <= {"\n"}
    assert "\u202e" not in shown


def test_ascii_draws_nothing_beyond_ascii() -> None:
    """A serial console and an old code page show the same board."""
    for situation in ("zoo", "claimed", "lending", "idle"):
        shown = painted(board(SITUATIONS[situation](), LOOKS["ascii"]), LOOKS["ascii"])
        assert shown.replace("°C", "").isascii()


def test_pipe_is_the_same_board_uncut() -> None:
    """What is grepped must not be cut where a screen would end."""
    shown = painted(board(boards.hostile(), Look()), Look())
    assert "x" * 200 in shown
    assert "z" * 300 in shown


def styles(rows: list[Line]) -> dict[str, Style]:
    return {text.strip(): style for row in rows for text, style in row if text.strip()}


def test_colour_means_what_it_says_and_running_has_none() -> None:
    """Red is for what needs a person; the normal case is plain."""
    found = styles(board(zoo(), Look(width=80)))
    assert found["▲ stuck"] is Style.ALARM
    assert found["◐ draining"] is Style.MOVING
    assert found["‖ parked"] is Style.ASIDE
    assert found["● running"] is Style.PLAIN
    assert found["HOLD"] is Style.HEAD


def test_without_colour_no_escape_is_written_and_no_word_is_lost() -> None:
    """NO_COLOR: the same words, and not one escape sequence."""
    rows = board(zoo(), Look(width=80, colour=True))
    painted_text = painted(rows, Look(width=80, colour=True))
    plain_text = painted(rows, Look(width=80))
    assert "\x1b[1;31m" in painted_text
    assert "\x1b" not in plain_text
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[33m", "\x1b[36m", "\x1b[0m"):
        painted_text = painted_text.replace(code, "")
    assert painted_text == plain_text


@pytest.mark.parametrize("width", [80, 60, 40, None])
def test_three_hundred_leases_are_shown(width: int | None) -> None:
    """Letters run out, rows do not."""
    look = Look(width=width)
    shown = painted(board(crowd(), look), look)
    assert all(f"engine-{number}" in shown for number in (1, 52, 53, 300))
    assert all(f"late-{number}" in shown for number in (1, 300))


def test_with_a_height_who_waits_last_is_counted() -> None:
    """A window shows who is first in line, and how many there are behind."""
    look = Look(width=60, height=20)
    shown = [text_of(row) for row in board(zoo(), look)]
    assert "  3 more wait; taller or wider window, or berth status gpu0" in shown
    assert any("sd-batch" in row for row in shown)


def test_one_card_has_no_name_and_no_column() -> None:
    """M4: with one card, text output has no card column."""
    shown = painted(board(boards.held(), Look(width=80)), Look(width=80))
    assert "CARD" not in shown
    assert "gpu0" not in shown


def test_card_that_was_not_read_yet_is_told_in_one_phrase() -> None:
    """Just after its start berthd has no reading; that is no fault, and is said in one way."""
    new: dict[str, Any] = {"state": "unmeasured", "why": "not read yet", "reading_age_s": None}
    cards = (boards.card(**new), boards.card("gpu1", 1, **new))
    shown = painted(board(boards.status(*cards), Look(width=80)), Look(width=80))
    assert "2 cards not read yet" in shown
    assert shown.count("not read yet") == 3
    assert "unread" not in shown
    assert "no reading" not in shown


def test_only_what_does_not_get_better_by_itself_needs_a_person() -> None:
    """`--check`: a drain, a wait, a squatter are everyday; stuck, unread, contested are not."""
    assert needs_a_person(boards.idle()) == []
    assert needs_a_person(boards.claimed()) == []
    (stuck,) = needs_a_person(zoo())
    assert stuck.startswith("train is stuck: said it released")
    assert stuck.endswith("way out:  berth reclaim train")
    (unread,) = needs_a_person(boards.lending())
    assert unread == "gpu1 cannot be read: driver hung; nothing is granted on it"
    (contested,) = needs_a_person(boards.contested())
    assert "gpu0 is contested" in contested


def test_sleeping_card_is_no_alarm() -> None:
    """A laptop's card sleeps on purpose."""
    asleep = status(card(state="asleep", why="the card sleeps; a request wakes it", free_mib=None))
    assert needs_a_person(asleep) == []
    assert summary(asleep) == []
    shown = painted(board(asleep, Look(width=80)), Look(width=80))
    assert "the card sleeps; a request wakes it" in shown


def test_status_of_an_older_berthd_is_shown_too() -> None:
    """Fields are only ever added: what is missing is left out, and is no traceback."""
    old = status(card(), leases=[lease(1, "chat", 4.0)])
    for row in old["leases"]:
        for field in ("way_out", "counts_mib", "in_flight", "for", "left_s", "boundary"):
            del row[field]
    for field in ("books_free_mib", "driver_free_mib", "handoffs", "handoff_median_s"):
        del old["cards"][0][field]
    del old["claims"]
    shown = painted(board(old, Look(width=80)), Look(width=80))
    assert "a chat" in shown
    assert "23.6 of 23.6 GiB free" in shown


def test_waiter_for_two_cards_is_told_by_the_card_that_has_no_room() -> None:
    """M2: that there is room on the other one is no reason; each busy card says its own."""
    both = ["gpu0", "gpu1"]
    shown = status(
        card(),
        card(card="gpu1", index=1),
        waiting=[
            waiter(5, "pair", 9.0, "there is room here", cards=both, code="other_cards"),
            waiter(5, "pair", 9.0, "a is pinned", card="gpu1", cards=both, code="pinned"),
        ],
    )
    rows = painted(board(shown, LOOKS["80"]), LOOKS["80"])
    assert "gpu1: a is pinned" in rows
    assert "there is room here" not in rows
    assert "gpu0,gpu1" in rows
