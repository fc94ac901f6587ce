"""Cutting, wrapping and drawing: nothing is too wide, nothing is lost, nothing acts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cli.render.bar import CLAIM, FREE, Part, bar, overdrawn, unread
from berth.cli.render.figures import about, span
from berth.cli.render.lines import Look, Style, line, painted, shortened, wrapped
from berth.words import cells, plain

PARTS = st.lists(st.integers(min_value=0, max_value=30000), max_size=12)


@given(st.text(), st.integers(min_value=1, max_value=60))
def test_shortened_fits_and_keeps_both_ends(text: str, width: int) -> None:
    """`qwen3…27b`: engines differ at their ends."""
    harmless = plain(text)
    short = shortened(harmless, width)
    assert cells(short) <= width
    if cells(harmless) <= width:
        assert short == harmless


@given(st.text())
def test_plain_has_nothing_that_a_terminal_acts_on(text: str) -> None:
    """Whatever a process is called, the screen stays ours."""
    assert all(char.isprintable() for char in plain(text))


def test_plain_leaves_words_of_all_languages_alone() -> None:
    """An escape for every umlaut would be no better than none."""
    assert plain("Überläufer 日本語 émile") == "Überläufer 日本語 émile"
    assert plain("a\nb\x1b[2J\u202e\u2028") == "a\\nb\\x1b[2J\\u202e\\u2028"


@given(st.text(), st.integers(min_value=12, max_value=60), st.integers(min_value=0, max_value=4))
def test_wrapped_loses_nothing(text: str, width: int, indent: int) -> None:
    """A reason that is cut is no reason."""
    harmless = plain(text)
    rows = wrapped(harmless, width, indent)
    assert all(cells(row) <= width for row in rows)
    joined = "".join(row[indent:] for row in rows)
    assert joined.replace(" ", "") == harmless.replace(" ", "")


@given(PARTS, st.integers(min_value=0, max_value=30000), st.integers(min_value=4, max_value=60))
def test_bar_is_as_long_as_it_is_told_whatever_it_holds(
    sizes: list[int], total: int, size: int
) -> None:
    """Overdrawn, empty or without a size: the bar keeps its brackets in place."""
    parts = [Part(letter, mib) for letter, mib in zip("abcdefghijkl", sizes, strict=False)]
    assert len(bar(parts, total, size)) == size
    assert len(overdrawn(bar(parts, total, size), 500, total)) == size
    assert len(unread(size)) == size


def test_everybody_who_has_a_hundredth_has_a_cell_and_so_has_what_is_free() -> None:
    """A holder that is not drawn is one that is looked for."""
    parts = [Part("a", 22000), Part("b", 250), Part(CLAIM, 100)]
    drawn = bar(parts, 24576, 26)
    assert drawn.count("b") == 1
    assert drawn.count(CLAIM) == 0
    assert drawn.count(FREE) >= 1
    assert bar([Part("a", 24000)], 24576, 26).endswith(FREE)


def test_overdrawn_cells_are_marked() -> None:
    """H5: contested memory is seen at the end of the bar."""
    assert overdrawn("aaaaaa", 1, 1000) == "aaaaa!"
    assert overdrawn("aaaaaa", 500, 1000) == "aaa!!!"
    assert overdrawn("aaaaaa", 0, 1000) == "aaaaaa"


def test_painted_has_no_trailing_spaces_and_no_beyond() -> None:
    """A copied screen has no tails; a line never wraps."""
    rows = [line(("abc  ", Style.ALARM), "   "), line("x" * 30)]
    assert painted(rows, Look(width=10)) == "abc\nxxxxxxxxxx\n"
    assert painted(rows[:1], Look(width=10, colour=True)) == "\x1b[1;31mabc\x1b[0m\n"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0s"), (40, "40s"), (192, "3m12s"), (2460, "41m"), (7440, "2h04m"), (187200, "2d04h")],
)
def test_spans_are_as_short_as_a_column_needs(seconds: float, shown: str) -> None:
    """Five cells hold any of them."""
    assert span(seconds) == shown
    assert len(shown) <= 5


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.2, "~1s"), (20, "~20s"), (110, "~2m"), (3000, "~50m"), (7300, "~2h"), (200000, "~2d")],
)
def test_expectations_are_no_finer_than_they_are_meant(seconds: float, shown: str) -> None:
    """~1m47s would be a promise."""
    assert about(seconds) == shown
