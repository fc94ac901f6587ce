"""The typer root: registers the verbs, and turns errors into one sentence and an exit status."""

import os
import signal
import sys
from collections.abc import Sequence

import typer

from berth.cli import daemon, demo, events, hold, run, sim, status, stop, version
from berth.cli.context import tell_error
from berth.errors import BerthError, Exit

app = typer.Typer(
    name="berth",
    help="Decides who gets a GPU's memory: engines lease a card instead of grabbing it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("daemon")(daemon.daemon)
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("status")(status.status)
app.command("events")(events.events)
app.command("demo")(demo.demo)
app.command("stop")(stop.stop)
app.command("hold")(hold.hold)
app.command("release")(hold.release)
app.command("reclaim")(stop.reclaim)
app.command("version")(version.version)
app.add_typer(sim.app, name="sim")

# typer carries click inside: what it raises for wrong flags is known by a class it does export.
_ClickException = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def run_cli(arguments: Sequence[str]) -> int:
    """Run a command line. Return the status to exit with; nothing a person does is a traceback."""
    command = typer.main.get_command(app)
    try:
        status_ = command.main(list(arguments), prog_name="berth", standalone_mode=False)
        sys.stdout.flush()
    except BerthError as error:
        return tell_error(error, as_json=_wants_json(arguments))
    except (KeyboardInterrupt, typer.Abort):
        return int(Exit.WITHDRAWN)
    except BrokenPipeError:
        # Whoever read us has enough. Leave as other programs do, and flush nothing more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + int(signal.SIGPIPE)
    except Exception as error:
        if not isinstance(error, _ClickException):
            raise
        error.show()  # type: ignore[attr-defined]  # it is a click exception, checked above
        return int(Exit.USAGE)
    return status_ if isinstance(status_, int) else int(Exit.OK)


def _wants_json(arguments: Sequence[str]) -> bool:
    return any(
        one == "--format=json" or (one == "--format" and other == "json")
        for one, other in zip(arguments, [*arguments[1:], ""], strict=True)
    )
