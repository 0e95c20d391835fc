"""A witness over HTTP, behind a proxy that speaks TLS; each client is bounded in time and size."""

import logging
import socket
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from auditlog.tlog.checkpoints import MAX_REQUEST_BYTES
from auditlog.witness.cosigning import PLAIN, CheckpointRefused, Witness

REQUEST_SECONDS = 30.0  # for a connection, which carries one request
MAX_CONNECTIONS = 256

logger = logging.getLogger(__name__)


class WitnessServer(ThreadingHTTPServer):
    """Serves a witness at `address` (host, port); a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128
    # Not HTTPServer's, which asks the resolver for the host's name.
    server_bind = TCPServer.server_bind

    def __init__(
        self, address: tuple[str, int], witness: Witness, *, request_seconds: float = REQUEST_SECONDS
    ) -> None:
        self.witness, self._request_seconds = witness, request_seconds
        self._deadlines: dict[Any, float] = {}
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, WitnessHandler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there is room for another connection; without it, it is closed."""
        if len(self._deadlines) >= MAX_CONNECTIONS:
            return False
        self._deadlines[request] = time.monotonic() + self._request_seconds
        return True

    def service_actions(self) -> None:
        """Cut off connections past their deadline; called at least twice a second."""
        now = time.monotonic()
        for connection, deadline in self._deadlines.copy().items():
            if deadline < now:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a defect; a client that went away is none."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logger.error("A request failed", exc_info=error)


class WitnessHandler(BaseHTTPRequestHandler):
    server: WitnessServer
    default_request_version = "HTTP/1.0"
    server_version, sys_version = "audit-witness", ""
    timeout = REQUEST_SECONDS
    wbufsize = -1  # an answer leaves in one piece

    def do_GET(self) -> None:
        """The latest checkpoint of one log (`/<hash of its origin>/checkpoint`), or a line for each log."""
        if self.path in {"/", "/state"}:
            lines = [
                f"{found.checkpoint.size} {found.checkpoint.origin}\n"
                for found in self.server.witness.latest()
            ]
            self._answer(200, "".join(lines))
            return
        origin_hash, _, rest = self.path.removeprefix("/").partition("/")
        found = self.server.witness.latest_of(origin_hash) if rest == "checkpoint" else None
        if found is None:
            self._answer(404, "Not found\n")
        else:
            self._answer(200, found.note)

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        if self.path != "/add-checkpoint":
            self._answer(404, "Not found\n")
            return
        try:
            line = self.server.witness.add_checkpoint(body, now=int(time.time()))
        except CheckpointRefused as refusal:
            logger.info("Refused with %s: %r", refusal.status, refusal.text)
            self._answer(refusal.status, refusal.text, refusal.content_type)
        except OSError:
            logger.exception("The state can't be written")
            self._answer(503, "The witness can't store its state\n")
        else:
            self._answer(200, line)

    def _body(self) -> bytes | None:
        """Read the request's body; answer and return None if it is not acceptable."""
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths or "Transfer-Encoding" in self.headers:
            self.send_error(411)
        elif len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            self.send_error(400)
        elif len(lengths[0]) > 9 or int(lengths[0]) > MAX_REQUEST_BYTES:
            self.send_error(413)
        else:
            body = self.rfile.read(int(lengths[0]))
            if len(body) == int(lengths[0]):
                return body
        return None

    def _answer(self, status: int, text: str, content_type: str = PLAIN) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer as text."""
        self._answer(code, f"{message or self.responses[code][0]}\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Write no line for each request."""
