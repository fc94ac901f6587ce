"""Two chat engines take one card from each other while replies stream."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from berth.client import Client
from berth.demo.chat import Chat, is_healthy
from berth.errors import BerthError, Code, Exit

CARD = '[[card]]\ntotal_mib = 24576\nname = "RTX 4090 (simulated)"\nbaseline_mib = 421\n'
MIB = 14000
WITHIN = 20.0


class Scene:
    """A node of its own on one simulated card, and the engines started on it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="berth-demo-"))
        (self._folder / "cards.toml").write_text(CARD)
        self.socket = self._folder / "berth.sock"
        own = {
            "BERTH_SOCKET": str(self.socket),
            "BERTH_STATE_DIR": str(self._folder / "state"),
            "BERTH_SIM_DIR": str(self._folder),
            "BERTH_CONFIG": str(self._folder / "berth.toml"),
        }
        self._environment = {**os.environ, **own}
        self._processes: list[subprocess.Popen[bytes]] = []

    def berth(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a berth command on this node."""
        process = subprocess.Popen(  # noqa: S603 -- our own program
            [sys.executable, "-m", "berth", *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """Ask berthd something."""
        with Client(self.socket) as client:
            return client.call(op, fields)

    def close(self) -> None:
        """End everything: the engines first, so that each gives its lease back."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def wait_until(what: Callable[[], bool], why: str) -> None:
    """Wait until something is so.

    Raises:
        BerthError: it is not in time.
    """
    pause = threading.Event()
    give_up = time.monotonic() + WITHIN
    while not what():
        if time.monotonic() >= give_up:
            message = f"the demo stands still: {why} has not come in {WITHIN:.0f}s"
            raise BerthError(Code.INTERNAL, message, exit_status=Exit.UNAVAILABLE)
        pause.wait(0.05)


def play(say: Callable[[str], None], hand_overs: int) -> dict[str, Any]:
    """Play the scene. Return the truth about it, counted from events and replies."""
    scene = Scene()
    chats: list[Chat] = []
    begun = time.monotonic()
    try:
        scene.berth("daemon")
        wait_until(lambda: _reads_its_card(scene), "berthd's first reading")
        say("a node of its own, with one simulated card of 24 GiB; each engine wants 13.7 GiB")
        port = _start_engine(scene, "chat-0")
        for number in range(1, hand_overs + 1):
            talking = [Chat(port, tokens=60 + 20 * person) for person in range(2)]
            for chat in talking:
                chat.start()
                chat.begun.wait(WITHIN)
            chats += talking
            say(f"chat-{number} wants the card; chat-{number - 1} is streaming 2 replies")
            port = _start_engine(scene, f"chat-{number}")
            whole = sum(chat.whole for chat in talking)
            say(
                f"chat-{number} has it; both replies came whole" if whole == len(talking) else "CUT"
            )
        return _summary(scene, chats, time.monotonic() - begun)
    finally:
        scene.close()


def _reads_its_card(scene: Scene) -> bool:
    try:
        cards = scene.ask("status")["cards"]
    except BerthError:
        return False
    return all(card["state"] == "ok" for card in cards)


def _start_engine(scene: Scene, name: str) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    scene.berth(
        *("run", "--as", name, "--needs-mib", str(MIB)),
        *("--drain-slots", f"http://127.0.0.1:{port}", "--"),
        *(sys.executable, "-m", "berth", "sim", "engine", "--kind", "llama", "--slots", "2"),
        *("--mib", str(MIB), "--port", str(port), "--load-s", "0.3"),
    )
    wait_until(lambda: is_healthy(port), f"{name}'s turn")
    return port


def _summary(scene: Scene, chats: list[Chat], seconds: float) -> dict[str, Any]:
    events = scene.ask("events", last_s=3600.0, limit=10000)["events"]
    kinds = [event["kind"] for event in events]
    return {
        "seconds": round(seconds, 1),
        "handoffs": kinds.count("lease.freed"),
        "collisions": kinds.count("lease.contested"),
        "requests": len(chats),
        "requests_cut": sum(not chat.whole for chat in chats),
        "granted": kinds.count("lease.granted"),
        "refused": kinds.count("lease.refused"),
    }
