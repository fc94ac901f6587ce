"""The examples do what they say, with a real berthd and somebody else who wants the card."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.node import Node, wait_for

pytestmark = pytest.mark.system

EXAMPLES = Path(__file__).parents[2] / "examples"


def cells(path: Path) -> list[str]:
    """Return the cells with code of a notebook that is written as a script."""
    return [f"# {cell}" for cell in path.read_text().split("# %%")[2:]]


def test_notebook_gives_way_in_its_cell_and_gives_back_in_the_last(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cell by cell, with time between them in which somebody else asks for the whole card."""
    monkeypatch.setenv("BERTH_SOCKET", str(node.socket))
    taken, loaded, asked, gave_way, last = cells(EXAMPLES / "notebook.py")
    kernel: dict[str, object] = {}
    exec(taken, kernel)
    exec(loaded, kernel)
    other = node.run("--as", "other", "--priority", "foreground", "--", "echo", "mine")
    wait_for(lambda: kernel["lease"].wanted, why="the notebook is asked")  # type: ignore[attr-defined]
    exec(asked, kernel)
    exec(gave_way, kernel)
    assert other.communicate(timeout=30.0)[0] == b"mine\n"
    exec(last, kernel)
    node.wait_gone("notebook")
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["L1 ['gpu0']", "wanted for other", "L3"]


def test_scripts_that_share_a_card_take_turns(node: Node) -> None:
    """Each does all its pieces; the card has changed hands, and nobody was in its way."""
    scripts = [
        subprocess.Popen(
            [sys.executable, str(EXAMPLES / "give_way.py"), name, "9"],
            env=node.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    node.processes += scripts
    told = [script.communicate(timeout=60.0)[0] for script in scripts]
    assert [text.count("done") for text in told] == [9, 9]
    assert len(node.events("lease.granted")) >= 3
    assert node.events("lease.contested", "lease.stuck") == []
