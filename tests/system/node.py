"""A real berthd on simulated cards, in a folder of its own, and the processes started on it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BERTH = [sys.executable, "-m", "berth"]
WITHIN = 20.0


def wait_for(what: Callable[[], Any], within: float = WITHIN, why: str = "") -> Any:
    """Return what `what` returns once it is true; fail when it is not in time."""
    pause = threading.Event()
    give_up = time.monotonic() + within
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() >= give_up:
            raise AssertionError(f"not within {within}s: {why or what}")
        pause.wait(0.01)


class Sampler(threading.Thread):
    """Looks at the claims of a card by itself, never asking berthd, and notes what overlaps."""

    def __init__(self, folder: Path, total: int, card: int = 0, every: float = 0.002) -> None:
        super().__init__(name="sampler", daemon=True)
        self._claims = folder / "claims" / str(card)
        self._total = total
        self._every = every
        self._ended = threading.Event()
        self.samples = 0
        self.overdrawn: list[dict[int, int]] = []

    def run(self) -> None:
        """Sample until stopped."""
        while not self._ended.wait(self._every):
            claims = {}
            for path in self._claims.glob("[0-9]*"):
                try:
                    claims[int(path.name)] = int(path.read_text())
                except (OSError, ValueError):
                    continue
            self.samples += 1
            living = {pid: mib for pid, mib in claims.items() if _lives(pid)}
            if sum(living.values()) > self._total:
                self.overdrawn.append(living)

    def stop(self) -> None:
        """End sampling."""
        self._ended.set()
        self.join(timeout=5.0)


def _lives(pid: int) -> bool:
    """Tell whether a process runs; a zombie has given its memory back."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


class Node:
    """One berthd and all that was started on it."""

    def __init__(self, folder: Path, cards: Sequence[dict[str, Any]]) -> None:
        self.folder = folder
        self.sim = folder / "sim"
        self.sim.mkdir(parents=True)
        self.socket = folder / "b.sock"
        self.declare(cards)
        (folder / "berth.toml").touch()
        self.environment = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("BERTH_", "XDG_", "CUDA_"))
            },
            "BERTH_SOCKET": str(self.socket),
            "BERTH_STATE_DIR": str(folder / "state"),
            "BERTH_SIM_DIR": str(self.sim),
            "BERTH_CONFIG": str(folder / "berth.toml"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        self.daemon: subprocess.Popen[bytes] | None = None
        self.processes: list[subprocess.Popen[Any]] = []
        self.log = folder / "berthd.log"

    def declare(self, cards: Sequence[dict[str, Any]]) -> None:
        """Write cards.toml."""
        lines = []
        for card in cards:
            lines.append("[[card]]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in card.items()]
        beside = self.sim / "cards.new"
        beside.write_text("\n".join(lines) + "\n")
        beside.rename(self.sim / "cards.toml")

    # --- berthd -----------------------------------------------------------------------------

    def start(self, *flags: str) -> None:
        """Start berthd and wait until it has read every card."""
        with self.log.open("ab") as log:
            self.daemon = subprocess.Popen(
                [*BERTH, "daemon", *flags],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self.answers, why=f"berthd answers; its log: {self.log_text()}")

    def log_text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def answers(self) -> bool:
        """Tell whether berthd answers and has looked at its cards."""
        assert self.daemon is not None
        assert self.daemon.poll() is None, f"berthd ended: {self.log_text()}"
        shown = self.try_status()
        return shown is not None and all(
            c["reading_age_s"] is not None or c["why"] not in {None, "not read yet"}
            for c in shown["cards"]
        )

    def kill(self) -> None:
        """SIGKILL berthd."""
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait(timeout=WITHIN)

    def stop(self) -> int:
        """Stop berthd in order."""
        assert self.daemon is not None
        self.daemon.terminate()
        return self.daemon.wait(timeout=WITHIN)

    # --- what runs on it --------------------------------------------------------------------

    def popen(self, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start a berth command."""
        options = {
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
            **options,
        }
        process = subprocess.Popen([*BERTH, *arguments], **options)
        self.processes.append(process)
        return process

    def berth(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run a berth command to its end."""
        return self._ended(*BERTH, *arguments, **options)

    def shell(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Run a line of bash to its end; `berth` at its beginning is this Berth."""
        words = script.replace("berth ", f"{' '.join(BERTH)} ", 1)
        return self._ended("bash", "-c", words, stdin=None)

    def _ended(self, *command: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        options = {
            "env": self.environment,
            "capture_output": True,
            "stdin": subprocess.DEVNULL,
            "timeout": 60.0,
            **options,
        }
        return subprocess.run(command, text=True, check=False, **options)

    def run(self, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start `berth run`."""
        return self.popen("run", *arguments, **options)

    def claiming(self, mib: int, *command: str, card: int = 0) -> list[str]:
        """Return a command that claims memory and then becomes `command`."""
        return [*BERTH, "sim", "claim", "--mib", str(mib), "--card", str(card), "--", *command]

    def close(self) -> None:
        """Kill whatever is left."""
        for process in [*self.processes, *([self.daemon] if self.daemon else [])]:
            if process.poll() is None:
                process.kill()
                process.wait(timeout=WITHIN)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        for path in self.sim.glob("claims/*/[0-9]*"):
            try:
                os.kill(int(path.name), signal.SIGKILL)
            except ProcessLookupError:
                continue

    # --- what berthd says -------------------------------------------------------------------

    def try_status(self) -> dict[str, Any] | None:
        """Return the status, None when nobody answers."""
        shown = self.berth("status", "--format", "json")
        found: dict[str, Any] | None = json.loads(shown.stdout) if shown.returncode == 0 else None
        return found

    def status(self) -> dict[str, Any]:
        """Return the status."""
        shown = self.try_status()
        assert shown is not None, f"berthd does not answer; its log: {self.log_text()}"
        return shown

    def lease(self, name: str) -> dict[str, Any] | None:
        """Return the lease of that name, None when it holds none."""
        rows: list[dict[str, Any]] = self.status()["leases"]
        return next((row for row in rows if row["name"] == name), None)

    def waiter(self, name: str) -> dict[str, Any] | None:
        """Return the waiter of that name, None when it does not wait."""
        rows: list[dict[str, Any]] = self.status()["waiting"]
        return next((row for row in rows if row["name"] == name), None)

    def wait_state(self, name: str, *states: str, within: float = WITHIN) -> dict[str, Any]:
        """Wait until a lease is in one of these states."""

        def in_state() -> dict[str, Any] | None:
            row = self.lease(name)
            return row if row is not None and row["state"] in states else None

        found: dict[str, Any] = wait_for(in_state, within, f"{name} is {states}")
        return found

    def wait_gone(self, name: str, within: float = WITHIN) -> None:
        """Wait until no lease of that name is left."""
        wait_for(lambda: self.lease(name) is None, within, f"{name} is gone")

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events of these kinds, all when none is named."""
        shown = self.berth("events", "--format", "json")
        assert shown.returncode == 0, shown.stderr
        found = [json.loads(line) for line in shown.stdout.splitlines()]
        return [event for event in found if not kinds or event["kind"] in kinds]
