"""The connections of one worker: accepted one at a time, bounded in number, watched and ended."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence

from compliance.api.answers import Answer
from compliance.serving import refusals
from compliance.serving.connection import Connection
from compliance.serving.messages import Received

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 512
"""Below the 1,024 open files that a process may usually have."""
LOOK_SECONDS = 0.5
BODY_SECONDS = 10.0
"""How long a client may take to send a body of at most the largest size."""


class Listener:
    """Accepts from `sockets`, which other workers accept from as well, and answers with `handler`.

    `largest_body` is in octets; a request with a larger one is refused before it is read.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        handler: Callable[[Received], Awaitable[Answer]],
        *,
        largest_body: int,
        body_seconds: float = BODY_SECONDS,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.largest_body = largest_body
        self.body_seconds = body_seconds
        self.is_stopping = False
        self._sockets = sockets
        self._handler = handler
        self._most = most_connections
        self._connections: set[Connection] = set()
        self._accepting: set[asyncio.Task[object]] = set()
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Accept connections from now on."""
        for one in self._sockets:
            one.setblocking(False)
            self._loop.add_reader(one, self._accept, one)
        self._loop.call_later(LOOK_SECONDS, self._look)

    async def stop(self, *, within: float) -> None:
        """Accept no more, let requests under way be answered for `within` seconds, then return."""
        self.is_stopping = True
        for one in self._sockets:
            self._loop.remove_reader(one)
        until = self._loop.time() + within
        while self._connections and self._loop.time() < until:
            for connection in tuple(self._connections):
                connection.end_if_idle()
            await asyncio.sleep(0.02)

    async def answer(self, request: Received) -> Answer:
        """The handler's answer; 500 where it met a defect."""
        try:
            return await self._handler(request)
        except Exception:
            log.exception("unexpected error on %s", request.path)
            return refusals.FAILED

    def opened(self, connection: Connection) -> bool:
        """Take note of a new connection; the one idle for longest is closed to make room."""
        self._connections.add(connection)
        if len(self._connections) <= self._most:
            return True
        others = self._connections - {connection}
        longest_idle = min(others, key=lambda one: one.idle_since, default=None)
        if longest_idle is None or not longest_idle.is_idle:
            return False
        longest_idle.end_if_idle()
        return True

    def closed(self, connection: Connection) -> None:
        """Take note of a connection's end."""
        self._connections.discard(connection)

    def _accept(self, listening: socket.socket) -> None:
        """Take one connection: another worker may have the next one, if it is sooner there."""
        try:
            accepted, _ = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            log.warning("a connection could not be accepted: %s", error)
            return
        accepted.setblocking(False)
        if accepted.family != socket.AF_UNIX:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._loop.connect_accepted_socket(lambda: Connection(self), accepted))
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    def _look(self) -> None:
        now = self._loop.time()
        for connection in tuple(self._connections):
            connection.look(now)
        self._loop.call_later(LOOK_SECONDS, self._look)
