"""The watched screen as a machine: keys, answers and events in, a screen of its height out."""

from typing import Any

import pytest

from berth.cli.render.lines import Look, painted, text_of
from berth.cli.render.watching import (
    Watching,
    of_card,
    on_key,
    screen,
    with_event,
    with_status,
)
from berth.words import cells
from tests.cli.boards import SITUATIONS, crowd, zoo
from tests.cli.test_happened import HAPPENED


def watched(**changes: Any) -> Watching:
    """Return the zoo under watch, with all that has happened."""
    watching = Watching(status=zoo(), **changes)
    for one in HAPPENED:
        watching = with_event(watching, one)
    return watching


def rows(watching: Watching, width: int = 80, height: int = 40) -> list[str]:
    return [text_of(row) for row in screen(watching, Look(width=width, height=height))]


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("height", [1, 3, 8, 16, 24, 50])
@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_screen_is_never_larger_than_the_window(situation: str, height: int, width: int) -> None:
    """A row too many scrolls, and the next frame is drawn over the wrong lines."""
    watching = Watching(status=SITUATIONS[situation](), events=tuple(HAPPENED))
    look = Look(width=width, height=height)
    shown = painted(screen(watching, look), look).splitlines()
    assert len(shown) <= height
    assert max((cells(row) for row in shown), default=0) <= width


def test_what_does_not_fit_is_counted() -> None:
    """Nobody takes a cut table for a whole one."""
    shown = rows(Watching(status=crowd()), height=24)
    assert any("more, taller window" in row or "more wait" in row for row in shown)


def test_last_events_are_at_the_foot_and_e_shows_more() -> None:
    """What just happened explains what is seen."""
    short = rows(watched())
    assert sum("lease." in row or "node." in row for row in short) == 3
    more = rows(on_key(watched(), "e"), height=50)
    assert sum("lease." in row or "stowaway." in row or "node." in row for row in more) == 9


def test_pause_keeps_the_screen_and_goes_on_with_what_is_then() -> None:
    """A screen that is read does not change; afterwards it shows now, not then."""
    paused = on_key(watched(), "p")
    other = with_status(paused, SITUATIONS["idle"]())
    assert other.status == paused.status
    assert rows(other)[0] == "paused; p goes on"
    on_again = with_status(on_key(other, "p"), SITUATIONS["idle"]())
    assert any("Nobody holds the card" in row for row in rows(on_again))


def test_a_number_shows_one_card_and_again_all() -> None:
    """A node with eight cards does not fit on any screen."""
    one = on_key(watched(), "2")
    assert any("train" in row for row in rows(one))
    assert not any("qwen3-27b " in row for row in rows(one)[:12])
    assert on_key(one, "2").card is None
    assert on_key(watched(), "7").card is None
    assert [row["name"] for row in of_card(zoo(), 1)["leases"]] == ["train", "embed"]


@pytest.mark.parametrize("key", ["q", "\x03", "\x04"])
def test_q_and_ctrl_c_leave(key: str) -> None:
    """Where a terminal sends Ctrl-C as a key and not as a signal, it leaves too."""
    assert on_key(watched(), key).left


@pytest.mark.parametrize("key", ["k", "\x1b", "x", "0", "ü", " "])
def test_other_keys_do_nothing(key: str) -> None:
    """Actions stay in verbs that can be read in a shell's history."""
    assert on_key(watched(), key) == watched()


def test_berthd_gone_keeps_the_last_screen() -> None:
    """The last that was known, and since when it is old."""
    gone = rows(watched(gone="16:42:07"))
    assert gone[0] == "berthd is gone since 16:42:07; trying again"
    assert any("qwen3-27b" in row for row in gone)
    assert with_status(watched(gone="16:42:07"), zoo()).gone == ""


def test_one_name_is_watched_by_its_sum() -> None:
    """`berth status sd-batch --watch`; when it is gone the screen says so."""
    shown = rows(watched(name="sd-batch"))
    assert any("by the books" in row for row in shown)
    over = with_status(watched(name="sd-batch"), SITUATIONS["idle"]())
    assert rows(over)[0] == "sd-batch is not there (any more)"
