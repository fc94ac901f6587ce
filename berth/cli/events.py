"""`berth events`."""

import json
import os
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.completion import complete_cards, complete_leases
from berth.cli.context import SocketOption, Table, TableOption, connect, duration, where
from berth.cli.render.happened import Wanted
from berth.paths import events_path

if TYPE_CHECKING:
    import zmq

    from berth.client import Client

_SHOWN_BEFORE_FOLLOWING = 10
_A_DAY = 86400.0
_HEADS = ("seq", "at", "kind", "card", "lease", "request", "name", "why")

_Event = dict[str, Any]


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on with what happens")] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="DUR|TIME|SEQ", help="10m, 2026-11-30T12:00 or a seq [24h]"
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KINDS", help="lease,alert or lease.stuck")
    ] = None,
    card: Annotated[
        str | None, typer.Option("--card", help="this card only", autocompletion=complete_cards)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="this engine, lease or request", autocompletion=complete_leases
        ),
    ] = None,
    format_: TableOption = Table.TEXT,
    colour: Annotated[
        str, typer.Option("--color", metavar="WHEN", help="auto, always or never")
    ] = "auto",
    socket: SocketOption = None,
) -> None:
    """Show what happened, oldest first: the last 24 hours, unless told otherwise.

    Examples:
      berth events --since 10m --kind lease,alert

      berth events --follow --name chat

      berth events --format json --since 0 | jq .kind
    """
    wanted = Wanted(kind, card, name)
    listener = _listen(where(socket)) if follow else None
    with connect(socket) as client:
        write = _writer(client, format_, colour)
        past = _all(client, _range(since))
        shown = [event for event in past if wanted.has(event)]
        if follow and since is None:
            shown = shown[-_SHOWN_BEFORE_FOLLOWING:]
        for event in shown:
            write(event)
        sys.stdout.flush()
    if listener is not None:
        _follow(listener, past[-1]["seq"] if past else 0, wanted, write, socket)


def _range(since: str | None) -> dict[str, Any]:
    if since is None:
        return {"since": 0, "last_s": _A_DAY}
    if since.isdecimal():
        return {"since": int(since)}
    if "T" in since or "-" in since or ":" in since:
        return {"since": 0, "last_s": _since_moment(since)}
    return {"since": 0, "last_s": duration(since)}


def _since_moment(text: str) -> float:
    """Return how long ago a time was; without a date it is of today."""
    from datetime import datetime

    now = datetime.now().astimezone()
    try:
        if "-" not in text.partition("T")[0]:
            text = f"{now.date().isoformat()}T{text}"
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"--since {text!r} is no duration (10m), time (2026-11-30T12:00) or number"
        ) from error
    return max(0.0, (now - when.astimezone()).total_seconds())


def _all(client: "Client", asked: dict[str, Any]) -> list[_Event]:
    """Return the events asked for: page by page, until one is empty."""
    found: list[_Event] = []
    while page := client.call("events", asked)["events"]:
        found += page
        asked = {"since": page[-1]["seq"]}
    return found


def _writer(client: "Client", format_: Table, colour: str) -> Callable[[_Event], None]:
    match format_:
        case Table.JSON:
            return lambda event: print(json.dumps(event))
        case Table.CSV:
            return _csv_writer()
        case _:
            return _text_writer(client, colour)


def _csv_writer() -> Callable[[_Event], None]:
    from berth.cli.render.table import table_csv

    sys.stdout.write(table_csv([_HEADS]))

    def write(event: _Event) -> None:
        sys.stdout.write(table_csv([[event[head] for head in _HEADS]]))

    return write


def _text_writer(client: "Client", colour: str) -> Callable[[_Event], None]:
    from berth.cli.render.happened import event_lines, moment
    from berth.cli.render.lines import Style, line, painted
    from berth.cli.seeing import look_of

    several = len(client.call("card.list")["cards"]) > 1
    days: list[date] = []

    def write(event: _Event) -> None:
        look = look_of(sys.stdout, os.environ, colour)
        day = moment(event).date()
        if days and days[-1] != day:
            sys.stdout.write(painted([line((day.isoformat(), Style.DIM))], look))
        days[:] = [day]
        sys.stdout.write(painted(event_lines(event, look, several=several), look))

    return write


def _listen(path: Path) -> "zmq.Socket[bytes]":
    """Listen before asking for the past, so that nothing falls between."""
    import zmq

    listener: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
    listener.set(zmq.SUBSCRIBE, b"")
    listener.connect(f"ipc://{events_path(path)}")
    return listener


def _follow(
    listener: "zmq.Socket[bytes]",
    last: int,
    wanted: Wanted,
    write: Callable[[_Event], None],
    socket: str | None,
) -> None:
    """Write what happens from now on; what was missed (berthd was restarted) is asked for."""
    while True:
        _, body = listener.recv_multipart()
        event = json.loads(body)
        missed = _missed(last, event, socket)
        for one in [*missed, event]:
            if one["seq"] > last:
                last = one["seq"]
                if wanted.has(one):
                    write(one)
        sys.stdout.flush()


def _missed(last: int, event: _Event, socket: str | None) -> list[_Event]:
    if event["seq"] <= last + 1:
        return []
    with connect(socket) as client:
        found = _all(client, {"since": last})
    return [one for one in found if one["seq"] < event["seq"]]
