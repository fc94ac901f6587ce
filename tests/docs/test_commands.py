"""Every command on a page is run as it stands, against a real berthd on a simulated card.

A page is one shell, from its first block to its last. What a reader has and a test machine does not
is stood in for: a `llama-server` that claims memory, a `train.py`. Ports are made free ones.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, name_of, pages

pytestmark = pytest.mark.system

WITHIN = 60.0
LANGUAGES = {"sh", "console"}

LLAMA_SERVER = """#!/bin/sh
port=8080
while [ $# -gt 0 ]; do
  case $1 in --port) port=$2 ;; esac
  shift
done
exec berth sim engine --kind llama --mib 14000 --port "$port"
"""
CARD = "[[card]]\ntotal_mib = 24576\nbaseline_mib = 421\n"

PAGES = [
    page
    for page in pages()
    if any(b.language in LANGUAGES and not b.mark.startswith("not run") for b in blocks(page))
]


class Reader:
    """Somebody with a home folder of their own who types what a page says."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="berth-docs-", dir="/tmp"))
        programs = self.home / "bin"
        programs.mkdir()
        (programs / "llama-server").write_text(LLAMA_SERVER)
        (programs / "llama-server").chmod(0o755)
        (self.home / "cards").mkdir()
        (self.home / "cards" / "cards.toml").write_text(CARD)
        (self.home / "train.py").write_text("print('trained')\n")
        (self.home / "model.gguf").touch()
        shutil.copytree(ROOT / "examples", self.home / "examples")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BERTH_", "XDG_", "CUDA"))}
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.home),
            "BERTH_SIM_DIR": str(self.home / "cards"),
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }

    def type(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Type all of it into one shell; whatever it leaves running is ended."""
        screen, typed = self.home / "screen", self.home / "typed.sh"
        typed.write_text(script)
        with screen.open("w") as shown:
            shell = subprocess.Popen(
                ["bash", str(typed)],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=shown,
                stderr=shown,
                start_new_session=True,
            )
        try:
            status = shell.wait(timeout=WITHIN)
        except subprocess.TimeoutExpired:
            status = -1
        finally:
            self._end(shell.pid)
        shell.wait(timeout=WITHIN)
        return subprocess.CompletedProcess(script, status, screen.read_text())

    def _end(self, group: int) -> None:
        """Kill the shell's jobs; engines have groups of their own, and claims that name them."""
        for kill, number in [
            (os.killpg, group),
            *((os.kill, int(claim.name)) for claim in self.home.glob("*/claims/*/[0-9]*")),
        ]:
            try:
                kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def leave(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Return somebody who reads a page."""
    found = Reader()
    yield found
    found.leave()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Script:
    """The shell script that a page becomes. `expected` pairs a marker with the output after it."""

    def __init__(self, page: Path) -> None:
        self._runs = 0
        self._lines = ["set -eu -o pipefail"]
        self.expected: list[tuple[str, str]] = []
        run = [b for b in blocks(page) if b.language in LANGUAGES]
        run = [b for b in run if not b.mark.startswith("not run")]
        if not any("berth daemon" in block.text for block in run):
            self._command("berth daemon &", page.name)
        for block in run:
            self._block(block, f"{name_of(page)} line {block.line}")

    def _block(self, block: Block, where: str) -> None:
        commands = _console(block.text) if block.language == "console" else _sh(block.text)
        for number, (command, output) in enumerate(commands):
            marker = f"=== {where}, command {number + 1}"
            if output:
                self.expected.append((marker, output))
            stays = block.mark == "stays"
            self._command(command + (" &" if stays else ""), marker)
            if stays:
                self._lines.append("kill -0 $!")

    def _command(self, command: str, marker: str) -> None:
        self._lines += [f"echo {marker!r}", command]
        if command.endswith("&"):
            self._runs += "berth run" in command
            self._lines.append(f"python -m tests.docs.settle {self._runs}")

    def text(self) -> str:
        """Return the script, with ports that are free here."""
        ports: dict[str, str] = {}

        def port(found: re.Match[str]) -> str:
            return ports.setdefault(found[0], str(free_port()))

        return re.sub(r"\b(80[0-9]{2}|81[0-9]{2})\b", port, "\n".join(self._lines))


def _sh(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block; one that goes on over lines ends each with a backslash."""
    return [(command, "") for command in _joined(text.splitlines()) if command]


def _joined(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if found and found[-1].endswith("\\"):
            found[-1] = f"{found[-1]}\n{line}"
        else:
            found.append("" if line.lstrip().startswith("#") else line)
    return found


def _console(text: str) -> list[tuple[str, str]]:
    """Return the commands behind `$ ` and what is shown after each."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            command, output = found[-1]
            found[-1] = (command, f"{output}{line}\n")
    return found


def shows(told: str, marker: str, output: str) -> bool:
    """Tell whether the output after a marker is as the page says; `…` stands for anything."""
    said = told.partition(marker + "\n")[2].partition("=== ")[0]
    pattern = re.escape(output.strip()).replace("…", ".*?")
    return re.fullmatch(pattern, said.strip(), re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page_do_what_it_says(page: Path, reader: Reader) -> None:
    """A command that does not work is worse than none: the reader thinks it was them."""
    script = Script(page)
    done = reader.type(script.text())
    assert done.returncode == 0, done.stdout
    for marker, output in script.expected:
        assert shows(done.stdout, marker, output), f"{marker} should show:\n{output}\n{done.stdout}"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_commands_are_in_blocks_that_are_run(page: Path) -> None:
    """A block without a language hides commands from these tests; a skipped one says why."""
    for block in blocks(page):
        hidden = block.language not in LANGUAGES | {"text"} and re.search(
            r"^\s*(\$ )?(berth|make|pip|npm|node|sudo) ", block.text, re.MULTILINE
        )
        assert not hidden, f"{name_of(page)} line {block.line}"
        if block.mark.startswith("not run"):
            assert block.mark.removeprefix("not run").startswith(": "), block.mark


def test_few_blocks_are_not_run() -> None:
    """What is not run rots."""
    skipped = [b for page in pages() for b in blocks(page) if b.mark.startswith("not run")]
    assert len(skipped) <= 8, [block.mark for block in skipped]
