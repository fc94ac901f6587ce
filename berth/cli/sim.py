"""`berth sim`: simulated engines and claims."""

from typing import Annotated

import typer

from berth.cli.context import duration

app = typer.Typer(
    help="Play an engine on a simulated card.", no_args_is_help=True, rich_markup_mode=None
)


def _parse_seconds(given: str | float) -> float:
    """Parse a flag that is a duration; typer passes its default through here too."""
    return duration(given) if isinstance(given, str) else given


def _seconds(flag: str, help_: str) -> object:
    return typer.Option(flag, parser=_parse_seconds, metavar="S", help=help_)


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


@app.command("engine")
def engine(
    kind: Annotated[str, typer.Option("--kind", help="llama, or plain: a job, no HTTP")],
    mib: Annotated[int, typer.Option("--mib", min=0, help="how much to claim, in MiB")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one")] = 0,
    card: Annotated[int, typer.Option("--card", min=0, help="the card's index")] = 0,
    sim: Annotated[str | None, typer.Option("--sim", help="[env: BERTH_SIM_DIR]")] = None,
    slots: Annotated[int, typer.Option(min=1, help="requests at work at a time")] = 1,
    metrics: Annotated[bool, typer.Option("--metrics", help="serve /metrics")] = False,
    token_s: Annotated[float, _seconds("--token-s", "the time a token takes")] = 0.02,
    cut_after: Annotated[
        float, _seconds("--cut-after", "from SIGTERM to the cut of a stream in flight")
    ] = 1.0,
    load_s: Annotated[float, _seconds("--load-s", "how long it loads")] = 0.0,
    run_s: Annotated[float | None, _seconds("--run-s", "how long it runs once loaded")] = None,
    crash_after: Annotated[
        float | None, _seconds("--crash-after", "exits 1 that long after its start")
    ] = None,
    release_lag: Annotated[
        float, _seconds("--release-lag", "how long its memory outlives it")
    ] = 0.0,
    double_fork: Annotated[
        bool, typer.Option("--double-fork", help="a stray worker has the memory, and stays")
    ] = False,
    lie_on_unload: Annotated[
        bool, typer.Option("--lie-on-unload", help="says that it unloaded, and keeps all")
    ] = False,
    ignore_sigterm: Annotated[
        bool, typer.Option("--ignore-sigterm", help="SIGTERM does nothing; to the stray worker too")
    ] = False,
    hang_slots: Annotated[bool, typer.Option("--hang-slots", help="never answers /slots")] = False,
    leak: Annotated[int, typer.Option(min=0, metavar="MIB", help="grows by it each request")] = 0,
    oom: Annotated[
        bool, typer.Option("--oom", help="fails, loaded, when the card is overfull")
    ] = False,
    residual: Annotated[
        int, typer.Option(min=0, metavar="MIB", help="kept by an unload that does not end it")
    ] = 0,
) -> int:
    """Play an engine: claim memory, serve its routes, misbehave as told.

    Example: berth sim engine --kind llama --mib 14000 --sim cards --load-s 2 --token-s 0.03
    """
    from berth.sim.claims import sim_folder
    from berth.sim.engine import play_engine
    from berth.sim.play import EngineFlags

    flags = EngineFlags(
        kind=kind,
        mib=mib,
        folder=sim_folder(sim),
        card=card,
        port=port,
        slots=slots,
        metrics=metrics,
        token_s=token_s,
        cut_after_s=cut_after,
        load_s=load_s,
        run_s=run_s,
        crash_after_s=crash_after,
        release_lag_s=release_lag,
        double_fork=double_fork,
        lie_on_unload=lie_on_unload,
        ignore_sigterm=ignore_sigterm,
        hang_slots=hang_slots,
        leak_mib=leak,
        oom=oom,
        residual_mib=residual,
    )
    return play_engine(flags)
