"""One read of an engine's boundary, one call of its unload URL.

A read that times out is busy: llama-server answers /slots between two batches of a long prompt.
Refused, an error status, or no JSON is unreadable.
"""

import http.client
from typing import Final
from urllib.parse import SplitResult, urlsplit

from berth.engines.llama import parse_deferred, parse_sleeping, parse_slots
from berth.run.messages import BoundaryRead, Seen, UnloadAnswered

READ_WITHIN: Final = 5.0
UNLOAD_WITHIN: Final = 30.0
_LONGEST_ANSWER: Final = 4 << 20  # bytes; /slots of a server with many slots and a long context
_OK: Final = range(200, 300)


class HttpFailed(Exception):  # noqa: N818 -- an answer that is none
    """A call that brought no good answer."""


def call(method: str, url: SplitResult, timeout: float, key: str | None = None) -> bytes:
    """Make one HTTP call and return its body.

    Raises:
        TimeoutError: no answer in time.
        HttpFailed: refused, or not a 2xx answer.
    """
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "127.0.0.1", url.port, timeout=timeout)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if method == "POST":
        headers["Content-Length"] = "0"
    target = url.path + (f"?{url.query}" if url.query else "")
    try:
        connection.request(method, target or "/", headers=headers)
        answer = connection.getresponse()
        body = answer.read(_LONGEST_ANSWER)
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise HttpFailed(str(error) or type(error).__name__) from error
    finally:
        connection.close()
    if answer.status not in _OK:
        raise HttpFailed(f"HTTP {answer.status}")
    return body


class Slots:
    """The slots of a llama-server, or of a model behind llama-swap's /upstream."""

    def __init__(self, url: str, key: str | None = None) -> None:
        given = urlsplit(url)
        base = given.path.rstrip("/").removesuffix("/slots")
        self._slots = given._replace(path=f"{base}/slots")
        self._props = given._replace(path=f"{base}/props")
        self._metrics = given._replace(path=f"{base}/metrics")
        self._has_metrics = True
        self._key = key

    def read(self) -> BoundaryRead:
        """Read once."""
        try:
            if self._sleeps():
                return BoundaryRead(seen=Seen.IDLE, served=True)
            slots = parse_slots(call("GET", self._slots, READ_WITHIN, self._key))
            waiting = self._deferred()
        except TimeoutError:
            return BoundaryRead(seen=Seen.TIMED_OUT, detail=f"no answer in {READ_WITHIN:.0f}s")
        except (HttpFailed, ValueError) as error:
            return BoundaryRead(seen=Seen.UNREADABLE, detail=str(error))
        in_flight = slots.processing + waiting
        return BoundaryRead(
            seen=Seen.BUSY if in_flight else Seen.IDLE,
            served=slots.used and not in_flight,
            in_flight=in_flight,
        )

    def _sleeps(self) -> bool:
        try:
            return parse_sleeping(call("GET", self._props, READ_WITHIN, self._key))
        except HttpFailed:
            return False

    def _deferred(self) -> int:
        if not self._has_metrics:
            return 0
        try:
            return parse_deferred(call("GET", self._metrics, READ_WITHIN, self._key))
        except HttpFailed:
            self._has_metrics = False
            return 0


def post_unload(url: str, key: str | None = None) -> UnloadAnswered:
    """Call an unload URL."""
    try:
        call("POST", urlsplit(url), UNLOAD_WITHIN, key)
    except TimeoutError:
        return UnloadAnswered(ok=False, detail=f"no answer in {UNLOAD_WITHIN:.0f}s")
    except HttpFailed as error:
        return UnloadAnswered(ok=False, detail=str(error))
    return UnloadAnswered(ok=True)
