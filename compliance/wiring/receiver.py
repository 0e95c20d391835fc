"""A webhook receiver on loopback, as a customer would write one: it checks every signature."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from time import monotonic
from typing import Any


@dataclass
class Received:
    """What has arrived: the envelopes whose signature holds, and how many did not."""

    header: str
    secret: str = ""
    envelopes: list[dict[str, Any]] = field(default_factory=list)
    rejected: int = 0
    changed: Condition = field(default_factory=Condition)

    def take(self, body: bytes, signature: str) -> int:
        """The status to answer with: 204, or 401 when the signature does not hold."""
        expected = "sha256=" + hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        with self.changed:
            if not hmac.compare_digest(expected, signature):
                self.rejected += 1
                return 401
            self.envelopes.append(json.loads(body))
            self.changed.notify_all()
            return 204

    def wait_for(self, event: str, *, seconds: float) -> dict[str, Any] | None:
        """The first envelope of `event`, or None when none came in time."""
        deadline = monotonic() + seconds
        with self.changed:
            while True:
                found = next((item for item in self.envelopes if item["event"] == event), None)
                if found is not None or not self.changed.wait(max(0.0, deadline - monotonic())):
                    return found


@contextmanager
def receiver(header: str) -> Iterator[tuple[str, Received]]:
    """A running receiver's URL and what it received; `header` carries the signature."""
    received = Received(header)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            self.send_response(received.take(body, self.headers.get(received.header, "")))
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Stay silent: the scenario prints what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks", received
    finally:
        server.shutdown()
        server.server_close()
