"""A server that stands between a client and the service and misbehaves as a test says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import httpx


class Fate(Enum):
    """What becomes of a request."""

    PASSED = "passed"
    ANSWER_LOST = "answer lost"  # the service has it, and the client learns nothing
    NO_ANSWER = "no answer"  # the connection hangs


@dataclass(frozen=True)
class Canned:
    """An answer that does not come from the service."""

    status: int
    body: bytes = b'{"error": "no"}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Between:
    """`fates` are used up by one request each, the last one by all that follow."""

    service: str
    fates: list[Fate | Canned]
    address: str = ""
    keys: list[str] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)
    ended: Event = field(default_factory=Event)

    def next(self) -> Fate | Canned:
        return self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]


@contextmanager
def between(service: str, *fates: Fate | Canned) -> Iterator[Between]:
    """Serve on a free port until the block ends."""
    found = Between(service, list(fates))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def do_GET(self) -> None:
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            found.keys.append(self.headers.get("Idempotency-Key", ""))
            found.seen.append({name.lower(): value for name, value in self.headers.items()})
            fate = found.next()
            self.close_connection = True
            if fate is Fate.NO_ANSWER:
                found.ended.wait()
                return
            answer = fate if isinstance(fate, Canned) else self._passed_on(body)
            if fate is Fate.ANSWER_LOST:
                return
            length = str(len(answer.body))
            told = {**answer.headers, "Content-Length": length, "Connection": "close"}
            self.send_response(answer.status)
            for name, value in told.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def _passed_on(self, body: bytes) -> Canned:
            kept = {
                name: value for name, value in self.headers.items() if name not in ("Host", "Content-Length")
            }
            got = httpx.request(self.command, f"{service}{self.path}", content=body, headers=kept, timeout=60)
            return Canned(got.status_code, got.content, {"Content-Type": got.headers["Content-Type"]})

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        found.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            found.ended.set()
            server.shutdown()
            thread.join()
