"""`berth.status()` and `berth.events()`: what is on the node, and what happens there."""

import os
from collections.abc import Collection, Generator
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq

from berth.client.call import Client
from berth.client.refusals import NoBerth
from berth.errors import BerthError, Code, Exit
from berth.paths import events_path, socket_path
from berth.views import Status
from berth.wire import EventMessage

_FILL_EVERY_MS: Final = 2000
_COMMON: Final = frozenset(EventMessage.__struct_fields__) - {"facts"}

Event = EventMessage
"""One event: `seq`, `at`, `kind`, `card`, `lease`, `request`, `name`, `why`, its own `facts`."""


def _where(socket: str | Path | None) -> Path:
    return socket_path(None if socket is None else str(socket), os.environ)


def status(*, socket: str | Path | None = None) -> Status:
    """Return what is on the node: cards, leases, who waits and why, stowaways.

    Raises:
        NoBerth: no berthd answers.
    """
    with Client(_where(socket)) as client:
        shown = client.call("status")
    try:
        return msgspec.convert(shown, Status)
    except msgspec.ValidationError as error:
        message = f"berthd's status is not as this berth knows it: {error}"
        hint = "update the older of the two"
        raise BerthError(Code.INTERNAL, message, hint=hint, exit_status=Exit.UNAVAILABLE) from error


def events(
    *,
    since: int | None = None,
    kinds: Collection[str] = (),
    follow: bool = True,
    socket: str | Path | None = None,
) -> Generator[Event, None, None]:
    """Return what happens, as it happens, without a gap, over restarts of berthd too.

    Args:
        since: begin after that `seq` (0: all that is kept); None: from now on, and with
            `follow=False` what is kept.
        kinds: only these (`lease.granted`), or all of a family (`lease.`); empty: all.
        follow: False: end with what has happened already.
        socket: berthd's socket; None: where berthd listens by default.

    Raises:
        NoBerth: no berthd answers at the start.
    """
    path = _where(socket)
    wanted = tuple(kinds)
    begin = since if since is not None else _latest(path) if follow else 0
    found = _follow(path, begin) if follow else _kept_after(path, begin)
    return (event for event in found if not wanted or event.kind.startswith(wanted))


def _latest(path: Path) -> int:
    with Client(path) as client:
        newest = client.call("events", {"limit": 1})["events"]
    return newest[-1]["seq"] if newest else 0


def _kept_after(path: Path, seq: int) -> Generator[Event, None, None]:
    """Return what is kept after a number, page by page."""
    while True:
        with Client(path) as client:
            page = client.call("events", {"since": seq})["events"]
        if not page:
            return
        for told in page:
            seq = told["seq"]
            yield _event(told)


def _follow(path: Path, seq: int) -> Generator[Event, None, None]:
    """Return what happens after a number. What the PUB socket has not brought is asked for."""
    context = zmq.Context()
    listener = context.socket(zmq.SUB)
    listener.set(zmq.SUBSCRIBE, b"")
    listener.connect(f"ipc://{events_path(path)}")
    try:
        for event in _kept_after(path, seq):
            seq = event.seq
            yield event
        while True:
            heard = _event_on(listener)
            if heard is not None and heard.seq == seq + 1:
                seq = heard.seq
                yield heard
            elif heard is None or heard.seq > seq:
                for event in _filled(path, seq):
                    seq = event.seq
                    yield event
    finally:
        listener.close(linger=0)
        context.term()


def _event_on(listener: "zmq.Socket[bytes]") -> Event | None:
    """Return the next event that is published, None when a while brings none."""
    if not listener.poll(_FILL_EVERY_MS):
        return None
    _, body = listener.recv_multipart()
    return _event(msgspec.json.decode(body))


def _filled(path: Path, seq: int) -> Generator[Event, None, None]:
    """Return what was missed. While berthd is away that is nothing, and it is asked again."""
    try:
        yield from _kept_after(path, seq)
    except NoBerth:
        return


def _event(told: dict[str, Any]) -> Event:
    facts = {field: value for field, value in told.items() if field not in _COMMON}
    return msgspec.convert({**told, "facts": facts}, Event)
