"""The connections of one worker: shared with other workers, bounded in number, watched and ended."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from compliance.api.answers import Answer
from compliance.serving.http.connection import Connection
from compliance.serving.http.messages import Received

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 512  # below the 1,024 open files that a process may usually have
MOST_REFUSED = 64  # connections beyond those that get an answer before they are closed; any more get none
LONGEST_YIELD_MS = 4  # how long a worker with eight connections or more leaves a new one to others
PAUSE_SECONDS = 0.1  # how long nothing is accepted after the kernel had no room for a connection
QUIET_SECONDS = 60.0
CHECK_SECONDS = 0.5
BODY_SECONDS = 10.0  # how long a client may take to send a body of at most the largest size


@dataclass(eq=False)
class Listener:
    """Accepts connections from `sockets`, as other workers do, and answers requests with `answer`.

    `answer` raises nothing. `largest_body` is in octets; a request with a larger one is refused before it is
    read. `has_peers` says whether there are other workers. Then a worker waits before it accepts, the longer
    the more connections it has, so that one with fewer comes first. Without the wait, the few connections
    that a proxy keeps would all go to the worker that happens to be awake.
    """

    sockets: Sequence[socket.socket]
    answer: Callable[[Received], Awaitable[Answer]]
    _: KW_ONLY
    largest_body: int
    refused: Callable[[int], None] = lambda status: None
    body_seconds: float = BODY_SECONDS
    most_connections: int = MOST_CONNECTIONS
    has_peers: bool = False
    is_stopping: bool = False
    _connections: set[Connection] = field(default_factory=set)
    _accepting: set[asyncio.Task[object]] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _silent_until: float = 0.0

    def start(self) -> None:
        for one in self.sockets:
            one.setblocking(False)
            self._loop.add_reader(one, self._accept, one)
        self._loop.call_later(CHECK_SECONDS, self._check)

    async def stop(self, *, within: float) -> None:
        """Accept no more, let requests under way be answered for `within` seconds, then return."""
        self.is_stopping = True
        for one in self.sockets:
            self._loop.remove_reader(one)
        until = self._loop.time() + within
        while self._connections and self._loop.time() < until:
            for connection in tuple(self._connections):
                connection.end_if_idle()
            await asyncio.sleep(0.02)

    def has_room_for(self, connection: Connection) -> bool:
        """Take note of a new connection; the one that is idle for longest makes room for it."""
        self._connections.add(connection)
        if len(self._connections) <= self.most_connections:
            return True
        longest_idle = min(self._connections, key=lambda one: one.idle_since)
        if longest_idle.idle_since > self._loop.time():
            return False
        longest_idle.end_if_idle()
        return True

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def _accept(self, listening: socket.socket) -> None:
        """Accept a connection; where there are other workers, once those with fewer had a moment to."""
        held = len(self._connections)
        if not self.has_peers or not held:
            self._take(listening, 1)
            return
        self._loop.remove_reader(listening)
        # In whole milliseconds, the resolution of the loop's timers.
        seconds = min(held.bit_length(), LONGEST_YIELD_MS) / 1000
        self._loop.call_later(seconds, self._go_on, listening, 1 + held // 8)

    def _go_on(self, listening: socket.socket, most: int = 0) -> None:
        if not self.is_stopping:
            self._loop.add_reader(listening, self._accept, listening)
            self._take(listening, most)

    def _take(self, listening: socket.socket, most: int) -> None:
        """Accept so many connections that wait, at most."""
        try:
            for _ in range(most):
                accepted, _ = listening.accept()
                if len(self._connections) > self.most_connections + MOST_REFUSED:
                    accepted.close()
                    continue
                accepted.setblocking(False)
                if accepted.family != socket.AF_UNIX:
                    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                opening = self._loop.connect_accepted_socket(lambda: Connection(self), accepted)
                task = self._loop.create_task(opening)
                self._accepting.add(task)
                task.add_done_callback(self._accepting.discard)
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            # No file or memory is left; the socket stays readable, so the loop would spin on it.
            self._loop.remove_reader(listening)
            self._loop.call_later(PAUSE_SECONDS, self._go_on, listening)
            now = self._loop.time()
            if now >= self._silent_until:
                self._silent_until = now + QUIET_SECONDS
                log.warning("connections cannot be accepted: %s", error)

    def _check(self) -> None:
        now = self._loop.time()
        for connection in tuple(self._connections):
            connection.check_deadline(now)
        self._loop.call_later(CHECK_SECONDS, self._check)
