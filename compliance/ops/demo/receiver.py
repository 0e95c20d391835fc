"""A webhook receiver on loopback that checks every signature, as a customer's would."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic, sleep
from typing import Any


@dataclass
class Inbox:
    """The envelopes received; `header` names the header that carries the signature."""

    url: str
    header: str
    secret: str = ""
    envelopes: list[dict[str, Any]] = field(default_factory=list)
    rejected: int = 0

    def accept(self, body: bytes, signature: str) -> int:
        """Store an envelope and return the status to answer: 204, or 401 for a wrong signature."""
        expected = "sha256=" + hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, signature):
            self.rejected += 1
            return 401
        self.envelopes.append(json.loads(body))
        return 204

    def wait_for(self, event: str, *, seconds: float) -> dict[str, Any] | None:
        """Return the first envelope of `event`; None if none arrives in time."""
        deadline = monotonic() + seconds
        while True:
            found = next((envelope for envelope in self.envelopes if envelope["event"] == event), None)
            if found is not None or monotonic() > deadline:
                return found
            sleep(0.01)


@contextmanager
def receiver(header: str) -> Iterator[Inbox]:
    """Run a receiver on a free port inside the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(inbox.accept(body, self.headers.get(header, "")))
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Write no log: the transcript shows what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    inbox = Inbox(f"http://127.0.0.1:{server.server_port}/hooks", header)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield inbox
    finally:
        server.shutdown()
        server.server_close()
