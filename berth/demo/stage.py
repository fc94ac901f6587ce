"""Where the demo plays: a folder of its own, its cards, and every process that was started."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from berth.client import Client
from berth.demo.crew import BERTH, CARDS_TOML, own_environment
from berth.errors import BerthError, Code, Exit

UP_WITHIN: Final = 30.0
END_WITHIN: Final = 1.0
_LONGEST_FOLDER: Final = 70  # characters: a socket's path has room for about a hundred


class Stage:
    """A folder and what was started in it. Called from any thread."""

    def __init__(self, *, with_berth: bool) -> None:
        self.with_berth = with_berth
        self.folder = _make_folder()
        (self.folder / "cards.toml").write_text(CARDS_TOML)
        own = own_environment(self.folder)
        self.socket = Path(own["BERTH_SOCKET"])
        others = {name: value for name, value in os.environ.items() if name[:6] != "BERTH_"}
        self._environment = {**others, **own}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._names: dict[int, str] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(
        self, name: str, command: Sequence[str], *, talks: bool = False
    ) -> "subprocess.Popen[bytes]":
        """Start a process on this stage; with `talks`, with pipes from and to it.

        What it complains of is kept under its name, until that is started again.

        Raises:
            StageClosedError: everything is being ended.
        """
        pipe = subprocess.PIPE if talks else subprocess.DEVNULL
        with self._lock:
            if self._closed:
                raise StageClosedError
            with self._log(name).open("wb") as log:
                process = subprocess.Popen(  # noqa: S603 -- our own programs
                    list(command),
                    env=self._environment,
                    stdin=pipe,
                    stdout=pipe,
                    stderr=log,
                    start_new_session=True,
                )
            self._processes.append(process)
            self._names[process.pid] = name
        return process

    def name_of(self, pid: int) -> str:
        """Return under which name a process was started, `?` when it was not."""
        with self._lock:
            return self._names.get(pid, "?")

    def ran_out_of_memory(self, name: str) -> bool:
        """Tell whether what was started last under that name complained of it."""
        with suppress(OSError):
            return b"out of memory" in self._log(name).read_bytes()
        return False

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def start_berthd(self, stopped: Callable[[], bool]) -> None:
        """Start berthd and wait until it has read its cards, or until `stopped`.

        Raises:
            BerthError: it is not up in time.
        """
        process = self.start("berthd", [*BERTH, "daemon", "--sim", str(self.folder)])
        pause = threading.Event()
        give_up = time.monotonic() + UP_WITHIN
        while not self._reads_its_cards() and not stopped():
            if process.poll() is not None or time.monotonic() >= give_up:
                message = "the demo's berthd did not come up"
                raise BerthError(Code.INTERNAL, message, exit_status=Exit.UNAVAILABLE)
            pause.wait(0.05)

    def _reads_its_cards(self) -> bool:
        with suppress(BerthError):
            return all(card["state"] == "ok" for card in self.ask("status")["cards"])
        return False

    def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """Ask berthd something.

        Raises:
            BerthError: it refuses, or does not answer.
        """
        with Client(self.socket) as client:
            return client.call(op, fields)

    def close(self) -> None:
        """End everything and remove the folder. A wrapper that is killed takes its engine along."""
        with self._lock:
            self._closed = True
        berthd_first = self._processes[:1]
        for process in self._processes[1:]:
            process.kill()
        for process in berthd_first:
            process.terminate()
        give_up = time.monotonic() + END_WITHIN
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, give_up - time.monotonic()))
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class StageClosedError(Exception):
    """The demo is at its end: nothing is started any more."""


def _make_folder() -> Path:
    """Make the folder where temporary files belong; a socket's path must not be too long."""
    folder = tempfile.mkdtemp(prefix="berth-demo-")
    if len(folder) > _LONGEST_FOLDER:
        shutil.rmtree(folder)
        folder = tempfile.mkdtemp(prefix="berth-demo-", dir="/tmp")
    return Path(folder)
