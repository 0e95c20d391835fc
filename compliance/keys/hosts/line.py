"""A process's connections to one key host: few, opened when needed, lent one caller at a time."""

import logging
import os
import queue
import threading
import time
from itertools import count
from pathlib import Path
from typing import Final

from compliance.environments import Environment
from compliance.keys.base import KeyServiceUnavailable
from compliance.keys.circuit import Circuit
from compliance.keys.hosts import address
from compliance.keys.hosts.wire import (
    MAX_ANSWER,
    AnyAnswer,
    AnyRequest,
    Broken,
    Channel,
    Page,
    TakeStock,
    read_answer,
)

logger = logging.getLogger(__name__)

QUICK_CALLS: Final = 8
SLOW_CALLS: Final = 2
"""Generations and listings of a process at a time, beside which signing keeps its own connections."""
CONNECT_SECONDS: Final = 2.0
PRESENCE_SECONDS: Final = 5.0


class HostAway(KeyServiceUnavailable):
    """No host listens, or it went away twice during a call that may be repeated."""


class Line:
    """Calls to the host `number`; any thread may call, and children that are forked start with none open."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self._folder = folder
        self._open: set[Channel] = set()
        self.start_afresh()

    def start_afresh(self) -> None:
        """No connections: those of a forked child's parent are the parent's."""
        for channel in self._open:
            channel.close()
        self.circuit = Circuit()
        self._open.clear()
        self._idle: list[Channel] = []
        self._quick = _permits(QUICK_CALLS)
        self._slow = _permits(SLOW_CALLS)
        self._numbers = count(os.getpid() & 0xFFFF)
        self._is_away = False

    @property
    def is_away(self) -> bool:
        """Whether the last call found no host, or one that does not answer."""
        return self._is_away or self.circuit.is_open

    def call(
        self, request: AnyRequest, *, timeout: float, is_slow: bool = False, may_repeat: bool = True
    ) -> list[AnyAnswer]:
        """The host's answers within `timeout` seconds; `may_repeat` when asking twice does no harm.

        Raises `HostAway` or `KeyServiceUnavailable`.
        """
        permits = self._slow if is_slow else self._quick
        ticket = self.circuit.admit()
        deadline = time.monotonic() + timeout
        try:
            permits.get(timeout=timeout)
        except queue.Empty as error:
            raise KeyServiceUnavailable from error
        try:
            answers = self._ask(request, deadline, may_repeat=may_repeat)
        except TimeoutError as error:
            logger.warning("Key host %d does not answer in %.0f s", self.number, timeout)
            if not is_slow:
                self.circuit.failed(ticket)
            raise KeyServiceUnavailable from error
        finally:
            permits.put(None)
        self.circuit.succeeded()
        return answers

    def is_there(self) -> bool:
        """Whether the host answers, be it that its tokens are lost."""
        try:
            self.call(TakeStock(Environment.LIVE), timeout=PRESENCE_SECONDS)
        except KeyServiceUnavailable:
            return False
        return True

    def close(self) -> None:
        """Close the connections that nobody uses; the next call opens one."""
        while self._idle:
            channel = self._idle.pop()
            self._open.discard(channel)
            channel.close()

    def _ask(self, request: AnyRequest, deadline: float, *, may_repeat: bool) -> list[AnyAnswer]:
        channel = self._take()
        try:
            return self._exchange(channel, request, deadline)
        except Broken as error:
            if not may_repeat:
                self._note_away(error)
                raise KeyServiceUnavailable from error
        self.close()
        try:
            return self._exchange(self._take(), request, deadline)
        except Broken as error:
            self._note_away(error)
            raise HostAway from error

    def _exchange(self, channel: Channel, request: AnyRequest, deadline: float) -> list[AnyAnswer]:
        """Ask and read the answers; the connection is kept only if nothing is left on it."""
        number = next(self._numbers) & 0xFFFFFFFF
        try:
            channel.send(number, request, timeout=_until(deadline))
            answers = [_answer(channel, number, deadline)]
            while isinstance(answers[-1], Page) and not answers[-1].is_last:
                answers.append(_answer(channel, number, deadline))
        except BaseException:
            self._open.discard(channel)
            channel.close()
            raise
        self._idle.append(channel)
        return answers

    def _take(self) -> Channel:
        while True:
            try:
                channel = self._idle.pop()
            except IndexError:
                return self._connect()
            if channel.is_quiet():
                return channel
            self._open.discard(channel)
            channel.close()

    def _connect(self) -> Channel:
        try:
            connection = address.connect(self._folder, self.number, timeout=CONNECT_SECONDS)
        except OSError as error:
            self._note_away(error)
            raise HostAway from error
        if self._is_away:
            self._is_away = False
            logger.info("Key host %d is back", self.number)
        channel = Channel(connection, limit=MAX_ANSWER)
        self._open.add(channel)
        return channel

    def _note_away(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            logger.warning("Key host %d is away: %s", self.number, error)


def _answer(channel: Channel, number: int, deadline: float) -> AnyAnswer:
    found, payload = channel.receive(timeout=_until(deadline))
    if found != number:
        raise Broken("the answer to another request")
    return read_answer(payload)


def _until(deadline: float) -> float:
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise TimeoutError
    return rest


def _permits(number: int) -> "queue.SimpleQueue[None]":
    permits: queue.SimpleQueue[None] = queue.SimpleQueue()
    for _ in range(number):
        permits.put(None)
    return permits


_known: dict[tuple[str, int], Line] = {}
_lock = threading.Lock()


def lines_to(folder: str, hosts: int) -> list[Line]:
    """This process's only lines to the hosts of a folder."""
    with _lock:
        for number in range(hosts):
            if (folder, number) not in _known:
                _known[folder, number] = Line(Path(folder), number)
        return [_known[folder, number] for number in range(hosts)]


def _after_fork_in_child() -> None:
    _lock._at_fork_reinit()  # type: ignore[attr-defined]
    for line in _known.values():
        line.start_afresh()


os.register_at_fork(after_in_child=_after_fork_in_child)
