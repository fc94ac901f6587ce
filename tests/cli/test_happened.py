"""Events as lines, as agreed; which of them are picked."""

import csv
import io
from datetime import UTC
from typing import Any

import pytest

from berth.cli.render.happened import Wanted, event_lines
from berth.cli.render.lines import Look, Style, painted
from berth.cli.render.table import status_csv, table_csv
from berth.words import cells
from tests.cli.boards import SITUATIONS, zoo
from tests.cli.test_board import agreed


def event(at: str, kind: str, name: str | None, why: str, card: str | None = "gpu0") -> Any:
    return {
        "seq": 1,
        "at": f"2026-11-30T{at}.000Z",
        "kind": kind,
        "card": card,
        "lease": "L7",
        "request": None,
        "name": name,
        "why": why,
    }


HAPPENED = [
    event("16:20:02", "lease.parked", "embed", "1.8 GiB to RAM, 0.3 GiB left on card", "gpu1"),
    event("16:31:10", "stowaway.seen", "ollama", "8.6 GiB, open-webui-ollama-1", "gpu1"),
    event("16:37:52", "lease.freed", "sdxl-job", "9.1 GiB back, 0.4s after its word"),
    event("16:37:52", "lease.granted", "comfyui", "6.0 GiB, batch; waited 8.2s for sdxl-job"),
    event("16:41:04", "lease.draining", "qwen3-27b", "for sd-batch"),
    event("16:42:07", "lease.stuck", "train", "card still shows 20.5 GiB after 30s", "gpu1"),
    event("16:43:00", "node.started", None, "", None),
    event(
        "16:44:10",
        "lease.refused",
        "a-reader-with-a-very-long-name",
        "no room on gpu0 in 2m: comfyui keeps its turn for 1m48s; qwen3-27b was asked to finish",
    ),
    event("16:45:00", "lease.contested", "\x1b[2Jchat", "chrome took 2.1 GiB beside its grant"),
]


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("width", [80, 60, 40, None])
def test_events_look_as_agreed(
    several: bool, width: int | None, request: pytest.FixtureRequest
) -> None:
    """Time, card (with several), kind, who, what; the sentence wraps under itself."""
    look = Look(width=width)
    rows = [row for one in HAPPENED for row in event_lines(one, look, several=several, zone=UTC)]
    shown = painted(rows, look)
    if width is not None:
        assert max(cells(row) for row in shown.splitlines()) <= width
    agreed(f"events-{'two' if several else 'one'}-{width or 'pipe'}", shown, request)


def test_only_what_went_wrong_and_what_moves_is_painted() -> None:
    """Red: stuck, refused, contested. Yellow: draining. The rest of a log is plain."""
    found = {}
    for one in HAPPENED:
        rows = event_lines(one, Look(width=80), several=True, zone=UTC)
        styles = {style for row in rows for text, style in row if text.strip()}
        found[one["kind"]] = styles - {Style.PLAIN}
    assert found.pop("lease.draining") == {Style.MOVING}
    alarms = {kind for kind, styles in found.items() if styles == {Style.ALARM}}
    assert alarms == {"lease.stuck", "lease.refused", "lease.contested"}
    assert all(not styles for kind, styles in found.items() if kind not in alarms)


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        (Wanted(None, None, None), 9),
        (Wanted("lease", None, None), 7),
        (Wanted("lease.stuck,node", None, None), 2),
        (Wanted("stow", None, None), 0),
        (Wanted(None, "gpu1", None), 3),
        (Wanted(None, None, "train"), 1),
        (Wanted(None, None, "L7"), 9),
        (Wanted("lease", "gpu1", "embed"), 1),
    ],
)
def test_events_are_picked(wanted: Wanted, number: int) -> None:
    """By kind (whole, or its first word), by card, by name or number; all of them together."""
    assert len([one for one in HAPPENED if wanted.has(one)]) == number


@pytest.mark.parametrize("situation", SITUATIONS)
def test_csv_looks_as_agreed(situation: str, request: pytest.FixtureRequest) -> None:
    """One flat table; MiB and seconds whole, what is absent empty."""
    shown = status_csv(SITUATIONS[situation]()).replace("\r\n", "\n")
    agreed(f"csv-{situation}", shown.replace("\r", "<CR>"), request)


def test_csv_is_read_back_as_it_was() -> None:
    """RFC 4180: commas, quotes and newlines in a name are the name's own."""
    evil = 'a,"b"\nc\r'
    text = table_csv([("x", evil, None, 1.9, 7)])
    (row,) = csv.reader(io.StringIO(text, newline=""))
    assert row == ["x", evil, "", "1", "7"]
    assert text.endswith("\r\n")
    assert len(status_csv(zoo()).split("\r\n")[0].split(",")) == 10


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\tx"])
def test_csv_is_no_formula(name: str) -> None:
    """A spreadsheet runs what begins like a formula; a process may be called like one."""
    assert table_csv([(name,)]).lstrip('"').startswith("'")
