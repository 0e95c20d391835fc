"""A process's connections to one key host: opened when needed, each used by one caller at a time."""

import logging
import os
import threading
import time
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from compliance.core.circuit_breaker import CircuitBreaker
from compliance.core.environments import Environment
from compliance.core.errors import Unavailable
from compliance.keys import forks
from compliance.keys.base import KeyServiceNotConfigured, KeyServiceUnavailable
from compliance.keys.hosts import messages, sockets
from compliance.keys.hosts.messages import AnyRequest, ConnectionLost, KeyHostResponse, MessageConnection
from compliance.observing import metrics

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

QUICK_CALLS: Final = 8
SLOW_CALLS: Final = 2  # generations and listings
CONNECT_SECONDS: Final = 2.0
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 2.0  # a host that died is back by then


OUTAGES: Final = (KeyServiceUnavailable, KeyServiceNotConfigured)
"""Errors of the token, not of what it was asked for."""


class KeyHostAway(KeyServiceUnavailable):
    """The request was not sent: nothing listens, or the host failed just now."""


class KeyHostClient:
    """Calls to the key host `number` from any thread."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self._folder = folder
        self._open: set[MessageConnection] = set()
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._idle: list[MessageConnection] = []
        self._quick = threading.Semaphore(QUICK_CALLS)
        self._slow = threading.Semaphore(SLOW_CALLS)
        self._numbers = count(os.getpid() & 0xFFFF)
        self._breaker = CircuitBreaker(
            lambda seconds: KeyHostAway(retry_after=max(1, round(seconds))),
            failures=(OSError, ConnectionLost, KeyHostAway),
            first_pause=FIRST_PAUSE,
            longest_pause=LONGEST_PAUSE,
        )

    @property
    def is_away(self) -> bool:
        return self._breaker.is_open

    def is_there(self) -> bool:
        """Whether the host responds now, even if its tokens are lost."""
        try:
            self.call(messages.CheckTokens(Environment.LIVE, has_main=False), type(None))
        except Unavailable:
            return not self.is_away
        return True

    def call(self, request: AnyRequest, result: type[Result]) -> Result:
        """Return the host's result; raises the errors of `KeyBackend`, and `KeyHostAway`."""
        name = f"host_{type(request).__name__}"
        with metrics.counted(metrics.HSM_CALLS, metrics.HSM_SECONDS, name):
            response = self._ask(request, time.monotonic() + request.timeout)
            error = _error_of(response)
            if isinstance(error, OUTAGES):
                raise error
        if error is not None:
            raise error
        return msgspec.msgpack.decode(response.result, type=result)

    def _ask(self, request: AnyRequest, deadline: float) -> KeyHostResponse:
        permits = self._slow if request.is_slow else self._quick
        if not permits.acquire(timeout=request.timeout):
            raise KeyServiceUnavailable
        try:
            with self._breaker.guarding():
                return self._exchange(self._take(), request, deadline)
        except (OSError, ConnectionLost) as error:
            logger.warning("Key host %d went away: %s", self.number, error or type(error).__name__)
            raise KeyServiceUnavailable from error
        finally:
            permits.release()

    def _exchange(
        self, connection: MessageConnection, request: AnyRequest, deadline: float
    ) -> KeyHostResponse:
        """Send a request and read its response; the connection is kept only if nothing went wrong."""
        number = next(self._numbers) & 0xFFFFFFFF
        is_sound = False
        try:
            connection.send(number, request, timeout=_seconds_until(deadline))
            found, payload = connection.receive(timeout=_seconds_until(deadline))
            response = messages.read_response(payload, is_expected=found == number)
            is_sound = True
        finally:
            if not is_sound:
                self._discard(connection)
        self._idle.append(connection)
        return response

    def _take(self) -> MessageConnection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if connection.is_quiet():
                return connection
            self._discard(connection)

    def _connect(self) -> MessageConnection:
        try:
            connected = sockets.connect(self._folder, self.number, timeout=CONNECT_SECONDS)
        except OSError as error:
            logger.warning("Key host %d is away: %s", self.number, error)
            raise KeyHostAway from error
        connection = MessageConnection(connected, limit=messages.MAX_RESPONSE)
        self._open.add(connection)
        return connection

    def _discard(self, connection: MessageConnection) -> None:
        self._open.discard(connection)
        connection.close()


def _error_of(response: KeyHostResponse) -> Exception | None:
    if response.failure == messages.INVALID:
        return ValueError(response.message)
    if response.failure:
        return messages.ERRORS.get(response.failure, KeyServiceUnavailable)(retry_after=response.retry_after)
    return None


def _seconds_until(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


@cache
def client_for(folder: Path, number: int) -> KeyHostClient:
    """Return this process's client of a key host, which all environments share."""
    return KeyHostClient(folder, number)
