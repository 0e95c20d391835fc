"""Redis scripts asked from the event loop: no thread is woken for it, none waits for the interpreter."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any

import hiredis
from django.conf import settings
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as Hung

from compliance import redis
from compliance.redis import Script

RECEIVE = 65_536


class LoopScript:
    """A script over a connection of its own; its caller waits for an answer before it asks again."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._link: _Link | None = None

    async def run(self, *calls: Sequence[Any]) -> list[Any]:
        """As `Script.run()`; raises `RedisError`."""
        answers = await self._ask([self._script.by_digest(call) for call in calls])
        for place, answer in enumerate(answers):
            if isinstance(answer, hiredis.ReplyError) and str(answer).startswith("NOSCRIPT"):
                answers[place] = (await self._ask([self._script.by_text(calls[place])]))[0]
        for answer in answers:
            if isinstance(answer, hiredis.ReplyError):
                raise ResponseError(str(answer))
        return answers

    def close(self) -> None:
        """Let the connection go; whoever waits for it meets an error."""
        if self._link is not None:
            self._link.end(Unreachable("closed"))

    async def _ask(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        packed = b"".join([hiredis.pack_command(command) for command in commands])
        if self._link is not None and self._link.is_open:
            try:
                return await self._link.ask(packed, len(commands))
            except Unreachable:
                # The server may have ended it while it was idle.
                pass
        loop = asyncio.get_running_loop()
        self._link = _Link(await loop.run_in_executor(None, _connected), loop)
        return await self._link.ask(packed, len(commands))


def _connected() -> Any:
    """A connection as redis-py makes it: address, password and TLS stay its business."""
    pool = redis.client().connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)
    connection.connect()
    return connection


class _Link:
    """One connection with at most one exchange on it; what breaks that off ends the connection."""

    def __init__(self, connection: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.is_open = True
        self._connection, self._loop = connection, loop
        self._socket = connection._sock
        self._socket.setblocking(False)
        self._reader = hiredis.Reader()
        self._answers: list[Any] = []
        self._expected = 0
        self._future: asyncio.Future[list[Any]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        loop.add_reader(self._socket.fileno(), self._read)

    def ask(self, packed: bytes, count: int) -> asyncio.Future[list[Any]]:
        """Send the commands; their answers within REDIS_TIMEOUT_SECONDS."""
        self._future = future = self._loop.create_future()
        self._answers, self._expected = [], count
        self._timer = self._loop.call_later(
            settings.REDIS_TIMEOUT_SECONDS, self.end, Hung("Redis did not answer in time")
        )
        try:
            if self._socket.send(packed) < len(packed):
                self.end(Hung("Redis takes no more"))
        except OSError as error:
            self.end(Unreachable(str(error)))
        return future

    def end(self, error: Exception) -> None:
        """Close the connection; who waits for an answer gets the error."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._socket.fileno())
            self._connection.disconnect()
        if self._timer is not None:
            self._timer.cancel()
        if self._future is not None and not self._future.done():
            self._future.set_exception(error)

    def _read(self) -> None:
        try:
            received = self._socket.recv(RECEIVE)
            self._reader.feed(received)
            # TLS may have decrypted more than was asked for, and wakes nobody for it.
            while received and getattr(self._socket, "pending", int)():
                self._reader.feed(self._socket.recv(RECEIVE))
            self._take_answers()
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except (OSError, hiredis.HiredisError) as error:
            self.end(Unreachable(str(error)))
        else:
            if not received:
                self.end(Unreachable("Redis ended the connection"))

    def _take_answers(self) -> None:
        # False: nothing whole is there yet; no script of ours answers it.
        while (answer := self._reader.gets()) is not False:
            if not isinstance(answer, hiredis.PushNotification):
                self._answers.append(answer)
        if self._future is not None and len(self._answers) >= self._expected and not self._future.done():
            if self._timer is not None:
                self._timer.cancel()
            self._future.set_result(self._answers)
