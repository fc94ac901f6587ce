"""The typer root: registers the verbs, and turns errors into one sentence and an exit status."""

import errno
import inspect
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

import typer

from berth.cli.context import tell_error
from berth.errors import BerthError, Exit, no_utf8
from berth.streams import lead_nowhere, say
from berth.words import is_utf8

VERBS: Final = {
    "daemon": "daemon:daemon",
    "run": "run:run",
    "status": "status:status",
    "events": "events:events",
    "hold": "hold:hold",
    "release": "hold:release",
    "stop": "stop:stop",
    "reclaim": "stop:reclaim",
    "sim": "sim:app",
    "demo": "demo:demo",
    "version": "version:version",
}
"""Each verb's module and function, in the order of --help. What runs imports its own verb only."""

_TAKES_A_COMMAND: Final = {"allow_interspersed_args": False}


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return the typer root for a command line: with its verb, or with all where none is named."""
    app = typer.Typer(
        name="berth",
        help="Decides who gets a GPU's memory: engines lease a card instead of grabbing it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_nothing_before_a_verb)
    verb = next(iter(arguments), "")
    for name in [verb] if verb in VERBS else VERBS:
        module, _, what = VERBS[name].partition(":")
        found = getattr(import_module(f"berth.cli.{module}"), what)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            settings = _TAKES_A_COMMAND if name == "run" else None
            app.command(name, help=help_of(found), context_settings=settings)(found)
    return app


def help_of(verb: Callable[..., object]) -> str:
    """Return a verb's help. Its examples are kept as they stand, a line each."""
    said, head, examples = (inspect.getdoc(verb) or "").partition("Examples:")
    if not head:
        said, head, examples = said.partition("Example:")
    lines = [f"  {line.strip()}" for line in examples.splitlines() if line.strip()]
    # A paragraph that begins with a backspace is not filled.
    return "\n".join([said, "\b", head, *lines]) if head else said


def _nothing_before_a_verb() -> None:
    """Keep a verb a verb, also where there is one only."""


# typer carries click inside: what it raises for wrong flags is known by a class it does export.
_ClickException = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def run_cli(arguments: Sequence[str]) -> int:
    """Run a command line. Return the status to exit with; nothing a person does is a traceback."""
    try:
        status = _run_verb(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _left_unread()
    except OSError as error:
        return _tell_os_error(error)
    return status


def _run_verb(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(app_for(arguments))
    try:
        status = command.main(list(arguments), prog_name="berth", standalone_mode=False)
    except BerthError as error:
        return tell_error(error, as_json=_wants_json(arguments))
    except (KeyboardInterrupt, typer.Abort):
        return int(Exit.WITHDRAWN)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # as click takes it
            raise ended.__context__ from None
        raise
    except UnicodeEncodeError as error:
        if is_utf8(error.object):
            raise
        return tell_error(no_utf8(error.object), as_json=_wants_json(arguments))
    except Exception as error:
        if not isinstance(error, _ClickException):
            raise
        error.show()  # type: ignore[attr-defined]  # it is a click exception, checked above
        return int(Exit.USAGE)
    return status if isinstance(status, int) else int(Exit.OK)


def _left_unread() -> int:
    """Leave as other programs do when whoever read them has enough."""
    lead_nowhere(1)
    return 128 + int(signal.SIGPIPE)


def _tell_os_error(error: OSError) -> int:
    """Tell what the system refused: output that cannot be written, or a file that a person named.

    Anything else is a fault of Berth's, and raised again.
    """
    if error.filename is not None:
        say(f"berth: cannot use {error.filename}: {error.strerror}\n")
        return int(Exit.CONFIG)
    if error.errno not in _UNWRITTEN:
        raise error
    lead_nowhere(1)
    say(f"berth: the output cannot be written: {error.strerror}\n")
    return int(Exit.NOT_WRITTEN)


_UNWRITTEN: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def _wants_json(arguments: Sequence[str]) -> bool:
    return any(
        one == "--format=json" or (one == "--format" and other == "json")
        for one, other in zip(arguments, [*arguments[1:], ""], strict=True)
    )
