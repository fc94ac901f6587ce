"""`berth status`."""

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.completion import complete_names
from berth.cli.context import SocketOption, Table, TableOption, connect
from berth.errors import BerthError, Code, Exit, usage_error

if TYPE_CHECKING:
    from berth.cli.render.lines import Line, Look


def status(
    name: Annotated[
        str | None,
        typer.Argument(
            help="an engine, a lease (L7), a request (r9) or a card: the sum of it",
            autocompletion=complete_names,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="stay, and show what changes")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="only what needs a person; exit 1 when something does")
    ] = False,
    format_: TableOption = Table.TEXT,
    pretty: Annotated[bool, typer.Option("--pretty", help="json: indented")] = False,
    colour: Annotated[
        str, typer.Option("--color", metavar="WHEN", help="auto, always or never")
    ] = "auto",
    socket: SocketOption = None,
) -> int:
    """Show who holds each card, who waits, for whom, why, and for how long.

    Examples:
      berth status                 everything

      berth status sd-batch        the sum: what the card has, who has it, what is missing

      berth status --watch         the same, live; q leaves

      berth status --check         for cron and bars: exit 1 when something needs a person

      berth status --format json | jq .waiting
    """
    if watch:
        return _watch(socket, colour, name=name, other=check or format_ in {Table.JSON, Table.CSV})
    with connect(socket) as client:
        shown = client.call("status")
    if check:
        return _check(shown)
    if format_ is Table.JSON:
        print(json.dumps(shown, indent=2 if pretty else None))
    elif format_ is Table.CSV:
        from berth.cli.render.table import status_csv

        sys.stdout.write(status_csv(shown))
    else:
        _show(shown, name, colour)
    return int(Exit.OK)


def _show(shown: dict[str, Any], name: str | None, colour: str) -> None:
    from berth.cli.render.board import board
    from berth.cli.render.lines import painted
    from berth.cli.seeing import look_of

    look = look_of(sys.stdout, os.environ, colour)
    lines = board(shown, look) if name is None else _sum_of(shown, name, look)
    sys.stdout.write(painted(lines, look))


def _sum_of(shown: dict[str, Any], name: str, look: "Look") -> "list[Line]":
    from berth.cli.render.sums import about_name, known_names
    from berth.words import plain

    lines = about_name(shown, name, look)
    if lines:
        return lines
    known = [plain(one) for one in known_names(shown)]
    some = ", ".join(known[:_NAMES_SHOWN]) + (" …" if len(known) > _NAMES_SHOWN else "")
    raise BerthError(
        Code.NOT_FOUND,
        f"nothing here is called {plain(name)}",
        hint=f"there is {some}" if known else "nobody holds and nobody waits",
        exit_status=Exit.REFUSED,
    )


_NAMES_SHOWN = 20


def _check(shown: dict[str, Any]) -> int:
    from berth.cli.render.board import needs_a_person

    found = needs_a_person(shown)
    for sentence in found:
        print(sentence)
    return int(Exit.NEEDS_A_PERSON if found else Exit.OK)


def _watch(socket: str | None, colour: str, *, name: str | None, other: bool) -> int:
    if other:
        raise usage_error("--watch shows the board, and goes with neither --check nor --format")
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        hint = "follow what happens with:  berth events --follow"
        raise usage_error("--watch needs a terminal", hint)
    from berth.cli.watch import watch_board

    return watch_board(socket, colour, name)
