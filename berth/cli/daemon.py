"""`berth daemon`."""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from berth.cli.context import SocketOption, duration, where
from berth.errors import BerthError, Code, Exit
from berth.paths import config_path, state_dir


def daemon(
    socket: SocketOption = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="the cards to govern: all, 0,1 or PCI addresses")
    ] = None,
    sim: Annotated[
        str | None,
        typer.Option("--sim", metavar="DIR", help="govern simulated cards [env: BERTH_SIM_DIR]"),
    ] = None,
    release_grace: Annotated[
        str | None,
        typer.Option(help="how long a card may take to show memory free after its release"),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="a process that never counts as squatter; may be repeated"),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="log more")] = False,
) -> int:
    """Govern the cards: every engine that wants one asks here."""
    from berth.actors.card.state import Settings
    from berth.config import load_config
    from berth.daemon import DaemonOptions, run_daemon
    from berth.probes.choice import chosen_cards
    from berth.units import MiB, Seconds

    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("pykka").setLevel(logging.CRITICAL)
    config = load_config(config_path(os.environ))
    grace = (
        Seconds(config.daemon.release_grace) if release_grace is None else duration(release_grace)
    )
    folder = sim or os.environ.get("BERTH_SIM_DIR")
    cards = chosen_cards(gpu or config.daemon.gpu, Path(folder) if folder else None)
    options = DaemonOptions(
        socket=where(socket),
        state=state_dir(os.environ),
        cards=cards,
        settings=Settings(
            release_grace=grace,
            allow=frozenset(config.squatters.allow if allow is None else allow),
            tolerate=MiB(config.squatters.tolerate_mib),
        ),
    )
    names = ", ".join(spec.identity.name for spec in cards)

    def ready() -> None:
        logging.getLogger("berth").info("governing %s; socket %s", names, options.socket)

    failure = run_daemon(options, ready)
    if failure:
        raise BerthError(Code.INTERNAL, f"berthd ended: {failure}", exit_status=Exit.UNAVAILABLE)
    return int(Exit.OK)
