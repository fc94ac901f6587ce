"""Starts real `berth sim engine` processes, and talks to them."""

import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.probes.procfs import read_process

WITHIN = 10.0  # seconds; how long a test waits for anything, on a busy machine
TOTAL = 1000  # MiB of card 0


def until(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN
    while not check():
        assert time.monotonic() < deadline, f"it never came to it that {what}"
        threading.Event().wait(0.01)


def is_alive(pid: int) -> bool:
    facts = read_process(pid)
    return facts is not None and not facts.dead


@dataclass(frozen=True)
class Answer:
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Stream:
    """A streamed answer, read event by event. `done` tells whether it ended in good order."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.response = connection.getresponse()
        self.done = False

    def events(self) -> Iterator[dict[str, Any]]:
        with suppress(http.client.IncompleteRead, ConnectionError):
            while line := self.response.readline():
                text = line.decode().strip().removeprefix("data: ")
                if text == "[DONE]":
                    self.done = True
                elif text:
                    yield json.loads(text)

    def first(self) -> dict[str, Any]:
        return next(self.events())

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class Engine:
    """One running engine, in a process group of its own."""

    def __init__(self, folder: Path, kind: str, *flags: object) -> None:
        self.folder = folder
        self._open: list[Stream | http.client.HTTPConnection] = []
        command = [sys.executable, "-m", "berth", "sim", "engine", "--kind", kind]
        self.process = subprocess.Popen(
            [*command, "--sim", str(folder), *map(str, flags)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self.port = self._read_port() if kind == "llama" else 0

    def _read_port(self) -> int:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], WITHIN)
        line = self.process.stdout.readline() if ready else ""
        found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
        return int(found[1]) if found else 0

    def claims(self) -> dict[int, int]:
        return claims(self.folder)

    def claimed(self) -> int | None:
        """What this very process claims."""
        return self.claims().get(self.pid)

    def wait_claimed(self, mib: int) -> None:
        until(lambda: mib in self.claims().values(), f"{mib} MiB are claimed")

    def wait_loaded(self) -> None:
        until(lambda: self.get("/health").status == 200, "it is loaded")

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN)
        self._open.append(connection)
        return connection

    def call(self, method: str, path: str, body: str | None = None) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def post(self, path: str, **fields: object) -> Answer:
        return self.call("POST", path, json.dumps(fields))

    def complete(self, tokens: int) -> Answer:
        return self.post("/v1/completions", prompt="Say it", max_tokens=tokens)

    def ask(self, path: str, **fields: object) -> http.client.HTTPConnection:
        """Send a request and do not wait for its answer."""
        connection = self.connect()
        connection.request("POST", path, json.dumps(fields))
        return connection

    def stream(self, tokens: int, **fields: object) -> Stream:
        messages = [{"role": "user", "content": "Say it"}]
        wanted = {"messages": messages, "stream": True, "max_tokens": tokens, **fields}
        stream = Stream(self.ask("/v1/chat/completions", **wanted))
        self._open.append(stream)
        return stream

    def busy_slots(self) -> int:
        return sum(slot["is_processing"] for slot in self.get("/slots").json())

    def refuses(self) -> bool:
        connection = self.connect()
        try:
            connection.connect()
        except ConnectionError:  # a reset, where it was just then about to be accepted
            return True
        finally:
            connection.close()
        return False

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self) -> int:
        """Wait for its end, and return its exit status."""
        return self.process.wait(WITHIN)

    def errors(self) -> str:
        """What it wrote to stderr; it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def clear(self) -> None:
        """End it, and close what is open."""
        for opened in self._open:
            opened.close()
        self.process.kill()
        self.process.communicate(timeout=WITHIN)


def claims(folder: Path) -> dict[int, int]:
    """Return who claims what on card 0, the dead included."""
    found = {}
    for path in (folder / "claims" / "0").glob("[0-9]*"):
        with suppress(FileNotFoundError):
            found[int(path.name)] = int(path.read_text())
    return found


def end_keepers(folder: Path) -> None:
    """Kill who still claims here; a keeper has its engine's command line."""
    for pid in claims(folder):
        with suppress(OSError):
            if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
