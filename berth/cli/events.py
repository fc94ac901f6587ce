"""`berth events`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import zmq

from berth.cli.context import Format, FormatOption, SocketOption, connect, duration, where
from berth.paths import events_path


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on with what happens")] = False,
    since: Annotated[
        str | None, typer.Option("--since", help="a duration (10m) or a sequence number")
    ] = None,
    format_: FormatOption = Format.TEXT,
    socket: SocketOption = None,
) -> None:
    """Show what happened: the last 24 hours, unless told otherwise."""
    write = _write_json if format_ is Format.JSON else _write_text
    listener = _listen(where(socket)) if follow else None
    last = 0
    with connect(socket) as client:
        for event in client.call("events", _range(since))["events"]:
            last = event["seq"]
            write(event)
    if listener is not None:
        _follow(listener, last, write)


def _range(since: str | None) -> dict[str, Any]:
    if since is None:
        return {"last_s": 86400.0}
    if since.isdecimal():
        return {"since": int(since)}
    return {"last_s": duration(since)}


def _listen(path: Path) -> "zmq.Socket[bytes]":
    """Listen before asking for the past, so that nothing falls between."""
    listener: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
    listener.set(zmq.SUBSCRIBE, b"")
    listener.connect(f"ipc://{events_path(path)}")
    return listener


def _follow(
    listener: "zmq.Socket[bytes]", last: int, write: Callable[[dict[str, Any]], None]
) -> None:
    while True:
        _, body = listener.recv_multipart()
        event = json.loads(body)
        if event["seq"] > last:
            write(event)


def _write_json(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def _write_text(event: dict[str, Any]) -> None:
    clock = event["at"][11:19]
    card, name, why = event["card"] or "", event["name"] or "", event["why"]
    print(f"{clock} {card:<5} {event['kind']:<16} {name:<12} {why}".rstrip(), flush=True)
