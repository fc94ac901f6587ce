"""A lease for a script with an event loop: `async with berth.lease(needs_mib=14000) as lease`."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import zmq
import zmq.asyncio
from msgspec.structs import replace

from berth.client.core import decide
from berth.client.holder import Holder
from berth.client.line import MONITORED, SILENT_FOR, SOCKET_OPTIONS, Presence, presence_of
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
from berth.client.said import Talk
from berth.client.state import FOR_EVER, Over, Tenancy, Wish, begin, wake_at
from berth.client.threaded import RELEASE_WITHIN
from berth.errors import Code
from berth.units import Instant, Seconds

log = logging.getLogger("berth.client")


def _now() -> Instant:
    return Instant(time.monotonic())


class AsyncLease(Holder):
    """A script's right to card memory, in an event loop. It is `Lease`, awaited."""

    def __init__(
        self, wish: Wish, path: Path, on_wanted: Callable[["AsyncLease"], None] | None = None
    ) -> None:
        super().__init__(begin(wish, _now()), path)
        self._on_wanted = on_wanted
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._talk = Talk()
        self._socket: zmq.asyncio.Socket | None = None

    # --- what a script does -----------------------------------------------------------------

    async def take(self) -> None:
        """Wait for the card; errors as `Lease.take`."""
        self._task = asyncio.create_task(self._run(), name="berth lease")
        try:
            await self._wait_until(lambda tenancy: tenancy.settled)
            self._settled()
        except BaseException:  # cancelled too: the request must not stay behind
            await self.release()
            raise

    async def give_way(self, wait_s: float | None = None) -> bool:
        """Hand the card over if it is wanted, wait until it comes back; as `Lease.give_way`."""
        if not self._held.order:
            return False
        before = self.id
        self._hear(GiveWay(wait=FOR_EVER if wait_s is None else Seconds(wait_s)))
        await self._wait_until(lambda tenancy: tenancy.settled)
        self._settled()
        return self.id != before

    async def wait_wanted(self) -> None:
        """Wait until berthd wants the card back (or the lease is over)."""
        await self._wait_until(lambda tenancy: tenancy.wanted or not tenancy.settled)
        self._settled()

    def served(self) -> None:
        """Tell berthd that a piece of work is done; as `Lease.served`."""
        self._hear(Served())

    async def release(self) -> None:
        """Give the card back for good, or stop waiting for it."""
        self._hear(GiveBack())
        over = self._wait_until(lambda tenancy: isinstance(tenancy.phase, Over))
        try:
            await asyncio.wait_for(over, RELEASE_WITHIN)
        except TimeoutError:
            return  # the task goes on trying for as long as the loop runs
        if self._task is not None:
            await asyncio.wait([self._task])

    # --- the lease's own task ---------------------------------------------------------------

    def _hear(self, event: TenancyEvent) -> None:
        was_wanted = self._tenancy.wanted
        self._tenancy, effects = decide(self._tenancy, event, _now())
        for effect in effects:
            match effect:
                case Send():
                    self._send(effect)
                case Warn():
                    log.warning(effect.text)
        self._wake_waiting()
        if self._tenancy.wanted and not was_wanted and self._on_wanted is not None:
            asyncio.get_running_loop().call_soon(self._on_wanted, self)

    def _wake_waiting(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    async def _wait_until(self, reached: Callable[[Tenancy], bool]) -> None:
        while not reached(self._tenancy):
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(changed)
            await changed

    def _send(self, send: Send) -> None:
        """Send, if berthd is there. The socket is asked in its plain way: nothing waits."""
        if self._socket is None:
            return
        plain: zmq.Socket[bytes] = zmq.Socket.shadow(self._socket.underlying)
        try:
            plain.send(self._talk.ask(send), zmq.NOBLOCK)
        except zmq.Again:
            return

    async def _run(self) -> None:
        """Speak to berthd until the lease is over; over a line made anew when it falls silent."""
        context = zmq.asyncio.Context()
        try:
            while not isinstance(self._tenancy.phase, Over):
                await self._speak(context)
        except Exception as error:
            log.exception("the line to berthd broke")
            failure = Failure(code=Code.INTERNAL, message=f"the line to berthd broke: {error}")
            self._tenancy = replace(self._tenancy, phase=Over(failure=failure))
            self._wake_waiting()
        finally:
            self._socket = None
            context.destroy(linger=SOCKET_OPTIONS[zmq.LINGER])

    async def _speak(self, context: zmq.asyncio.Context) -> None:
        socket = context.socket(zmq.DEALER)
        for option, value in SOCKET_OPTIONS.items():
            socket.set(option, value)
        monitor = socket.get_monitor_socket(MONITORED)
        socket.connect(f"ipc://{self._path}")
        self._socket = socket
        poller = zmq.asyncio.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(monitor, zmq.POLLIN)
        up, heard = False, _now()
        try:
            while not isinstance(self._tenancy.phase, Over):
                ready = dict(await self._poll(poller))
                if monitor in ready:
                    up = presence_of(await monitor.recv_multipart()) is Presence.THERE
                    self._hear(Connected() if up else Disconnected())
                if socket in ready:
                    event = self._talk.hear(msgspec.json.decode(await socket.recv()))
                    if event is not None:
                        self._hear(event)
                if ready:
                    heard = _now()
                self._hear(Passed())
                if up and _now() - heard > SILENT_FOR:
                    self._hear(Disconnected())
                    return
        finally:
            self._socket = None
            socket.disable_monitor()
            monitor.close(linger=0)
            socket.close()

    async def _poll(self, poller: zmq.asyncio.Poller) -> list[tuple[object, int]]:
        wait = max(0.0, wake_at(self._tenancy, _now()) - _now())
        found: list[tuple[object, int]] = await poller.poll(int(wait * 1000) + 1)
        return found
