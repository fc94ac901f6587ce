"""What a screen can show: width, characters, colours; which switch comes before which."""

import io
from typing import Any

import pytest

from berth.cli.seeing import look_of, wants_ascii, wants_colour
from berth.errors import BerthError


class Stream(io.TextIOWrapper):
    """A stream that says what it is told to of itself."""

    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("environ", "flag", "screen", "colour"),
    [
        ({}, "auto", True, True),
        ({}, "auto", False, False),
        ({"TERM": "dumb"}, "auto", True, False),
        ({"NO_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": ""}, "auto", True, True),
        ({"FORCE_COLOR": "1"}, "auto", False, True),
        ({"FORCE_COLOR": "0"}, "auto", False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": "1"}, "always", False, True),
        ({"FORCE_COLOR": "1"}, "never", True, False),
    ],
)
def test_colour_is_decided_by_flag_then_no_color_then_force_color_then_screen(
    environ: dict[str, str], flag: str, screen: bool, colour: bool
) -> None:
    """The order of switches is one that people can rely on."""
    assert wants_colour(environ, flag, is_screen=screen) is colour


@pytest.mark.parametrize(
    ("encoding", "environ", "ascii_only"),
    [
        ("utf-8", {}, False),
        ("UTF8", {}, False),
        ("iso-8859-1", {}, True),
        ("ascii", {}, True),
        ("utf-8", {"BERTH_ASCII": "1"}, True),
        ("utf-8", {"BERTH_ASCII": "0"}, False),
    ],
)
def test_ascii_where_nothing_else_can_be_encoded_or_is_wanted(
    encoding: str, environ: dict[str, str], ascii_only: bool
) -> None:
    """A glyph that cannot be encoded would be an error in the middle of a table."""
    assert wants_ascii(Stream(encoding), environ) is ascii_only


@pytest.mark.parametrize(
    ("environ", "width"), [({}, None), ({"COLUMNS": "60"}, 60), ({"COLUMNS": "wide"}, None)]
)
def test_a_pipe_has_no_width_unless_told(environ: dict[str, Any], width: int | None) -> None:
    """What is grepped is not cut at 80; COLUMNS counts where there is no screen to ask."""
    assert look_of(Stream(), environ).width == width
    assert look_of(Stream(), {**environ, "FORCE_COLOR": "1"}).width == width


def test_unknown_colour_is_told_with_what_there_is() -> None:
    """A typo must not look like a choice."""
    with pytest.raises(BerthError, match="auto, always, never"):
        look_of(Stream(), {}, "sometimes")
