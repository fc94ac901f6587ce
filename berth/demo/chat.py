"""A client that chats with an engine and notes whether each reply came whole."""

import http.client
import json
import threading
from contextlib import closing, suppress

REPLY_WITHIN = 60.0


class Chat(threading.Thread):
    """One streaming chat. `begun` at its first chunk or its failure; `whole` after its [DONE]."""

    def __init__(self, port: int, tokens: int) -> None:
        super().__init__(name=f"chat on {port}", daemon=True)
        self._port = port
        self._tokens = tokens
        self.begun = threading.Event()
        self.whole = False

    def run(self) -> None:
        """Chat to the end, or to the cut."""
        body = {
            "messages": [{"role": "user", "content": "Tell me of the harbor."}],
            "max_tokens": self._tokens,
            "stream": True,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=REPLY_WITHIN)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            with connection.getresponse() as answer:
                for line in answer:
                    if line.startswith(b"data: "):
                        self.begun.set()
                        self.whole = line.strip() == b"data: [DONE]"
        self.begun.set()


def is_healthy(port: int) -> bool:
    """Tell whether an engine on that port is up."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/health")
        with connection.getresponse() as answer:
            return answer.status == http.client.OK
    return False
