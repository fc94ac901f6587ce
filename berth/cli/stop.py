"""`berth stop`, `berth reclaim`: a person ends somebody's lease."""

import sys
from typing import Annotated

import typer

from berth.cli.completion import complete_leases
from berth.cli.context import SocketOption, connect
from berth.words import plain

_Target = Annotated[
    str,
    typer.Argument(
        metavar="NAME|LEASE",
        help="an engine's name, a lease (L7) or a request (r9)",
        autocompletion=complete_leases,
    ),
]


def stop(
    name: _Target,
    now: Annotated[bool, typer.Option("--now", help="do not wait for the boundary")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="with --now: do not ask")] = False,
    socket: SocketOption = None,
) -> None:
    """Stop an engine at its boundary, or take back a request that waits.

    With --now replies in flight are cut, also those of an engine that is never to be cut; on a
    terminal you are asked first.

    Examples:
      berth stop chat           once it has answered what it is answering

      berth stop L7 --now
    """
    with connect(socket) as client:
        if now and not yes and sys.stdin.isatty():
            typer.confirm(f"Stop {plain(name)} now, and cut what it is answering?", abort=True)
        client.call("stop", {"name": name, "now": now})
    print(f"{plain(name)} was told to stop")


def reclaim(name: _Target, socket: SocketOption = None) -> None:
    """Give up a lease that does not come back: kill what is left of it, and close it.

    For a lease that is stuck, or a holder that does not answer. What the card still shows counts as
    taken until it is gone; no command can change that.

    Examples:
      berth reclaim train

      berth reclaim L7
    """
    with connect(socket) as client:
        client.call("reclaim", {"name": name})
    print(
        f"{plain(name)} was reclaimed; what the card still shows counts as taken until it is gone"
    )
