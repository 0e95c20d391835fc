"""A load generator that leaves the processors to what it measures: epoll, ready-made bytes, little parsing.

Closed loop: each connection asks again as soon as it was answered; says how much a server can do.
Open loop: requests are sent when their time has come, however the server fares, and their latency counts
from that time, so that a server which stalls can't hide it (no "coordinated omission").
"""

import gc
import select
import socket
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.harness import answers

RECEIVE = 65_536
RECONNECT_SECONDS = 0.05
ANSWER_SECONDS = 10.0
"""How long, after the last request, its answer is waited for."""

Source = Callable[[], bytes]
FindIds = Callable[[bytes], list[bytes]]


@dataclass
class Outcome:
    """What came of a burst of requests; latencies in seconds, `times` those of the good answers' arrival."""

    seconds: float = 0.0
    good: int = 0
    counted: int = 0
    """Good answers within `seconds`; those under way at the end are waited for, and are `good` besides."""
    failures: Counter[str] = field(default_factory=Counter)
    latencies: "array[float]" = field(default_factory=lambda: array("d"))
    times: "array[float]" = field(default_factory=lambda: array("d"))
    ids: list[bytes] = field(default_factory=list)
    own_seconds: float = 0.0
    """Processor time of the generator itself."""

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return self.counted / self.seconds if self.seconds else 0.0

    @property
    def errors(self) -> int:
        return sum(self.failures.values())


class Connection:
    """One keep-alive connection; `since` is when its unanswered request was due, 0 when there is none."""

    __slots__ = ("buffer", "fd", "since", "sock")

    def __init__(self) -> None:
        self.sock: socket.socket | None = None
        self.fd = -1
        self.since = 0.0
        self.buffer = b""


