"""`berth stop`."""

from typing import Annotated

import typer

from berth.cli.context import SocketOption, connect


def stop(
    name: Annotated[str, typer.Argument(help="an engine's name, a lease (L7) or a request (r9)")],
    now: Annotated[bool, typer.Option("--now", help="do not wait for the boundary")] = False,
    socket: SocketOption = None,
) -> None:
    """Stop an engine at its boundary, or take back a request that waits."""
    with connect(socket) as client:
        client.call("stop", {"name": name, "now": now})
    print(f"{name} was told to stop")
