"""The crew of a soak: engines under `berth run`, and who chats with them."""

import json
import random
import signal
import threading
import time
from pathlib import Path
from typing import Final

import psutil
import zmq

from tests.system.llama import Chat, free_port, wait_until_healthy
from tests.system.node import BERTH, Node

WAIT_S: Final = 60
"""How long a member waits for its card."""

LONGEST_JOB_S: Final = 8
LONGEST_CHAT_S: Final = 3
ENDS_WITHIN: Final = 60.0
"""How long a member that was told to end may take: its last reply, its grace, its leftovers."""


class Listener(threading.Thread):
    """Listens to berthd's events: which engines drain now, so that nobody begins a chat there."""

    def __init__(self, socket: Path) -> None:
        super().__init__(name="listener", daemon=True)
        self._address = f"ipc://{socket.with_name(socket.stem + '.events.sock')}"
        self._ended = threading.Event()
        self.draining: set[str] = set()
        self.heard = 0

    def run(self) -> None:
        """Listen until told to end; a berthd that starts again is listened to again."""
        context = zmq.Context()
        with context.socket(zmq.SUB) as line:
            line.set(zmq.LINGER, 0)
            line.set(zmq.RECONNECT_IVL, 20)
            line.subscribe(b"lease.")
            line.connect(self._address)
            while not self._ended.is_set():
                if line.poll(100):
                    kind, body = line.recv_multipart()
                    self._take(kind.decode(), json.loads(body)["name"])
        context.term()

    def _take(self, kind: str, name: str) -> None:
        self.heard += 1
        if kind == "lease.draining":
            self.draining.add(name)
        elif kind in {"lease.kept", "lease.freed"}:
            self.draining.discard(name)

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self.join(timeout=5.0)


class Member:
    """One `berth run`. `blow`: what the soak did to it, empty when its end is Berth's own doing."""

    def __init__(self, node: Node, name: str, rng: random.Random) -> None:
        self.node = node
        self.name = name
        self.card = rng.randrange(2)
        self.chats = rng.random() < 0.6
        self.blow = ""
        self.told_to_end: float | None = None
        self.begun = time.monotonic()
        self.port = free_port() if self.chats else 0
        self.log = node.folder / f"{name}.log"
        mib = rng.choice([9000, 14000, 20000]) if self.chats else rng.choice([3000, 8000])
        with self.log.open("wb") as log:
            self.process = node.run(
                *("--as", name, "--needs-mib", str(mib), "--gpu", f"gpu{self.card}"),
                *("--wait", f"{WAIT_S}s", "--grace", "5s", "--drain-wait", "60s"),
                *("--priority", rng.choice(["batch", "interactive", "interactive", "foreground"])),
                *self._command(mib, rng),
                stdout=log,
                stderr=log,
            )

    def _command(self, mib: int, rng: random.Random) -> list[str]:
        memory = ["--mib", str(mib), "--card", str(self.card), "--load-s", "0.3"]
        engine = [*BERTH, "sim", "engine", *memory]
        if not self.chats:
            life = f"{rng.uniform(0.5, LONGEST_JOB_S):.1f}"
            return ["--", *engine, "--kind", "plain", "--run-s", life]
        slots = ["--drain-slots", f"http://127.0.0.1:{self.port}"]
        return [*slots, "--", *engine, "--kind", "llama", "--port", str(self.port), "--slots", "2"]

    @property
    def lives(self) -> bool:
        """Tell whether the wrapper runs."""
        return self.process.poll() is None

    def engine(self) -> int | None:
        """Return the pid of its engine once it has claimed memory, None when there is none."""
        claims = self.node.sim / "claims" / str(self.card)
        try:
            children = [child.pid for child in psutil.Process(self.process.pid).children()]
        except psutil.NoSuchProcess:
            return None
        return next((pid for pid in children if (claims / str(pid)).exists()), None)

    def strike(self, number: signal.Signals, *, engine: bool) -> None:
        """Have the soak end the wrapper or its engine."""
        pid = self.engine() if engine else self.process.pid
        if pid is None or not self.lives:
            return
        self.blow = f"{number.name} to the {'engine' if engine else 'wrapper'}"
        try:
            psutil.Process(pid).send_signal(number)
        except psutil.NoSuchProcess:
            return

    def end(self) -> None:
        """Tell it to end, in order."""
        if self.lives:
            self.blow = self.blow or "told to end"
            self.told_to_end = self.told_to_end or time.monotonic()
            self.process.send_signal(signal.SIGTERM)


class Talker(threading.Thread):
    """Chats with one engine until it is gone, a reply after another, never into a drain."""

    def __init__(self, member: Member, listener: Listener, rng: random.Random) -> None:
        super().__init__(name=f"talker {member.name}", daemon=True)
        self.member = member
        self._listener = listener
        self._rng = rng
        self.replies = 0
        self.cut: list[str] = []

    def run(self) -> None:
        """Chat for as long as the wrapper runs."""
        pause = threading.Event()
        while self.member.lives:
            if wait_until_healthy(self.member.port, self.member.process, within=1.0):
                break
        while self.member.lives:
            if self.member.name in self._listener.draining:
                pause.wait(0.05)
                continue
            self._chat()
            pause.wait(self._rng.choice([0.02, 0.3, 1.5]))

    def _chat(self) -> None:
        chat = Chat(self.member.port, tokens=self._rng.randrange(5, LONGEST_CHAT_S * 50))
        blow_before = self.member.blow
        chat.run()
        if chat.chunks == 0:
            return  # it was not taken: nothing was begun that could be cut
        self.replies += 1
        if not chat.whole and not (blow_before or self.member.blow):
            self.cut.append(f"{self.member.name} after {chat.chunks} chunks: {chat.trouble}")
