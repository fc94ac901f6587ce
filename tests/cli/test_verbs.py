"""Every verb explains itself; completion is quick and silent; a command imports what it needs."""

import os
import re
import subprocess
import sys
import time

import pytest

from berth.cli import completion
from berth.cli.app import VERBS, run_cli

SHOWN = [verb for verb in VERBS if verb not in {"sim", "version", "demo", "daemon"}]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`berth VERB --help` is where people look first."""
    assert run_cli([verb, "--help"]) == 0
    assert f"Usage: berth {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", SHOWN)
def test_help_has_examples_a_line_each(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An example is there to be copied: it stands on a line of its own, whole."""
    run_cli([verb, "--help"])
    shown = capsys.readouterr().out
    head = re.search(r"^ *Examples?:(.*)", shown, re.MULTILINE)
    assert head is not None
    examples = [row for row in shown.splitlines() if row.strip().startswith(f"berth {verb}")]
    assert examples, shown


def test_unknown_verb_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """A typo is exit 64 with what was meant."""
    assert run_cli(["statu"]) == 64
    assert "status" in capsys.readouterr().err


def imported(*arguments: str) -> set[str]:
    """Return the modules that a command line has imported by its end."""
    code = (
        "import sys; from berth.cli.app import run_cli; "
        f"run_cli({list(arguments)!r}); print(' '.join(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60.0, check=True
    )
    return set(ended.stderr.splitlines()[-1].split())


def test_json_does_without_what_only_a_screen_needs() -> None:
    """A bar asks every second: `--format json` imports neither rich nor the screens."""
    modules = imported("status", "--format", "json", "--socket", "/nowhere/b.sock")
    assert not {name for name in modules if name.split(".")[0] in {"rich", "pynvml", "pykka"}}
    assert not {name for name in modules if name.startswith("berth.cli.render")}


def test_a_verb_imports_no_other() -> None:
    """Each verb starts as fast as if it were alone."""
    modules = imported("version")
    verbs = {name for name in modules if name.startswith("berth.cli.")}
    assert verbs == {"berth.cli.app", "berth.cli.context", "berth.cli.version"}
    assert "zmq" not in modules


def test_version_says_where_it_looks_for_berthd(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Troubleshooting begins with it: client and daemon look in different places."""
    monkeypatch.setenv("BERTH_SOCKET", "/nowhere/b.sock")
    assert run_cli(["version"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "looks for berthd at /nowhere/b.sock"


def test_completion_without_berthd_is_empty_quick_and_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Tab must never hang, and never write into the command line."""
    monkeypatch.setenv("BERTH_SOCKET", "/nowhere/b.sock")
    start = time.monotonic()
    assert completion.complete_names("") == []
    assert completion.complete_cards("") == []
    assert time.monotonic() - start < 1.0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_completion_offers_what_begins_so_and_nothing_that_acts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names, numbers, cards; a name with an escape sequence is not typed into a shell."""
    status = {
        "leases": [
            {"name": "chat", "lease": "L7", "card": "gpu0", "priority": "interactive"},
            {"name": "hold", "lease": "L8", "card": "gpu1", "priority": "hold"},
            {"name": "c\x1b[2J", "lease": "L9", "card": "gpu1", "priority": "batch"},
        ],
        "waiting": [{"name": "comfyui", "request": "r9"}],
        "cards": [{"card": "gpu0"}, {"card": "gpu1"}],
    }
    monkeypatch.setattr(completion, "_status", lambda: status)
    assert completion.complete_names("c") == ["chat", "comfyui"]
    assert completion.complete_names("g") == ["gpu0", "gpu1"]
    assert completion.complete_leases("L") == ["L7", "L8", "L9"]
    assert completion.complete_cards("") == ["all", "gpu0", "gpu1"]
    assert completion.complete_holds("") == ["L8", "all", "gpu1"]
    assert completion.complete_card_to_run_on("") == ["any", "gpu0", "gpu1"]
    assert completion.complete_card_to_run_on("gpu0,") == ["gpu0,gpu1"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("berth run --priority ", {"foreground", "interactive", "batch", "background"}),
        ("berth run --priority ba", {"batch", "background"}),
        ("berth run --gpu a", {"any"}),
        ("berth events --kind stow", {"stowaway", "stowaway.gone", "stowaway.seen"}),
    ],
)
def test_a_shell_is_offered_what_an_option_takes(typed: str, offered: set[str]) -> None:
    """Through the command as a shell asks it: an option without its completion offers files."""
    status = (
        "from berth.cli import completion; "
        "completion._status = lambda: {'leases': [], 'waiting': [], 'cards': [{'card': 'gpu0'}]}; "
    )
    code = f"{status}import sys; sys.argv = ['berth']; from berth import __main__; __main__.main()"
    asked = {
        **os.environ,
        "_BERTH_COMPLETE": "complete_bash",
        "_TYPER_COMPLETE_ARGS": typed,
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60.0,
        env=asked,
        check=False,  # what is offered is looked at, whatever the status
    )
    assert set(ended.stdout.split()) == offered, ended.stderr


def test_help_of_run_says_that_it_takes_several_cards_or_any(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is not in --help is found by nobody."""
    assert run_cli(["run", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "CARD[,CARD…]|any" in shown
    assert "N[,N…]" in shown
