"""Makes calls to an engine in a thread, so that the wrapper never waits for one."""

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

from berth.run.messages import BoundaryRead, UnloadAnswered

Outcome: TypeAlias = BoundaryRead | UnloadAnswered


class Caller:
    """The calls of one run, one after the other. `fd` can be waited on for what has come back."""

    def __init__(self, slots_url: str | None, unload_url: str | None, key: str | None) -> None:
        self._slots_url = slots_url
        self._unload_url = unload_url
        self._key = key
        self._read: Callable[[], Outcome] | None = None
        self._wanted: SimpleQueue[Callable[[], Outcome]] = SimpleQueue()
        self._done: SimpleQueue[Outcome] = SimpleQueue()
        self._started = False
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def read(self) -> None:
        """Read the boundary; the outcome is taken by `outcomes`."""
        from berth.run.boundary import Slots  # noqa: PLC0415 -- http.client costs 13 ms

        if self._read is None and self._slots_url is not None:
            self._read = Slots(self._slots_url, self._key).read
        if self._read is not None:
            self._call(self._read)

    def unload(self) -> None:
        """Call the unload URL; the outcome is taken by `outcomes`."""
        from berth.run.boundary import post_unload  # noqa: PLC0415 -- the same

        url = self._unload_url
        if url is not None:
            self._call(lambda: post_unload(url, self._key))

    def _call(self, wanted: Callable[[], Outcome]) -> None:
        if not self._started:
            self._started = True
            threading.Thread(target=self._run, name="engine calls", daemon=True).start()
        self._wanted.put(wanted)

    def _run(self) -> None:
        while True:
            outcome = self._wanted.get()()
            self._done.put(outcome)
            os.eventfd_write(self.fd, 1)

    def outcomes(self) -> list[Outcome]:
        """Return what has come back since."""
        os.eventfd_read(self.fd)
        found = []
        while not self._done.empty():
            found.append(self._done.get())
        return found
