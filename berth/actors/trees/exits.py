"""Waits for the end of processes, on pidfds, in a thread of its own."""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from berth.ids import LeaseId, ProcessId
from berth.probes.procfs import is_alive


class ExitWatch:
    """Calls back, once for each watch, when a process has ended. Calls come from its own thread."""

    def __init__(self, on_exit: Callable[[LeaseId, ProcessId], None]) -> None:
        self._on_exit = on_exit
        self._wanted: SimpleQueue[tuple[LeaseId, ProcessId | None] | None] = SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="exits", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._wanted.put(None)
        os.eventfd_write(self._wake, 1)

    def watch(self, lease: LeaseId, process: ProcessId) -> None:
        """Watch a process in the place of the one watched for that lease."""
        self._wanted.put((lease, process))
        os.eventfd_write(self._wake, 1)

    def forget(self, lease: LeaseId) -> None:
        """Stop watching for that lease."""
        self._wanted.put((lease, None))
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        watched: dict[int, tuple[LeaseId, ProcessId]] = {}
        while self._take_wishes(poller, watched):
            for ready, _ in poller.poll():
                if ready == self._wake:
                    os.eventfd_read(self._wake)
                elif ready in watched:
                    lease, process = watched.pop(ready)
                    poller.unregister(ready)
                    os.close(ready)
                    self._on_exit(lease, process)
        for pidfd in watched:
            os.close(pidfd)
        os.close(self._wake)

    def _take_wishes(
        self, poller: select.poll, watched: dict[int, tuple[LeaseId, ProcessId]]
    ) -> bool:
        """Do what was asked for since. Return False when asked to end."""
        while not self._wanted.empty():
            wish = self._wanted.get()
            if wish is None:
                return False
            lease, process = wish
            for pidfd in [fd for fd, (other, _) in watched.items() if other == lease]:
                poller.unregister(pidfd)
                os.close(pidfd)
                del watched[pidfd]
            if process is not None:
                self._add(poller, watched, lease, process)
        return True

    def _add(
        self,
        poller: select.poll,
        watched: dict[int, tuple[LeaseId, ProcessId]],
        lease: LeaseId,
        process: ProcessId,
    ) -> None:
        pidfd = None
        with suppress(OSError):
            pidfd = os.pidfd_open(process.pid)
        if pidfd is not None and is_alive(process):
            poller.register(pidfd, select.POLLIN)
            watched[pidfd] = (lease, process)
            return
        if pidfd is not None:
            os.close(pidfd)
        self._on_exit(lease, process)
