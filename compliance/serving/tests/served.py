"""A listener on a loopback socket in a thread of its own, and a client that writes octets."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import uvloop

from compliance.api.answers import Answer
from compliance.serving.http.listener import Listener
from compliance.serving.http.messages import Received, StreamBroken, StreamedAnswer

LARGEST = 1024
WAIT_SECONDS = 60.0


@dataclass
class Pieces:
    """The body of a streamed answer; None is where it breaks."""

    left: list[bytes | None]
    is_stopped: bool = False

    async def next(self) -> bytes:
        piece = self.left.pop(0) if self.left else b""
        if piece is None:
            raise StreamBroken
        return piece

    async def stop(self) -> None:
        self.is_stopped = True


@dataclass
class Served:
    """What a listener was asked, and where it listens; `release` lets requests to /slow be answered."""

    port: int = 0
    seen: list[Received] = field(default_factory=list)
    release: Event = field(default_factory=Event)
    listener: Listener | None = None
    pieces: dict[str, "Pieces"] = field(
        default_factory=lambda: {
            "/streamed": Pieces([b"a" * 100_000] * 50),
            "/streamed/broken": Pieces([b"a", None]),
        }
    )

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_SECONDS)

    def tell(self, octets: bytes, *, half_close: bool = False) -> bytes:
        """Send, and all that comes back until the connection ends."""
        with self.connect() as client:
            client.sendall(octets)
            if half_close:
                client.shutdown(socket.SHUT_WR)
            return read_all(client)

    async def handle(self, request: Received) -> Answer:
        self.seen.append(request)
        if request.path == "/slow":
            await asyncio.get_running_loop().run_in_executor(None, self.release.wait, WAIT_SECONDS)
        if request.path.startswith("/streamed"):
            return StreamedAnswer(200, [("content-type", "text/plain")], b"", self.pieces[request.path])
        body = json.dumps({"path": request.path, "length": len(request.body)}).encode()
        if request.path == "/large":
            body = body.ljust(8_000_000)
        return Answer(200, [("content-type", "application/json")], body)


def read_all(client: socket.socket) -> bytes:
    found = b""
    while piece := client.recv(65536):
        found += piece
    return found


def parsed(answer: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON body of one answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["content-length"]) == len(body)
    return int(first.split(" ")[1]), headers, json.loads(body)


@contextmanager
def serving(listening: socket.socket | None = None, **options: Any) -> Iterator[Served]:
    """A listener whose largest body is `LARGEST` octets; `options` go to it."""
    served = Served()
    if listening is None:
        listening = socket.create_server(("127.0.0.1", 0))
        served.port = listening.getsockname()[1]
    is_ready, stop = Event(), Event()

    async def live() -> None:
        listener = Listener([listening], served.handle, **{"largest_body": LARGEST, **options})
        served.listener = listener
        listener.start()
        is_ready.set()
        await asyncio.get_running_loop().run_in_executor(None, stop.wait)
        await listener.stop(within=1)

    thread = Thread(target=_run, args=[live])
    thread.start()
    try:
        assert is_ready.wait(WAIT_SECONDS)
        yield served
    finally:
        served.release.set()
        stop.set()
        thread.join(WAIT_SECONDS)
        listening.close()


def _run(live: Callable[[], Any]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live())