class Load:
    """Connections to one server. `ids` gets what it finds in good answers; None: the first id, quickly."""

    def __init__(
        self,
        port: int,
        source: Source,
        *,
        connections: int,
        ids: FindIds | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._address = (host, port)
        self._source = source
        self._ids = ids
        self._by_fd: dict[int, Connection] = {}
        self._lost: list[tuple[float, Connection]] = []
        self._outcome = Outcome()
        self._all = [Connection() for _ in range(connections)]

    def closed(
        self, seconds: float, *, until: int | None = None, tick: Callable[[], None] | None = None
    ) -> Outcome:
        """Every connection busy for `seconds`, or until so many answers; `tick` is called all the while."""
        with self._running() as outcome:
            started = time.perf_counter()
            deadline = started + seconds
            for connection in self._all:
                if self._connect(connection):
                    self._send(connection, time.perf_counter())
            while (now := time.perf_counter()) < deadline and (
                until is None or outcome.good + outcome.errors < until
            ):
                for connection in self._answered(0.05):
                    self._send(connection, time.perf_counter())
                for connection in self._again(now):
                    self._send(connection, now)
                if tick is not None:
                    tick()
            outcome.seconds = time.perf_counter() - started
            outcome.counted = outcome.good
            self._drain()
        return outcome

    def offered(self, rate: float, seconds: float) -> Outcome:
        """`rate` requests a second for `seconds`, each at its time or as soon as a connection is free."""
        with self._running() as outcome:
            idle = deque(connection for connection in self._all if self._connect(connection))
            total, sent = round(rate * seconds), 0
            started = time.perf_counter() + 0.05
            while sent < total:
                now = time.perf_counter()
                while sent < total and idle and started + sent / rate <= now:
                    connection = idle.popleft()
                    # The server may have ended it while it was idle; it comes back by itself.
                    if connection.sock is not None:
                        self._send(connection, started + sent / rate)
                        sent += 1
                pause = (
                    0.01
                    if not idle or sent == total
                    else max(0.0, started + sent / rate - time.perf_counter())
                )
                idle.extend(self._answered(pause))
                idle.extend(self._again(now))
                if now > started + seconds + ANSWER_SECONDS:
                    outcome.failures["never sent"] += total - sent
                    break
            outcome.seconds, outcome.counted = max(seconds, time.perf_counter() - started), outcome.good
            self._drain()
        return outcome

    @contextmanager
    def _running(self) -> Iterator[Outcome]:
        """A fresh outcome, with the garbage collector out of the way; ends with all connections closed."""
        self._outcome = outcome = Outcome()
        self._poll = select.epoll()
        gc.collect()
        gc.disable()
        began = time.process_time()
        try:
            yield outcome
        finally:
            outcome.own_seconds = time.process_time() - began
            gc.enable()
            for connection in self._all:
                self._close(connection)
            self._lost.clear()
            self._poll.close()

    def _connect(self, connection: Connection) -> bool:
        try:
            sock = socket.create_connection(self._address, timeout=ANSWER_SECONDS)
        except OSError:
            self._lost.append((time.perf_counter() + RECONNECT_SECONDS, connection))
            return False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        connection.sock, connection.fd, connection.buffer = sock, sock.fileno(), b""
        self._by_fd[connection.fd] = connection
        self._poll.register(connection.fd, select.EPOLLIN)
        return True

    def _close(self, connection: Connection) -> None:
        if connection.sock is not None:
            self._by_fd.pop(connection.fd, None)
            connection.sock.close()
            connection.sock = None
        connection.since = 0.0

    def _again(self, now: float) -> list[Connection]:
        """Connections that were lost and are there again."""
        if not self._lost:
            return []
        due = [connection for at, connection in self._lost if at <= now]
        self._lost = [(at, connection) for at, connection in self._lost if at > now]
        return [connection for connection in due if self._connect(connection)]

    def _send(self, connection: Connection, due: float) -> None:
        request = self._source()
        connection.since = due
        sock = connection.sock
        assert sock is not None  # noqa: S101
        try:
            sent = sock.send(request)
            if sent < len(request):
                sock.setblocking(True)
                sock.sendall(request[sent:])
                sock.setblocking(False)
        except OSError as error:
            self._lose(connection, type(error).__name__)

    def _lose(self, connection: Connection, why: str) -> None:
        if connection.since:
            self._outcome.failures[why] += 1
        self._close(connection)
        self._lost.append((time.perf_counter() + RECONNECT_SECONDS, connection))

    def _answered(self, timeout: float) -> list[Connection]:
        """The connections that were answered within `timeout` seconds, as soon as there is one."""
        # epoll's own timeout is in whole milliseconds, too coarse for an open loop; select's is not.
        if timeout > 0:
            select.select([self._poll], [], [], timeout)
        done: list[Connection] = []
        for fd, _ in self._poll.poll(0):
            connection = self._by_fd.get(fd)
            if connection is not None and connection.sock is not None and self._receive(connection):
                done.append(connection)
        return done

    def _receive(self, connection: Connection) -> bool:
        """Read what came; whether the answer is whole and the connection free again."""
        try:
            data = connection.sock.recv(RECEIVE)  # type: ignore[union-attr]
        except BlockingIOError:
            return False
        except OSError as error:
            self._lose(connection, type(error).__name__)
            return False
        if not data:
            self._lose(connection, "connection closed")
            return False
        if connection.buffer:
            data = connection.buffer + data
        try:
            if not answers.whole(data):
                connection.buffer = data
                return False
        except answers.Unreadable:
            self._lose(connection, "unreadable answer")
            return False
        connection.buffer = b""
        self._note(data, connection)
        connection.since = 0.0
        if answers.is_last(data):
            self._close(connection)
            return self._connect(connection)
        return True

    def _note(self, data: bytes, connection: Connection) -> None:
        outcome, now = self._outcome, time.perf_counter()
        if data[9:10] != b"2":
            outcome.failures[answers.status(data).decode("latin-1")] += 1
            return
        outcome.good += 1
        outcome.latencies.append(now - connection.since)
        outcome.times.append(now)
        if self._ids is not None:
            outcome.ids += self._ids(data)
        elif (found := answers.first_id(data)) is not None:
            outcome.ids.append(found)

    def _drain(self) -> None:
        """Wait for the answers under way; those that don't come count as unanswered."""
        deadline = time.perf_counter() + ANSWER_SECONDS
        while any(connection.since for connection in self._all) and time.perf_counter() < deadline:
            self._answered(0.05)
        unanswered = sum(1 for connection in self._all if connection.since)
        if unanswered:
            self._outcome.failures["unanswered"] += unanswered
