"""The web server's entry point (RSGI): a request gets one of the few threads once its body is all here.

A thread that read the body itself would wait for whoever sends it: twenty senders that stop in the middle
would stand in everybody's way. So the event loop collects the body, in bounded time and memory, and a pool
of threads then runs the WSGI application. Chunked bodies reach it as any others do.
"""

import asyncio
import io
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from django.conf import settings
from granian._granian import RSGIProtocolClosed, RSGIProtocolError

from compliance.allocator import spare_memory
from compliance.api.answers import Answer, Headers
from compliance.api.lanes import Lane, Request
from compliance.garbage import spare_garbage_collection
from compliance.wsgi import application as django_application

# isort: split
# Lanes bring models, which come after Django's start.
from certificates.lane import VerifyLane
from compliance import warming
from events.lane import EventLane
from events.page_lane import PageLane

log = logging.getLogger(__name__)

BODY_SECONDS = 10.0
"""How long a client may take to send a body of at most 1 MiB."""
LARGEST_BODY: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
DEFAULT_THREADS = 8
WAITING_PER_THREAD = 16
"""Requests that may wait for each thread, a fraction of a second's work; more are turned away at once."""

CROWD = 3
"""Requests in a worker's threads at which one of their clients is to come anew: the kernel deals connections
to workers by chance: whoever has few of them may have them all at one worker, beside another that idles."""
PARTING_SECONDS = 0.25
"""How long a worker keeps all others then."""

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

JSON: Headers = [("content-type", "application/json"), ("connection", "close")]


TOO_SLOW = Answer(408, JSON, b'{"error":"The request body did not arrive in time"}')
CUT_SHORT = Answer(400, JSON, b'{"error":"The request body is cut short or its chunks are malformed"}')
FULL = Answer(503, [JSON[0], ("retry-after", "1")], b'{"error":"At capacity; retry with backoff"}')
FAILED = Answer(500, JSON, b'{"error":"Internal server error"}')


