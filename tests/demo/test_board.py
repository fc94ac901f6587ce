"""The live board as it is drawn, from a status to the last cell."""

from typing import Any

import pytest

from berth.cli.render.lines import Look, painted, text_of
from berth.demo.board import Scene, board_lines
from berth.demo.lines import clock
from berth.words import cells

NEWS = tuple(f"00:{second:02d} news" for second in range(30))


def card(name: str, **others: Any) -> dict[str, Any]:
    usual = {"card": name, "state": "ok", "total_mib": 24576, "baseline_mib": 421}
    free = {"unexplained_mib": 0, "books_free_mib": 0, "driver_free_mib": 0, "free_mib": 0}
    return {**usual, **free, **others}


def lease(name: str, on: str, **others: Any) -> dict[str, Any]:
    usual = {"lease": f"L-{name}", "card": on, "cards": [on], "name": name, "state": "running"}
    figures = {"used_mib": 1024, "ask_mib": 1024, "turn_left_s": 0.0, "priority": "interactive"}
    return {**usual, **figures, **others}


def waiter(name: str, on: str, *blockers: dict[str, Any], **others: Any) -> dict[str, Any]:
    usual = {"request": f"r-{name}", "card": on, "cards": [on], "name": name, "position": 1}
    return {**usual, "ask_mib": 2048, "why": "", "blockers": list(blockers), **others}


def blocker(who: str, how: str, left: float | None = None) -> dict[str, Any]:
    return {"who": who, "how": how, "lease": f"L-{who}", "left_s": left}


CHAT = lease(
    "chat",
    "gpu0",
    state="draining",
    used_mib=14000,
    boundary=True,
    in_flight={"n": 2, "what": "reply"},
    **{"for": "r-coder"},
)
TRAIN = lease("train", "gpu1", used_mib=12500, priority="batch", turn_left_s=2.6)
STATUS = {
    "cards": [
        card("gpu0", books_free_mib=10155, driver_free_mib=10155),
        card("gpu1", books_free_mib=9205, driver_free_mib=9205),
    ],
    "leases": [CHAT, TRAIN],
    "waiting": [
        waiter(
            "coder", "gpu0", blocker("chat", "draining"), ask_mib=16000, why="chat is finishing"
        ),
        waiter(
            "giant",
            "gpu1",
            blocker("train", "in_turn", 2.6),
            blocker("chat", "draining"),
            cards=["gpu0", "gpu1"],
            ask_mib=12500,
            why="train keeps its turn for 2.6s; chat is finishing and will give what it has",
        ),
    ],
    "stowaways": [{"card": "gpu1", "pid": 9, "name": "browser", "used_mib": 2450}],
}


def scene(status: dict[str, Any], **others: Any) -> Scene:
    usual = {"at": 41.0, "seconds": 90.0, "with_berth": True, "news": NEWS, "counts": "cut 0"}
    return Scene(status=status, **{**usual, **others})


def drawn(status: dict[str, Any], look: Look, **others: Any) -> list[str]:
    return [text_of(row) for row in board_lines(scene(status, **others), look)]


def test_board_at_eighty() -> None:
    """What everybody sees first; every word on it is looked at."""
    rows = drawn(STATUS, Look(width=80, height=23))
    assert rows == [
        "berth demo   simulated node, 2 cards            00:41 of 01:30   ctrl-c ends it",
        "",
        "gpu0 24 GiB [░aaaaaaaaaaaaaaaaaaa··············]  free  9.9   chat -> coder",
        "gpu1 24 GiB [░bbbbbbbbbbbbbbbbb~~~·············]  free  9.0",
        "",
        "a chat      gpu0      ◐ draining  13.7   2 replies in flight, none will be cut",
        "b train     gpu1      ● running   12.2   keeps its turn for 2s",
        "1 coder     gpu0      ○ waiting   15.6   chat (a) is finishing",
        "1 giant     gpu0,gpu1 ○ waiting   12.2   train (b) keeps its turn for 2s + 1 more",
        "~ browser   gpu1        stowaway   2.4   no lease; counted, never killed",
        *[""] * 4,
        *NEWS[-7:],
        "",
        "cut 0",
    ]


@pytest.mark.parametrize(("width", "height"), [(80, 23), (120, 39), (60, 20), (200, 50)])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_board_fits_the_screen(width: int, height: int, ascii_only: bool) -> None:
    """A line that wraps, or one too many, makes a live screen jump."""
    look = Look(width=width, height=height, ascii=ascii_only)
    lines = painted(board_lines(scene(STATUS), look), look).splitlines()
    assert len(lines) <= height
    assert all(cells(text) <= width for text in lines)
    assert "00:41 of 01:30" in lines[0]
    if ascii_only:
        assert "".join(lines).isascii()


def test_board_is_as_high_with_everybody_as_with_nobody() -> None:
    """What is below must not jump when somebody comes or goes."""
    look = Look(width=80, height=23)
    nobody = {**STATUS, "leases": [], "waiting": [], "stowaways": []}
    assert len(drawn(STATUS, look)) == len(drawn(nobody, look)) == 23


def test_whole_reason_is_shown_where_there_is_room() -> None:
    """The short one is for narrow screens."""
    wide = "\n".join(drawn(STATUS, Look(width=140, height=30)))
    assert "train (b) keeps its turn for 2.6s; chat (a) is finishing and will give" in wide


@pytest.mark.parametrize(
    ("row", "remark"),
    [
        (lease("hold", "gpu0", priority="hold", ask_mib=None, left_s=1.7), "a person, for 1s more"),
        (lease("hold", "gpu0", priority="hold", ask_mib=None, left_s=None), "a person"),
        ({**CHAT, "in_flight": {"n": 1}}, "1 reply in flight, none will be cut"),
        ({**CHAT, "in_flight": None}, "finishes for coder"),
        ({**CHAT, "in_flight": None, "for": "r-gone"}, "finishes"),
        ({**CHAT, "in_flight": None, "boundary": False}, "stops for coder"),
        (lease("train", "gpu1", turn_left_s=0.2), "keeps its turn for 1s"),
        (lease("train", "gpu1"), ""),
        (lease("train", "gpu1", state="stuck", note="1.0 GiB is still there"), "1.0 GiB is still"),
    ],
)
def test_remark_says_what_a_holder_does(row: dict[str, Any], remark: str) -> None:
    """Each state that a spectator wonders about has a sentence."""
    status = {**STATUS, "leases": [row], "stowaways": []}
    (shown,) = [text for text in drawn(status, Look(width=120)) if text.startswith("a ")]
    assert shown[41:].startswith(remark)
    assert remark or shown == shown[:40].rstrip()


def test_overfull_card_says_so() -> None:
    """It is what --without is there to show."""
    overfull = card("gpu0", books_free_mib=-6000)
    rows = drawn({**STATUS, "cards": [overfull]}, Look(width=80), with_berth=False)
    assert "the same load without Berth" in rows[0]
    assert "!!!" in rows[2]


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, "00:00"), (61.9, "01:01"), (3600, "60:00")])
def test_clock_counts_minutes(seconds: float, shown: str) -> None:
    """An hour's demo must not start again at nought."""
    assert clock(seconds) == shown
