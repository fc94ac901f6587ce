"""`berth run`."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, TextIO

import typer

from berth.cli.completion import complete_card_to_run_on, complete_priorities
from berth.cli.context import SocketOption, where
from berth.config import configured
from berth.errors import usage_error
from berth.units import parse_count
from berth.words import plain


def run(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- CMD…", help="the command and its arguments")
    ] = None,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="its name; one lease at a time")
    ] = None,
    group: Annotated[str | None, typer.Option(help="whose engine it is (llama-swap)")] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="CARD[,CARD…]|any",
            help="gpu1, 1 or a PCI address; a list: all of them; any: where it fits first [gpu0]",
            autocompletion=complete_card_to_run_on,
        ),
    ] = None,
    needs_mib: Annotated[
        str | None,
        typer.Option(
            "--needs-mib",
            metavar="N[,N…]",
            help="memory on each card, or a list with a figure for each; absent: whole cards",
        ),
    ] = None,
    priority: Annotated[
        str | None,
        typer.Option(
            help="foreground, interactive, batch or background",
            autocompletion=complete_priorities,
        ),
    ] = None,
    wait: Annotated[str | None, typer.Option(help="how long to wait for the card [120s]")] = None,
    min_turn: Annotated[str | None, typer.Option(help="how long it is left alone at least")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="drained by nobody but a hold")] = False,
    drain_slots: Annotated[
        str | None, typer.Option(metavar="URL", help="where its /slots are: its boundary")
    ] = None,
    unload: Annotated[
        str | None, typer.Option(metavar="URL", help="POSTed at the boundary, to unload it")
    ] = None,
    grace: Annotated[str | None, typer.Option(help="from SIGTERM to SIGKILL [10s]")] = None,
    drain_wait: Annotated[
        str | None, typer.Option(help="how long a drain waits for the boundary [5m]")
    ] = None,
    start_limit: Annotated[str | None, typer.Option(help="how long a start may take [15m]")] = None,
    fail_closed: Annotated[
        bool, typer.Option("--fail-closed", help="never cut it; never run it without a lease")
    ] = False,
    key_file: Annotated[
        Path | None, typer.Option(help="the engine's API key, for its slots and unload URL")
    ] = None,
    json_to: Annotated[
        str | None, typer.Option("--json", metavar="FD|FILE", help="events of this run, as JSON")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="say refusals only")] = False,
    socket: SocketOption = None,
) -> int:
    """Run a command once it has the card, and give the card back when it ends.

    Example: berth run --as chat --needs-mib 14000 -- llama-server -m model.gguf
    """
    from berth.run.plan import RunFlags, plan_run
    from berth.run.wrapper import Voice
    from berth.run.wrapper import run as run_wrapped

    flags = RunFlags(
        as_=as_,
        group=group,
        gpu=gpu,
        needs_mib=needs_mib,
        priority=priority,
        wait=wait,
        min_turn=min_turn,
        pinned=pinned,
        drain_slots=drain_slots,
        unload=unload,
        grace=grace,
        drain_wait=drain_wait,
        start_limit=start_limit,
        fail_closed=fail_closed,
        key_file=key_file,
    )
    plan = plan_run(
        command or [],
        flags,
        configured(os.environ),
        where(socket),
        os.environ,
    )
    report = None if json_to is None else _report(json_to)
    try:
        return run_wrapped(plan, Voice(quiet=quiet, report=report))
    finally:
        with suppress(OSError):
            if report is not None:
                report.close()


def _report(target: str) -> TextIO:
    """Open what `--json` names: a number is a file descriptor that is open already."""
    try:
        if not target.isdecimal():
            return Path(target).open("a")
        number = parse_count(target)
        if number is None or number > _LAST_DESCRIPTOR:
            raise usage_error(f"--json {target[:20]}: there is no such file descriptor")
        return os.fdopen(number, "w", closefd=False)
    except OSError as error:
        raise usage_error(f"--json {plain(target)}: {error.strerror}") from error


_LAST_DESCRIPTOR: Final = 2**31 - 1
