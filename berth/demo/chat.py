"""A client that chats with an engine, and what became of its request."""

import http.client
import json
from contextlib import closing, suppress
from enum import Enum
from typing import Final

REPLY_WITHIN: Final = 60.0
_LOOK_WITHIN: Final = 2.0


class Outcome(Enum):
    """What became of a request.

    UNSENT: nobody was there to take it, and it counts as none. FAILED: it waited for an engine
    that did not come up. CUT: an engine took it, and did not answer it to its end.
    """

    WHOLE = "whole"
    CUT = "cut"
    FAILED = "failed"
    UNSENT = "unsent"


def chat(port: int, tokens: int) -> Outcome:
    """Stream one reply to its end. It is whole when its last event says so."""
    body = {
        "messages": [{"role": "user", "content": "Tell me of the harbor."}],
        "max_tokens": tokens,
        "stream": True,
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REPLY_WITHIN)
    with closing(connection):
        try:
            connection.connect()
        except OSError:
            return Outcome.UNSENT
        with suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            with connection.getresponse() as answer:
                if answer.status == http.client.SERVICE_UNAVAILABLE:
                    return Outcome.UNSENT
                lines = [line.strip() for line in answer if line.startswith(b"data: ")]
                return Outcome.WHOLE if lines[-1:] == [b"data: [DONE]"] else Outcome.CUT
    return Outcome.CUT


def is_healthy(port: int) -> bool:
    """Tell whether an engine on that port is up."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LOOK_WITHIN)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/health")
        with connection.getresponse() as answer:
            return answer.status == http.client.OK
    return False
