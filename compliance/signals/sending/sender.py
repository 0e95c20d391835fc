"""Follow the audit log and push the signals of one environment.

One thread owns the only database connection: it derives signals, claims streams and records results. Each
claimed stream has a thread of its own without a connection, which pushes its signals one after the other.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import Error, connections

from auditlog.errors import TreeDamaged
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.signals import wakeup
from compliance.signals.feed import following
from compliance.signals.sending import claims, results
from compliance.signals.sending.pushing import ClaimedStream, PushResult, push
from webhooks.sending.http_client import DEFECT, Outcome

log = logging.getLogger(__name__)

RENEW_SECONDS: Final = claims.LEASE.total_seconds() / 4
FORGET_SECONDS: Final = 3600.0
GATHER_SECONDS: Final = 0.005  # so that one transaction takes many results
RETRY_SECONDS: Final = 0.5
CLOSING_SECONDS: Final = 5.0


class SignalSender:
    """Push what waits in `environment`, to at most `size` receivers at a time."""

    def __init__(self, environment: Environment, *, size: int) -> None:
        self.environment = environment
        self._size = size
        self._in_flight: dict[UUID, ClaimedStream] = {}
        self._finished: SimpleQueue[PushResult] = SimpleQueue()
        self._unrecorded: list[PushResult] = []
        self._awake = threading.Event()
        self._stopping = threading.Event()
        self._renewed = self._forgotten = 0.0

    def run(self) -> None:
        """Follow and push until `stop`; what the database or the HSM refuses is tried again."""
        arguments = (self.environment, self._awake.set, self._stopping)
        threading.Thread(target=wakeup.listen, args=arguments, daemon=True).start()
        with environments.use(self.environment):
            while not self._stopping.is_set():
                began = time.monotonic()
                self._try(self._turn)
                self._wait(settings.SIGNALS_POLL_SECONDS)
                time.sleep(max(0.0, began + GATHER_SECONDS - time.monotonic()))
            self._close(CLOSING_SECONDS)
            connections[self.environment.alias].close()

    def run_until_idle(self, *, seconds: float) -> int:
        """Follow and push what is due, begin nothing after `seconds`; return how many streams."""
        until = time.monotonic() + seconds
        with environments.use(self.environment):
            claimed = self._turn()
            while self._in_flight and time.monotonic() < until:
                self._wait(settings.SIGNALS_POLL_SECONDS)
                claimed += self._turn()
            self._close(settings.SIGNALS_TIMEOUT_SECONDS + CLOSING_SECONDS)
        return claimed

    def stop(self) -> None:
        """Make `run` claim nothing more and return, at most `CLOSING_SECONDS` later."""
        self._stopping.set()
        self._awake.set()

    def _turn(self) -> int:
        self._record()
        self._renew()
        if following.follow(now=now()) == following.ROUND:
            self._awake.set()
        if time.monotonic() - self._forgotten >= FORGET_SECONDS:
            results.forget_refused(now=now())
            self._forgotten = time.monotonic()
        return self._begin()

    def _wait(self, seconds: float) -> None:
        self._awake.wait(seconds)
        self._awake.clear()

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Error as error:
            # Whether the transaction took place or not, the next turn goes by positions and leases.
            log.warning("%s: the database refused: %s", self.environment.value, type(error).__name__)
            connections[self.environment.alias].close()
            self._stopping.wait(RETRY_SECONDS)
        except (ServiceError, TreeDamaged) as error:
            log.warning("%s: nothing sent: %s", self.environment.value, error)
            self._stopping.wait(RETRY_SECONDS)

    def _record(self) -> None:
        while not self._finished.empty():
            self._unrecorded.append(self._finished.get())
        if self._unrecorded:
            results.record(self._unrecorded, now=now())
            for lease in {one.stream.lease for one in self._unrecorded if one.is_last}:
                self._in_flight.pop(lease, None)
            self._unrecorded = []

    def _renew(self) -> None:
        if time.monotonic() - self._renewed >= RENEW_SECONDS:
            claims.renew(self._in_flight.values(), now=now())
            self._renewed = time.monotonic()

    def _begin(self) -> int:
        """Claim what is due and begin to push it; return the number of streams."""
        failing = sum(stream.is_failing for stream in self._in_flight.values())
        free = self._size - len(self._in_flight)
        if free <= 0:
            return 0
        claimed = claims.claim(limit=free, failing=self._size // 2 - failing, now=now())
        for stream in claimed:
            self._in_flight[stream.lease] = stream
            threading.Thread(target=self._push, args=(stream,), name="signals-push", daemon=True).start()
        return len(claimed)

    def _push(self, stream: ClaimedStream) -> None:
        """Push a stream's signals in their order, and end at the first failure."""
        with environments.use(self.environment):
            for position, signal in enumerate(stream.signals, start=1):
                try:
                    outcome = push(stream, signal)
                except Exception:
                    # Whatever it is must be recorded: the stream would stay claimed for ever.
                    log.exception("a signal of stream %s could not be sent", stream.id)
                    outcome = Outcome(timedelta(), error=DEFECT)
                is_over = position == len(stream.signals) or not outcome.succeeded or self._stopping.is_set()
                self._finished.put(PushResult(stream, signal, outcome, now(), is_over))
                self._awake.set()
                if is_over:
                    return

    def _close(self, seconds: float) -> None:
        """Record what ends within `seconds`, and leave the rest to other senders at once."""
        until = time.monotonic() + seconds
        while self._in_flight and time.monotonic() < until:
            self._try(self._record)
            self._try(self._renew)
            self._wait(0.05)
        self._try(lambda: claims.release(list(self._in_flight)))
