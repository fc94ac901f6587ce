"""A small HTTP server for simulated engines: calls come in, a kind's site answers them."""

import json
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import MappingProxyType
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from berth.errors import BerthError, Code, Exit

HOST: Final = "127.0.0.1"
JSON: Final = "application/json; charset=utf-8"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Site(Protocol):
    """What a kind of engine serves."""

    software: str
    """The header `Server` of every answer."""

    def answer(self, call: "Call") -> None:
        """Answer one call. Runs in a thread of the call's connection."""


class Call:
    """One HTTP request, and the ways to answer it. A client that hung up raises ConnectionError."""

    def __init__(self, exchange: "Exchange", body: bytes) -> None:
        url = urlsplit(exchange.path)
        self.method = exchange.command
        self.path = url.path
        self.query = dict(parse_qsl(url.query))
        self.body = body
        self.client: socket.socket = exchange.connection
        self._exchange = exchange

    def reply(self, status: int, body: object, headers: Mapping[str, str] = _NONE) -> None:
        """Answer with JSON."""
        self.reply_bytes(status, json.dumps(body).encode(), {"Content-Type": JSON, **headers})

    def reply_bytes(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer with anything."""
        self._begin(status, {**headers, "Content-Length": str(len(body))})
        self._exchange.wfile.write(body)

    def begin_stream(self) -> None:
        """Begin an answer of server-sent events."""
        self._begin(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})

    def send(self, event: object) -> None:
        """Send one event, as JSON; a string as it is."""
        text = event if isinstance(event, str) else json.dumps(event)
        part = f"data: {text}\n\n".encode()
        self._exchange.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))

    def end_stream(self) -> None:
        """End the events in good order."""
        self._exchange.wfile.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """Close the connection, whatever was sent of the answer."""
        self._exchange.close_connection = True

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._exchange.send_response(status)
        for name, value in headers.items():
            self._exchange.send_header(name, value)
        self._exchange.end_headers()


class Exchange(BaseHTTPRequestHandler):
    """One connection, in a thread of its own."""

    server: "EngineServer"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every event waits for the client's acknowledgement

    def do_GET(self) -> None:
        """Take a GET."""
        self._take()

    def do_POST(self) -> None:
        """Take a POST."""
        self._take()

    def _take(self) -> None:
        try:
            body = self._body()
        except ValueError:
            self.close_connection = True
            self.send_error(400)
            return
        if self.server.closed:  # a connection that was kept alive from before the signal
            self.close_connection = True
            return
        try:
            self.server.site.answer(Call(self, body))
        except ConnectionError:
            self.close_connection = True

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def version_string(self) -> str:
        """Return the header `Server`."""
        return self.server.site.software

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- http.server's name
        """Log nothing: a board asks several times a second."""


class EngineServer(ThreadingHTTPServer):
    """The port of an engine. It listens from its construction on and answers from `begin` on."""

    daemon_threads = True
    request_queue_size = 128
    site: Site
    closed = False

    def __init__(self, port: int) -> None:
        super().__init__((HOST, port), Exchange)

    def server_bind(self) -> None:
        """Bind, without asking a name server who this host is."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    def begin(self, site: Site) -> None:
        """Answer calls from now on."""
        self.site = site
        threading.Thread(target=self.serve_forever, name="calls", daemon=True).start()

    def stop_listening(self) -> None:
        """Refuse connections at once; those that are open go on.

        Closing alone would not do: the thread that waits on the socket would keep it listening.
        """
        self.closed = True
        self.socket.shutdown(socket.SHUT_RDWR)
        self.shutdown()
        self.server_close()

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Say nothing of a client that hung up; anything else is a bug of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def listen(port: int) -> EngineServer:
    """Listen on a port, any that is free with 0.

    Raises:
        BerthError: the port is taken, with the exit status that llama-server has then.
    """
    try:
        return EngineServer(port)
    except OSError as error:
        message = f"port {port} of {HOST} cannot be listened on: {error.strerror}"
        raise BerthError(Code.BAD_REQUEST, message, exit_status=Exit.NEEDS_A_PERSON) from error