class Deadlines:
    """The same time limit of many short waits, looked at together once in a while: each costs little.

    As a context it raises `TimeoutError` in the current task when the block takes (a little) longer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[asyncio.Task[Any], float] = {}
        self._overdue: set[asyncio.Task[Any]] = set()
        self._is_watching = False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._ends[_this_task()] = loop.time() + self._seconds
        if not self._is_watching:
            self._is_watching = True
            loop.call_later(self._seconds / 10, self._look, loop)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        task = _this_task()
        del self._ends[task]
        if self._overdue and task in self._overdue:
            self._overdue.remove(task)
            if isinstance(error, asyncio.CancelledError):
                task.uncancel()
                raise TimeoutError from None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task in [task for task, end in self._ends.items() if end <= now]:
            self._overdue.add(task)
            task.cancel()
        self._is_watching = bool(self._ends)
        if self._is_watching:
            loop.call_later(self._seconds / 10, self._look, loop)


def _this_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task has deadlines")
    return task


class Server:
    """A WSGI application behind the event loop of a granian worker, and the lanes that lead past it."""

    def __init__(
        self,
        application: Application,
        *,
        threads: int,
        body_seconds: float = BODY_SECONDS,
        lanes: Sequence[Lane] = (),
    ) -> None:
        self._application = application
        self._count = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._most_waiting = threads * WAITING_PER_THREAD
        self._unanswered = 0
        self._no_parting_until = 0.0
        self._body_deadlines = Deadlines(body_seconds)
        self._lanes = {(lane.method, lane.path): lane for lane in lanes}

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called before the worker takes its first request."""
        for lane in self._lanes.values():
            lane.warm()
        warming.warm(self._threads, self._count)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called when the worker stops: what runs is finished first."""
        for lane in self._lanes.values():
            lane.close()
        self._threads.shutdown(wait=True)

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        answer = await self._answer(scope, protocol)
        protocol.response_bytes(answer.status, answer.headers, answer.body)

    async def _answer(self, scope: Any, protocol: Any) -> Answer:
        headers: Headers = scope.headers.items()
        named = dict(headers)
        length = named.get("content-length")
        body = b""
        if length is not None or "transfer-encoding" in named:
            try:
                body = await self._read_body(protocol, length)
            except TimeoutError:
                return TOO_SLOW
            except (RSGIProtocolClosed, RSGIProtocolError):
                # Chunks that are none, or a sender who sends no more.
                return CUT_SHORT
        if is_cut_short(length, body):
            return CUT_SHORT
        lane = self._lane_of(scope.method, scope.path)
        answer = None
        is_too_large = len(body) > LARGEST_BODY
        # A header that is there twice is left to the application's reading, and so is a body cut off here:
        # what was read of it may look whole.
        if lane is not None and len(named) == len(headers) and not is_too_large:
            query, address = scope.query_string, address_of(scope)
            request = Request(scope.path, query, address, scope.scheme, named, body)
            answer = await _answer_in_lane(lane, request)
        if answer is not None:
            return answer
        is_crowded = self._is_crowded()
        answer = await self._answer_in_thread(environ_of(scope, headers, body))
        # Of a body that is too large the rest, unread, ends the connection: say so, or a client that keeps it
        # loses its next request.
        if is_too_large or is_crowded:
            return replace(answer, headers=[*answer.headers, ("connection", "close")])
        return answer

    def _is_crowded(self) -> bool:
        """Whether one more request in the threads makes a crowd, and none was sent away of late."""
        now = asyncio.get_running_loop().time()
        if self._unanswered + 1 < CROWD or now < self._no_parting_until:
            return False
        self._no_parting_until = now + PARTING_SECONDS
        return True

    def _lane_of(self, method: str, path: str) -> Lane | None:
        lanes = self._lanes
        return lanes.get((method, path)) or lanes.get((method, path[: path.rfind("/") + 1]))

    async def _read_body(self, protocol: Any, length: str | None) -> bytes:
        """The body, at once or, where its size may be beyond the limit, in pieces; raises `TimeoutError`."""
        with self._body_deadlines:
            if length is not None and length.isdecimal() and int(length) <= LARGEST_BODY:
                found: bytes = await protocol()
                return found
            return await read_body(protocol)

    async def _answer_in_thread(self, environ: Environ) -> Answer:
        if self._unanswered >= self._most_waiting:
            return FULL
        self._unanswered += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, environ)
        finally:
            self._unanswered -= 1

    def _run(self, environ: Environ) -> Answer:
        try:
            return run(self._application, environ)
        except Exception:
            log.exception("unexpected error on %s", environ["PATH_INFO"])
            return FAILED


async def _answer_in_lane(lane: Lane, request: Request) -> Answer | None:
    try:
        return await lane.answer(request)
    except Exception:
        log.exception("unexpected error in the lane of %s", lane.path)
        return FAILED


async def read_body(protocol: Any) -> bytes:
    """The body; of one over the limit a byte more than allowed, which is enough to refuse it."""
    found = bytearray()
    async for piece in protocol:
        found += piece
        if len(found) > LARGEST_BODY:
            break
    return bytes(found[: LARGEST_BODY + 1])


def is_cut_short(length: str | None, body: bytes) -> bool:
    """Whether the sender went away before all that it had announced was sent."""
    if length is None or not length.isdecimal():
        return False
    return len(body) < min(int(length), LARGEST_BODY + 1)


def address_of(scope: Any) -> str:
    """The peer's IP address."""
    address: str = scope.client.rpartition(":")[0].strip("[]")
    return address


def environ_of(scope: Any, headers: Headers, body: bytes) -> Environ:
    """The request as a WSGI environment (PEP 3333): text is UTF-8 read as Latin-1.

    A header with an underscore in its name is left out, lest `X_Forwarded_For` pass for `X-Forwarded-For`.
    """
    server, _, port = scope.server.rpartition(":")
    environ: Environ = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": _as_latin(scope.path),
        "QUERY_STRING": _as_latin(scope.query_string),
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "REMOTE_ADDR": address_of(scope),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in headers:
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name != "content-length" and "_" not in name:
            variable = "HTTP_" + name.upper().replace("-", "_")
            joint = "; " if name == "cookie" else ","
            environ[variable] = f"{environ[variable]}{joint}{value}" if variable in environ else value
    return environ


def run(application: Application, environ: Environ) -> Answer:
    """What the application answers, collected."""
    told: list[tuple[int, Headers]] = []

    def start_response(status: str, headers: Headers, exc_info: Any = None) -> None:
        told.append((int(status.split(" ", 1)[0]), headers))

    pieces = application(environ, start_response)
    try:
        body = b"".join(pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
        environ["wsgi.input"].close()  # else the body stays until the request is collected as garbage
    status, headers = told[-1]
    return Answer(status, headers, body)


def _as_latin(text: str) -> str:
    return text.encode("utf-8", errors="surrogateescape").decode("latin-1")


warming.load()
spare_garbage_collection()
spare_memory()
application = Server(
    django_application,
    threads=int(os.environ.get("WEB_THREADS", DEFAULT_THREADS)),
    lanes=[EventLane(), PageLane(), VerifyLane()],
)
