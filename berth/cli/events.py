"""`berth events`."""

import json
import os
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cards import find_card, known_cards, no_card
from berth.cli.completion import complete_cards, complete_kinds, complete_leases
from berth.cli.context import SocketOption, Table, TableOption, connect, where
from berth.cli.render.happened import Wanted
from berth.errors import BerthError, Code, refusal_status, usage_error
from berth.kinds import is_kind, kinds_of
from berth.paths import events_path
from berth.readings import CardIdentity
from berth.units import LONGEST_SPAN, parse_count, parse_duration, show_line

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
        str | None,
        typer.Option(
            "--kind",
            metavar="KINDS",
            help="lease,alert or lease.stuck",
            autocompletion=complete_kinds,
        ),
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
    asked = _range(since)
    _check_kinds(kind)
    listener = _listen(where(socket)) if follow else None
    with connect(socket) as client:
        wanted = Wanted(kind, _card_meant(client, card), name)
        write = _writer(client, format_, colour)
        past = _all(client, asked)
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
    number = parse_count(since)
    if number is not None:
        return {"since": number}
    if "T" in since or "-" in since or ":" in since:
        return {"since": 0, "last_s": _since_moment(since)}
    try:
        return {"since": 0, "last_s": parse_duration(since)}
    except ValueError:
        raise _no_moment(since) from None


def _no_moment(text: str) -> BerthError:
    return usage_error(
        f"--since {show_line(text, 60)!r} is none of the three it takes",
        "write how long ago (10m), a time (2026-11-30T12:00, or 12:00 today), or an event's number"
        " (its seq: 120)",
    )


def _check_kinds(kinds: str | None) -> None:
    """Refuse a kind of which there are no events, and say which there are."""
    for word in (kinds or "").split(","):
        if word.strip() and not is_kind(word.strip()):
            raise usage_error(
                f"--kind: no events are {word.strip()!r}", f"there is {kinds_of(word.strip())}"
            )


def _card_meant(client: "Client", text: str | None) -> str | None:
    """Return the name of the card that a person means; None for every card."""
    if text is None or text == "all":
        return None
    cards = [
        CardIdentity(name=card["card"], index=card["index"], uuid=card["uuid"])
        for card in client.call("card.list")["cards"]
    ]
    found = find_card(cards, text)
    if found is None:
        hint = f"there is {known_cards(cards) or 'none'}"
        status = refusal_status(Code.NO_CARD)
        raise BerthError(Code.NO_CARD, no_card(text), hint=hint, exit_status=status)
    return found.name


def _since_moment(text: str) -> float:
    """Return how long ago a time was; without a date it is of today."""
    from datetime import datetime

    now, given = datetime.now().astimezone(), text
    try:
        if "-" not in text.partition("T")[0]:
            text = f"{now.date().isoformat()}T{text}"
        when = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise _no_moment(given) from None
    return min(max(0.0, (now - when).total_seconds()), LONGEST_SPAN)


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
