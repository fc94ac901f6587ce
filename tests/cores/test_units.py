"""Quantities: how they are read, written and rounded."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.units import (
    BYTES_PER_MIB,
    Instant,
    Seconds,
    after,
    left,
    parse_count,
    parse_duration,
    room_mib,
    show_duration,
    show_gib,
    show_line,
    since,
    used_mib,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("1.5s", 1.5),
        ("700s", 700.0),
        ("1m30s", 90.0),
        ("2h", 7200.0),
        ("2h30m", 9000.0),
        ("1h1m1s", 3661.0),
        ("0.5h", 1800.0),
        ("1h5s", 3605.0),
        ("90", 90.0),
        ("2.5", 2.5),
        ("0", 0.0),
        ("0s", 0.0),
    ],
)
def test_duration_is_read_as_people_write_it(text: str, seconds: float) -> None:
    """Q3: the same spellings everywhere; a bare number is seconds."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "5 s",
        " 5s",
        "-5",
        "-5s",
        "s",
        "m",
        "5x",
        "5ms",
        "30s1m",
        "1h2h",
        "1e3",
        "nan",
        "inf",
        "1.",
        ".5",
        "1d",
        "+5",
        "5S",
        "1m30",
        "1,5s",
        "5s\n",
        "\n",
    ],
)
def test_what_is_no_duration_is_refused_with_a_sentence(text: str) -> None:
    """Q3: a typing error must not become a wait of another length."""
    with pytest.raises(ValueError, match="is no duration; write 90, 90s, 1m30s or 2h"):
        parse_duration(text)


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    """Q3: whatever is typed, the answer is a figure that is none below 0, or a sentence."""
    with suppress(ValueError):
        assert parse_duration(text) >= 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.04, "0s"),
        (0.4, "0.4s"),
        (9.0, "9s"),
        (9.94, "9.9s"),
        (9.99, "10s"),
        (10.9, "10s"),
        (41, "41s"),
        (59.9, "59s"),
        (60, "1m"),
        (192, "3m12s"),
        (600, "10m"),
        (605, "10m05s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (7440, "2h04m"),
        (86399, "23h59m"),
        (86400, "1d00h"),
        (187200, "2d04h"),
    ],
)
def test_duration_is_written_short(seconds: float, text: str) -> None:
    """S7: status and reasons show a span in two figures at most."""
    assert show_duration(Seconds(seconds)) == text


@given(st.integers(min_value=0, max_value=3599))
def test_duration_below_an_hour_is_read_back_as_written(seconds: int) -> None:
    """Q3: what Berth prints can be typed again."""
    assert parse_duration(show_duration(Seconds(seconds))) == float(seconds)


@given(st.integers(min_value=0, max_value=1 << 48))
def test_used_memory_rounds_up_and_room_rounds_down(size: int) -> None:
    """3.5: a rounding never makes room that is not there."""
    assert room_mib(size) * BYTES_PER_MIB <= size <= used_mib(size) * BYTES_PER_MIB
    assert used_mib(size) - room_mib(size) == (size % BYTES_PER_MIB != 0)


@given(
    st.floats(min_value=0, max_value=1e9, allow_nan=False),
    st.floats(min_value=0, max_value=1e9, allow_nan=False),
)
def test_spans_between_two_instants_are_never_negative(one: float, other: float) -> None:
    """S8: a clock read a little earlier in another thread makes no negative wait."""
    start, now = Instant(one), Instant(other)
    assert since(start, now) >= 0
    assert left(start, now) >= 0
    assert min(since(start, now), left(start, now)) == 0.0


def test_instant_after_a_span_is_that_far_off() -> None:
    """S8: deadlines are instants of one clock."""
    deadline = after(Instant(10.0), Seconds(2.5))
    assert (left(deadline, Instant(10.0)), since(Instant(10.0), deadline)) == (2.5, 2.5)


@pytest.mark.parametrize(
    ("mib", "text"), [(0, "0.0"), (1024, "1.0"), (14336, "14.0"), (500, "0.5")]
)
def test_memory_is_shown_in_gib(mib: int, text: str) -> None:
    """S7: one decimal, the same in every sentence."""
    assert show_gib(mib) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("llama-server", "llama-server"),
        ("Übersetzer 2", "Übersetzer 2"),
        ("\x1b[31mred", "\ufffd[31mred"),
        ("two\nlines\x07", "two\ufffdlines\ufffd"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("x" * 600, "x" * 499 + "…"),
    ],
)
def test_foreign_text_is_one_printable_line(text: str, shown: str) -> None:
    """Whoever names a process must not be able to write on other people's terminals."""
    assert show_line(text) == shown


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "²", "9" * 19, "9" * 5000])
def test_what_is_no_count_is_none(text: str) -> None:
    """Python refuses to read 5000 digits, and JSON's readers to read 20: no number of ours."""
    assert parse_count(text) is None


def test_count_is_read() -> None:
    """Spaces around it are a slip of no matter."""
    assert (parse_count(" 14000 "), parse_count("0"), parse_count("9" * 18)) == (
        14000,
        0,
        10**18 - 1,
    )


@pytest.mark.parametrize("text", ["9" * 400, "87601h", f"{10 * 365 * 86400 + 1}"])
def test_duration_beyond_ten_years_is_refused(text: str) -> None:
    """A deadline that overflows would end whoever waits for it."""
    with pytest.raises(ValueError, match="not longer than ten years"):
        parse_duration(text)
