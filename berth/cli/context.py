"""What the verbs share: where berthd is, how an error is told, which formats there are."""

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from berth.errors import BerthError
from berth.paths import socket_path
from berth.streams import say
from berth.units import Seconds, parse_duration

if TYPE_CHECKING:
    from berth.client import Client


class Format(StrEnum):
    """How a verb that shows something writes it."""

    TEXT = "text"
    JSON = "json"


class Table(StrEnum):
    """How a verb that shows a table writes it."""

    TEXT = "text"
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


SocketOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--socket", metavar="PATH", help="berthd's socket [env: BERTH_SOCKET]"),
]
FormatOption: TypeAlias = Annotated[Format, typer.Option("--format", help="text or json")]
TableOption: TypeAlias = Annotated[
    Table, typer.Option("--format", help="table (or text), json or csv")
]


def connect(socket: str | None) -> "Client":
    """Return a line to berthd, to be used as a context manager."""
    from berth.client import Client

    return Client(where(socket))


def where(socket: str | None) -> Path:
    """Return where berthd listens."""
    return socket_path(socket, os.environ)


def duration(text: str) -> Seconds:
    """Parse a flag that is a duration."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def tell_error(error: BerthError, *, as_json: bool) -> int:
    """Tell an error: one sentence, the way out below it. Return the status to exit with."""
    say(f"berth: {error.message}\n")
    for line in error.hint.splitlines():
        say(f"       {line}\n")
    if as_json:
        body = {"code": error.code.value, "message": error.message, "hint": error.hint}
        print(json.dumps({"v": 1, "ok": False, "error": body}))
    return int(error.exit_status)
