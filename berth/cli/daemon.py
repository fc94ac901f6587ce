"""`berth daemon`."""

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.context import SocketOption, duration, where
from berth.config import configured
from berth.errors import BerthError, Code, Exit
from berth.paths import state_dir

if TYPE_CHECKING:
    from berth.probes.choice import Choice


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
    from berth.actors.card.state import JuggleRule, Settings
    from berth.daemon import DaemonOptions, run_daemon
    from berth.probes.choice import chosen_cards
    from berth.units import MiB, Seconds

    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("pykka").setLevel(logging.CRITICAL)
    config = configured(os.environ)
    grace = (
        Seconds(config.daemon.release_grace) if release_grace is None else duration(release_grace)
    )
    folder = sim or os.environ.get("BERTH_SIM_DIR")
    choice = chosen_cards(gpu or config.daemon.gpu, Path(folder) if folder else None)
    _log_cards(choice)
    options = DaemonOptions(
        socket=where(socket),
        state=state_dir(os.environ),
        cards=choice.cards,
        settings=Settings(
            release_grace=grace,
            allow=frozenset(config.squatters.allow if allow is None else allow),
            tolerate=MiB(config.squatters.tolerate_mib),
            juggle=JuggleRule(
                takes=config.juggle.takes,
                within=Seconds(float(config.juggle.within)),
                factor=config.juggle.factor,
            ),
        ),
    )
    names = ", ".join(spec.identity.name for spec in choice.cards)

    def ready() -> None:
        logging.getLogger("berth").info("governing %s; socket %s", names, options.socket)

    failure = run_daemon(options, ready)
    if failure:
        raise BerthError(Code.INTERNAL, f"berthd ended: {failure}", exit_status=Exit.UNAVAILABLE)
    return int(Exit.OK)


def _log_cards(choice: "Choice") -> None:
    """Say which cards were found, and which of them cannot be read as they are."""
    log = logging.getLogger("berth")
    refused = {card.identity.name: card.why.detail for card in choice.refused}
    for spec in choice.cards:
        card = spec.identity
        what = " ".join(part for part in (card.product, card.pci, card.uuid) if part)
        if card.name in refused:
            log.warning("%s (%s) cannot be governed: %s", card.name, what, refused[card.name])
        else:
            log.info("found %s: %s", card.name, what)
