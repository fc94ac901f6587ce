"""`berth status --watch`: the board on a screen of its own, until it is left.

Woken by events, keys and the window's size; berthd is asked at most once a second, and every 2 s
when nothing happens. The screen and the cursor come back however it ends.
"""

import os
import signal
import sys
import termios
import time
import tty
from contextlib import suppress
from datetime import datetime
from types import FrameType
from typing import Any, Final, Self

import msgspec
import zmq
from msgspec.structs import replace

from berth.cli.context import where
from berth.cli.render.lines import painted
from berth.cli.render.watching import Watching, on_key, screen, with_event, with_status
from berth.cli.seeing import look_of
from berth.client import berthd_listens, nobody_there
from berth.errors import Exit
from berth.paths import check_socket_dir, events_path
from berth.wire import MAX_ANSWER, PROTOCOL

ASK_EVERY: Final = 2.0
ASK_APART: Final = 1.0
"""However much happens, berthd is not asked more often."""
DRAW_APART: Final = 0.2
GONE_AFTER: Final = 3.0
_TRY_AGAIN: Final = 0.1
"""How soon a line that is not up yet is tried again."""

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_PAST: Final = "past"
"""The id of the one question for events of before."""

_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HEARD: Final = (signal.SIGWINCH, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


def watch_board(socket: str | None, colour: str, name: str | None) -> int:
    """Show the board until it is left. Return the status to exit with.

    Raises:
        BerthError: no berthd answers at the start.
    """
    path = where(socket)
    check_socket_dir(path)
    if not berthd_listens(path):
        raise nobody_there(path)
    with _Line(path) as line, _Screen() as shown:
        return _Watch(line, shown, colour, name).loop()


class _Line:
    """The two sockets: what is asked, and what happens."""

    def __init__(self, path: os.PathLike[str]) -> None:
        self._context = zmq.Context()
        self.asking = self._context.socket(zmq.DEALER)
        self.asking.set(zmq.MAXMSGSIZE, MAX_ANSWER)
        self.asking.set(zmq.IMMEDIATE, 1)
        self.happening = self._context.socket(zmq.SUB)
        self.happening.set(zmq.SUBSCRIBE, b"")
        for one in (self.asking, self.happening):
            one.set(zmq.LINGER, 0)
            one.set(zmq.RECONNECT_IVL, 200)
        self.asking.connect(f"ipc://{os.fspath(path)}")
        self.happening.connect(f"ipc://{events_path(path)}")  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.asking.close()
        self.happening.close()
        self._context.term()


class _Screen:
    """The terminal, taken over. `signals` can be waited on for signals that came."""

    def __init__(self) -> None:
        self._before = termios.tcgetattr(sys.stdin)
        self.signals, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in _HEARD:
            signal.signal(number, _noted)
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def take(self) -> None:
        """Take the screen: another one than the shell's, without a cursor, each key by itself."""
        tty.setcbreak(sys.stdin)
        self.write(_ENTER)

    def give_back(self) -> None:
        """Give the shell its screen back as it was."""
        self.write(_LEAVE)
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def write(self, text: str) -> None:
        """Write at once; a terminal that is gone is no error any more."""
        with suppress(OSError):
            sys.stdout.write(text)
            sys.stdout.flush()


def _noted(number: int, frame: FrameType | None) -> None:
    """Do nothing: the signal's number is in the wake-up pipe already."""
    del number, frame


class _Watch:
    """The loop: waits on everything at once, feeds the machine, draws what it shows."""

    def __init__(self, line: _Line, shown: _Screen, colour: str, name: str | None) -> None:
        self._line = line
        self._screen = shown
        self._colour = colour
        self._watching = Watching(name=name)
        self._number = 0
        self._asked = -ASK_EVERY
        self._heard = time.monotonic()
        self._news = True
        self._drawn = ("", 0.0)
        self._undrawn = False
        self._status = int(Exit.OK)

    def loop(self) -> int:
        """Go on until it is left."""
        poller = zmq.Poller()
        for source in (self._line.asking, self._line.happening, self._screen.signals, 0):
            poller.register(source, zmq.POLLIN)
        while not self._watching.left:
            ready = dict(poller.poll(int(self._wait() * 1000) + 1))
            if self._screen.signals in ready:
                self._on_signals()
            if 0 in ready:
                self._on_keys()
            self._on_answers()
            self._on_events()
            self._ask_if_due()
            self._draw()
        return self._status

    def _wait(self) -> float:
        now = time.monotonic()
        due = self._asked + (ASK_APART if self._news else ASK_EVERY)
        return max(0.0, min(due - now, DRAW_APART if self._undrawn else ASK_EVERY))

    def _ask_if_due(self) -> None:
        now = time.monotonic()
        if now - self._heard > GONE_AFTER and not self._watching.gone:
            since = datetime.now().astimezone().strftime("%H:%M:%S")
            self._watching = replace(self._watching, gone=since)
        if now < self._asked + (ASK_APART if self._news else ASK_EVERY):
            return
        if not self._send({"id": str(self._number), "op": "status"}):
            self._asked = now - ASK_EVERY + _TRY_AGAIN
            return
        if self._number == 0:
            self._send({"id": _PAST, "op": "events", "last_s": 86400.0, "limit": 50})
        self._number += 1
        self._asked, self._news = now, False

    def _send(self, fields: dict[str, Any]) -> bool:
        """Ask berthd, if the line is up."""
        body = msgspec.json.encode({"v": PROTOCOL, **fields})
        try:
            self._line.asking.send(body, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def _on_answers(self) -> None:
        for body in _waiting(self._line.asking):
            answer = msgspec.json.decode(body[0])
            data = answer.get("data") if answer.get("ok") else None
            if not data:
                continue
            self._heard = time.monotonic()
            if answer.get("id") == _PAST:
                for event in data["events"]:
                    self._watching = with_event(self._watching, event)
            else:
                self._watching = with_status(self._watching, data)

    def _on_events(self) -> None:
        for body in _waiting(self._line.happening):
            self._news = True
            self._watching = with_event(self._watching, msgspec.json.decode(body[1]))

    def _on_keys(self) -> None:
        keys = os.read(0, 64).decode(errors="replace")
        if not keys:  # the terminal is gone
            self._watching = replace(self._watching, left=True)
        for key in keys:
            self._watching = on_key(self._watching, key)
        self._drawn = (self._drawn[0], 0.0)

    def _on_signals(self) -> None:
        for number in os.read(self._screen.signals, 64):
            if number == signal.SIGTSTP:
                self._screen.give_back()
                os.kill(os.getpid(), signal.SIGSTOP)
                self._screen.take()
            elif number in {signal.SIGTERM, signal.SIGHUP}:
                self._watching = replace(self._watching, left=True)
                self._status = 128 + number
            elif number == signal.SIGINT:
                self._watching = replace(self._watching, left=True)
        self._drawn = ("", 0.0)

    def _draw(self) -> None:
        """Draw, if it looks different; never more than five times a second."""
        now = time.monotonic()
        text, at = self._drawn
        self._undrawn = now - at < DRAW_APART
        if self._undrawn:
            return
        look = look_of(sys.stdout, os.environ, self._colour)
        look = replace(look, height=_height())
        frame = painted(screen(self._watching, look), look)
        if frame != text:
            rows = frame.removesuffix("\n").split("\n")
            self._screen.write("\x1b[H" + "\x1b[K\n".join(rows) + "\x1b[K\x1b[J")
            self._drawn = (frame, now)


def _height() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except (OSError, ValueError):
        return 24


def _waiting(socket: "zmq.Socket[bytes]") -> list[list[Any]]:
    """Return the messages that have come."""
    found: list[list[Any]] = []
    while True:
        try:
            found.append(socket.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            return found
