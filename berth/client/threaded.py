"""A lease for a script: `with berth.lease(needs_mib=14000) as lease`.

A thread of its own speaks to berthd, so that orders are heard while the script works. It takes no
signals, and it is not there in a forked child: the child uses its parent's lease, and cannot give
it away.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import zmq
from msgspec.structs import replace

from berth.client.core import decide
from berth.client.holder import Holder
from berth.client.line import Line, Presence
from berth.client.messages import (
    Connected,
    Disconnected,
    Failure,
    GiveBack,
    GiveWay,
    Passed,
    Send,
    Served,
    TenancyEvent,
    Warn,
)
from berth.client.refusals import LeaseRefused
from berth.client.said import Talk
from berth.client.state import FOR_EVER, Over, Tenancy, Wish, begin, wake_at
from berth.errors import Code
from berth.units import Instant, Seconds

log = logging.getLogger("berth.client")

RELEASE_WITHIN: Final = 5.0
"""How long a script waits for its release to be heard; the thread goes on trying after that."""


def _now() -> Instant:
    return Instant(time.monotonic())


class Lease(Holder):
    """A script's right to card memory; the process that asked is its holder.

    What this process and its children hold on the card counts to the lease. It ends with
    `release()`, with its `with` block, or with the process.
    """

    def __init__(
        self, wish: Wish, path: Path, on_wanted: Callable[["Lease"], None] | None = None
    ) -> None:
        super().__init__(begin(wish, _now()), path)
        self._on_wanted = on_wanted
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._unsent: list[Send] = []
        self._wake: int | None = None
        self._thread = threading.Thread(target=self._run, name="berth lease", daemon=True)

    # --- what a script does -----------------------------------------------------------------

    def take(self) -> None:
        """Wait for the card.

        Raises:
            LeaseRefused: berthd refused it; `WaitExpired` when the wait ran out.
            NoBerth: no berthd answers.
        """
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._thread.start()
            self._wait_until(lambda tenancy: tenancy.settled)
            self._settled()
        except BaseException:  # a Ctrl-C too: the request must not stay behind
            self.release()
            raise

    def give_way(self, wait_s: float | None = None) -> bool:
        """Hand the card over if it is wanted, wait until it comes back, and return True.

        Call it at a boundary, with the card's memory given back. It waits as long as it takes, or
        `wait_s` seconds. When the card is not wanted (any more) it returns False at once, and the
        script goes on.

        Raises:
            LeaseStopped: a person stopped the lease; it does not come back.
            WaitExpired: the card did not come back within `wait_s`.
        """
        self._check_process()
        if not self._held.order:
            return False
        before = self.id
        self._hear(GiveWay(wait=FOR_EVER if wait_s is None else Seconds(wait_s)))
        self._wait_until(lambda tenancy: tenancy.settled)
        self._settled()
        return self.id != before

    def wait_wanted(self, timeout_s: float | None = None) -> bool:
        """Wait until berthd wants the card back; return False when it did not in time."""
        self._wait_until(lambda tenancy: tenancy.wanted or not tenancy.settled, timeout_s)
        return self.wanted

    def served(self) -> None:
        """Tell berthd that a piece of work is done.

        Before the first, nobody of the same priority takes the card away for 3 seconds.
        """
        self._check_process()
        self._hear(Served())

    def release(self) -> None:
        """Give the card back for good, or stop waiting for it. In a forked child it does nothing.

        The memory has to be given back too: until the card shows it free nobody else is granted.
        """
        if os.getpid() != self._pid:
            return
        self._hear(GiveBack())
        self._wait_until(lambda tenancy: isinstance(tenancy.phase, Over), RELEASE_WITHIN)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            message = "this lease is held by the process that forked this one"
            raise LeaseRefused(Code.NOT_YOURS, message, "give way there, or lease anew here")

    # --- between the script's thread and the lease's own ------------------------------------

    def _hear(self, event: TenancyEvent) -> None:
        with self._changed:
            was_wanted = self._tenancy.wanted
            self._tenancy, effects = decide(self._tenancy, event, _now())
            self._unsent += [effect for effect in effects if isinstance(effect, Send)]
            self._changed.notify_all()
            if self._wake is not None and threading.current_thread() is not self._thread:
                os.eventfd_write(self._wake, 1)
        for effect in effects:
            if isinstance(effect, Warn):
                log.warning(effect.text)
        if self._tenancy.wanted and not was_wanted:
            self._tell_wanted()

    def _tell_wanted(self) -> None:
        if self._on_wanted is None:
            return
        try:
            self._on_wanted(self)
        except Exception:
            log.exception("on_wanted failed; the lease goes on")

    def _wait_until(
        self, reached: Callable[[Tenancy], bool], timeout_s: float | None = None
    ) -> None:
        with self._changed:
            self._changed.wait_for(lambda: reached(self._tenancy), timeout_s)

    # --- the lease's own thread -------------------------------------------------------------

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        line = Line(self._path)
        wake = self._wake or 0
        try:
            self._serve(line, wake)
        except Exception as error:
            log.exception("the line to berthd broke")
            failure = Failure(code=Code.INTERNAL, message=f"the line to berthd broke: {error}")
            with self._changed:
                self._tenancy = replace(self._tenancy, phase=Over(failure=failure))
                self._changed.notify_all()
        finally:
            with self._changed:
                self._wake = None
            os.close(wake)
            line.close()

    def _serve(self, line: Line, wake: int) -> None:
        talk = Talk()
        poller = zmq.Poller()
        poller.register(wake, zmq.POLLIN)
        line.register(poller)
        while not isinstance(self._tenancy.phase, Over):
            wait = max(0.0, wake_at(self._tenancy, _now()) - _now())
            poller.poll(int(wait * 1000) + 1)
            with suppress(BlockingIOError):
                os.eventfd_read(wake)
            self._take_news(line, poller, talk)
            self._hear(Passed())
            self._send_all(line, talk)
        self._send_all(line, talk)

    def _take_news(self, line: Line, poller: zmq.Poller, talk: Talk) -> None:
        for news in line.news(poller):
            match news:
                case Presence.THERE:
                    self._hear(Connected())
                case Presence.GONE:
                    self._hear(Disconnected())
                case _:
                    event = talk.hear(news)
                    if event is not None:
                        self._hear(event)

    def _send_all(self, line: Line, talk: Talk) -> None:
        with self._changed:
            unsent, self._unsent = self._unsent, []
        for send in unsent:
            line.send(talk.ask(send))
