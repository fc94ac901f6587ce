"""An engine that is started when somebody wants it, as a proxy before it would.

Its people are let in while it is up, and held back while it is asked to finish: that is what lets
its boundary come.
"""

import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Final

from berth.demo.chat import is_healthy
from berth.demo.crew import Role, bare_command, leased_command
from berth.demo.stage import Stage, StageClosedError

_LOOK_AGAIN: Final = 0.05  # seconds
_TRY_AGAIN: Final = 0.5  # seconds after a start that failed


class ChatEngine(threading.Thread):
    """Keeps one engine: starts it when it is wanted, and knows whether it may be talked to."""

    def __init__(
        self, stage: Stage, role: Role, over: threading.Event, on_failed: Callable[[Role], None]
    ) -> None:
        super().__init__(name=f"keeper of {role.name}", daemon=True)
        self.role = role
        self._stage = stage
        self._over = over
        self._on_failed = on_failed
        self._changed = threading.Condition()
        self._wanted = 0
        self._port: int | None = None
        self._asked_to_finish = False
        self._failures = 0

    # --- its people ---------------------------------------------------------------------------

    def enter(self) -> int | None:
        """Wait until it may be talked to, and return its port; None: its start failed."""
        with self._changed:
            before = self._failures
            self._wanted += 1
            self._changed.notify_all()
            try:
                self._changed.wait_for(
                    lambda: self._open or self._failures > before or self._over.is_set()
                )
            finally:
                self._wanted -= 1
            return self._port if self._open and not self._over.is_set() else None

    @property
    def _open(self) -> bool:
        return self._port is not None and not self._asked_to_finish

    def wake(self) -> None:
        """Let everybody see that the play is over."""
        with self._changed:
            self._changed.notify_all()

    # --- what berthd tells --------------------------------------------------------------------

    def hear(self, kind: str) -> None:
        """Hear of an event of this engine's lease."""
        with self._changed:
            if kind == "lease.draining":
                self._asked_to_finish = True
            elif kind in {"lease.kept", "lease.granted"}:
                self._asked_to_finish = False
            self._changed.notify_all()

    # --- its keeper ---------------------------------------------------------------------------

    def run(self) -> None:
        """Keep the engine until the play is over."""
        while not self._over.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._wanted > 0 or self._over.is_set())
            if self._over.is_set():
                return
            port = _free_port()
            command = (leased_command if self._stage.with_berth else bare_command)(self.role, port)
            try:
                process = self._stage.start(self.role.name, command)
            except StageClosedError:
                return
            self._live(process, port)

    def _live(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        """Watch one life of it. Who waits for one that died while it loaded has waited in vain."""
        came_up = False
        while process.poll() is None and not self._over.wait(_LOOK_AGAIN):
            if not came_up and is_healthy(port):
                came_up = True
                with self._changed:
                    self._port = port
                    self._changed.notify_all()
        if self._over.is_set():
            return
        died = self._stage.ran_out_of_memory(self.role.name)
        with self._changed:
            self._port = None
            self._failures += died
            self._changed.notify_all()
        if died:
            self._on_failed(self.role)
        if not came_up:
            self._over.wait(_TRY_AGAIN)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
