"""`berth sim`: simulated engines and claims."""

from typing import Annotated

import typer

app = typer.Typer(
    help="Play an engine on a simulated card.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("claim", context_settings={"allow_interspersed_args": False})
def claim(
    command: Annotated[list[str], typer.Argument(help="the real command")],
    mib: Annotated[int, typer.Option("--mib", help="how much to claim, in MiB")],
    card: Annotated[int, typer.Option("--card", help="the card's index")] = 0,
    sim: Annotated[str | None, typer.Option("--sim", help="[env: BERTH_SIM_DIR]")] = None,
) -> None:
    """Claim memory for this process, then become the command: a real engine takes part."""
    from berth.sim.claims import Claim, sim_folder
    from berth.sim.exec import become

    Claim(sim_folder(sim), card).set(mib)
    become(command)
