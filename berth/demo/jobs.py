"""Keepers of what has no port: the training job, and the image engine with its jobs."""

import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from berth.demo.chat import Outcome
from berth.demo.crew import IMAGES, Role, bare_command, image_command, leased_command
from berth.demo.people import Report
from berth.demo.stage import Stage, StageClosedError

_LOOK_AGAIN: Final = 0.05  # seconds
_TRY_AGAIN: Final = 0.5  # seconds from its end to its next start


class Job(threading.Thread):
    """Keeps a job at work: what was stopped goes on from its checkpoint."""

    def __init__(
        self, stage: Stage, role: Role, over: threading.Event, on_failed: Callable[[Role], None]
    ) -> None:
        super().__init__(name=f"keeper of {role.name}", daemon=True)
        self.role = role
        self._stage = stage
        self._over = over
        self._on_failed = on_failed

    def run(self) -> None:
        """Run it again and again until the play is over."""
        while not self._over.is_set():
            command = (leased_command if self._stage.with_berth else bare_command)(self.role)
            try:
                process = self._stage.start(self.role.name, command)
            except StageClosedError:
                return
            while process.poll() is None and not self._over.wait(_LOOK_AGAIN):
                pass
            if not self._over.is_set() and self._stage.ran_out_of_memory(self.role.name):
                self._on_failed(self.role)
            self._over.wait(_TRY_AGAIN)


class ImageEngine:
    """Keeps the image engine: gives it jobs, and counts what becomes of each."""

    def __init__(
        self,
        stage: Stage,
        over: threading.Event,
        report: Report,
        on_failed: Callable[[Role], None],
    ) -> None:
        self.replying = False
        """Whether a job is in flight."""
        self._stage = stage
        self._over = over
        self._report = report
        self._on_failed = on_failed
        self._process: subprocess.Popen[bytes] | None = None

    def give(self, jobs: Sequence[float]) -> None:
        """Give it jobs, each so many seconds long; it is started when it does not run."""
        if self._process is None or self._process.poll() is not None:
            try:
                command = image_command(leased=self._stage.with_berth)
                self._process = self._stage.start(IMAGES.name, command, talks=True)
            except StageClosedError:
                return
            threading.Thread(
                target=self._read, args=(self._process,), name="reads images", daemon=True
            ).start()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write("".join(f"{job}\n" for job in jobs).encode())
                self._process.stdin.flush()

    def finish(self) -> None:
        """Let it begin no further job."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        """Hear what becomes of its jobs, to its end: one that it had begun is cut then."""
        for line in process.stdout or ():
            match line.strip():
                case b"begun":
                    self.replying = True
                case b"whole":
                    self.replying = False
                    self._report(IMAGES.name, Outcome.WHOLE)
                case b"failed":
                    self._report(IMAGES.name, Outcome.FAILED)
                    self._on_failed(IMAGES)
                case _:
                    pass
        if self.replying:
            self.replying = False
            self._report(IMAGES.name, Outcome.CUT)
