"""`berth status`."""

import json

from berth.cli.context import Format, FormatOption, SocketOption, connect


def status(format_: FormatOption = Format.TEXT, socket: SocketOption = None) -> None:
    """Show who holds each card, who waits, and why."""
    with connect(socket) as client:
        shown = client.call("status")
    if format_ is Format.JSON:
        print(json.dumps(shown))
        return
    from berth.cli.render import render_status

    render_status(shown)
