"""The slots of a simulated engine: who is at work in them, who waits, and what interrupts them."""

import itertools
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

_LOOK_AGAIN: Final = 0.01  # seconds; a real server's gap between two requests is of that size
_WORDS: Final = ("A", " berth", " is", " a", " place", " for", " one", " ship", ".", " And")


class ClientGone(Exception):  # noqa: N818 -- nothing went wrong: nobody listens any more
    """Who made the call hung up."""


class Stopped(Exception):  # noqa: N818 -- the same: it was asked for
    """The engine was told to stop."""


@dataclass(slots=True)
class Slot:
    """One slot. It keeps its last task's figures when it is idle again, as llama-server's does."""

    index: int
    task: int | None = None
    processing: bool = False
    prompt_tokens: int = 0
    wanted_tokens: int = 0
    decoded_tokens: int = 0


class Work:
    """The slots and the queue before them. Called by the threads that answer calls."""

    def __init__(self, slots: int, token_s: float) -> None:
        self.slots = tuple(Slot(index) for index in range(slots))
        self.prompt_tokens = 0
        self.decoded_tokens = 0
        self._token_s = token_s
        self._in_flight = 0
        self._waiting: deque[int] = deque()
        self._tasks = itertools.count()
        self._lock = threading.Lock()
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)

    @property
    def processing(self) -> int:
        """How many slots are busy."""
        return sum(slot.processing for slot in self.slots)

    @property
    def deferred(self) -> int:
        """How many requests wait for a slot."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """How many requests are not answered to the end: at work, waiting, or about to be cut."""
        return self._in_flight

    def stop(self) -> None:
        """Generate nothing more: every wait of this engine ends."""
        os.eventfd_write(self._stop, 1)

    @contextmanager
    def flight(self) -> Iterator[None]:
        """Count a request as in flight."""
        with self._lock:
            self._in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1

    @contextmanager
    def slot(self, client: socket.socket, prompt_tokens: int, wanted: int) -> Iterator[Slot]:
        """Wait for a slot, first come first served, and have it.

        Raises:
            ClientGone: the client hung up while it waited.
            Stopped: the engine was told to stop meanwhile.
        """
        slot = self._wait_for_slot(client)
        slot.prompt_tokens, slot.wanted_tokens, slot.decoded_tokens = prompt_tokens, wanted, 0
        with self._lock:
            self.prompt_tokens += prompt_tokens
        try:
            yield slot
        finally:
            slot.processing = False

    def _wait_for_slot(self, client: socket.socket) -> Slot:
        with self._lock:
            task = next(self._tasks)
            self._waiting.append(task)
        try:
            while (slot := self._take(task)) is None:
                self.pause(client, _LOOK_AGAIN)
        except (ClientGone, Stopped):
            with self._lock:
                self._waiting.remove(task)
            raise
        return slot

    def _take(self, task: int) -> Slot | None:
        with self._lock:
            free = next((slot for slot in self.slots if not slot.processing), None)
            if free is None or self._waiting[0] != task:
                return None
            self._waiting.popleft()
            free.task, free.processing = task, True
            return free

    def tokens(self, client: socket.socket, slot: Slot) -> Iterator[str]:
        """Generate what the slot's task wants, at the engine's pace.

        Raises:
            ClientGone: the client hung up.
            Stopped: the engine was told to stop.
        """
        begun = time.monotonic()
        for number in range(slot.wanted_tokens):
            due = begun + (number + 1) * self._token_s
            self.pause(client, max(0.0, due - time.monotonic()))
            slot.decoded_tokens += 1
            with self._lock:
                self.decoded_tokens += 1
            yield _WORDS[number % len(_WORDS)]

    def pause(self, client: socket.socket, seconds: float | None) -> None:
        """Let that time pass; for ever with None.

        Raises:
            ClientGone: the client hung up.
            Stopped: the engine was told to stop.
        """
        waits = select.poll()
        waits.register(self._stop, select.POLLIN)
        waits.register(client, select.POLLRDHUP)
        woken = {fd for fd, _ in waits.poll(_milliseconds(seconds))}
        if client.fileno() in woken:
            raise ClientGone
        if woken:
            raise Stopped


def wait_until_gone(client: socket.socket, seconds: float | None) -> None:
    """Wait until a client hangs up, at most that long; for ever with None."""
    waits = select.poll()
    waits.register(client, select.POLLRDHUP)
    waits.poll(_milliseconds(seconds))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
