"""Send the webhooks of one environment.

One thread owns the only database connection: it records results, renews leases and claims what is due. Each
attempt has a thread of its own without a connection, so endpoints that hang hold none.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from uuid import UUID

from django.conf import settings
from django.db import DataError, Error, IntegrityError, connections

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from webhooks.sending import claims, results, wakeup
from webhooks.sending.attempts import AttemptResult, ClaimedAttempt, send
from webhooks.sending.http_client import DEFECT, Outcome

log = logging.getLogger(__name__)

RENEW_SECONDS = claims.LEASE.total_seconds() / 4
CLEAN_UP_SECONDS = 1.0
GATHER_SECONDS = 0.015  # so that one transaction takes many results
DATABASE_RETRY_SECONDS = 0.5
CLOSING_SECONDS = 5.0


class Sender:
    """Send what is due in `environment`, at most `size` attempts at a time."""

    def __init__(self, environment: Environment, *, size: int) -> None:
        self.environment = environment
        self._size = size
        self._in_flight: dict[UUID, ClaimedAttempt] = {}
        self._finished: SimpleQueue[AttemptResult] = SimpleQueue()
        self._postponed: list[AttemptResult] = []
        self._awake = threading.Event()
        self._stopping = threading.Event()
        self._renewed = self._cleaned_up = 0.0

    def run(self) -> None:
        """Send until `stop`; work that the database refuses is tried again."""
        arguments = (self.environment, self._awake.set, self._stopping)
        threading.Thread(target=wakeup.listen, args=arguments, daemon=True).start()
        with environments.use(self.environment):
            while not self._stopping.is_set():
                began = time.monotonic()
                self._try_database(self._turn)
                self._wait(settings.WEBHOOK_POLL_SECONDS)
                time.sleep(max(0.0, began + GATHER_SECONDS - time.monotonic()))
            self._close(CLOSING_SECONDS)
            connections[self.environment.alias].close()

    def run_until_idle(self, *, seconds: float) -> int:
        """Send what is due, beginning nothing after `seconds`; returns the number of attempts made."""
        until = time.monotonic() + seconds
        with environments.use(self.environment):
            made = self._turn()
            while self._in_flight and time.monotonic() < until:
                self._wait(settings.WEBHOOK_POLL_SECONDS)
                made += self._turn()
            self._close(settings.WEBHOOK_TIMEOUT_SECONDS + CLOSING_SECONDS)
        return made

    def stop(self) -> None:
        """Make `run` claim nothing more and return, at most `CLOSING_SECONDS` later."""
        self._stopping.set()
        self._awake.set()

    def _turn(self) -> int:
        self._record()
        self._renew()
        if time.monotonic() - self._cleaned_up >= CLEAN_UP_SECONDS:
            claims.clean_up(now=now())
            self._cleaned_up = time.monotonic()
        return self._begin()

    def _wait(self, seconds: float) -> None:
        self._awake.wait(seconds)
        self._awake.clear()

    def _try_database(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Error as error:
            # Whether the transaction took place or not, the next turn goes by leases and statuses.
            log.warning("%s: the database refused: %s", self.environment.value, type(error).__name__)
            connections[self.environment.alias].close()
            self._stopping.wait(DATABASE_RETRY_SECONDS)

    def _record(self) -> None:
        while not self._finished.empty():
            self._postponed.append(self._finished.get())
        if self._postponed:
            ended = self._postponed
            self._postponed = self._write(ended)
            kept = {result.attempt.lease for result in self._postponed}
            for lease in {result.attempt.lease for result in ended} - kept:
                self._in_flight.pop(lease, None)

    def _write(self, ended: list[AttemptResult]) -> list[AttemptResult]:
        """Call `results.record`; a result that the database refuses holds up no other."""
        try:
            return results.record(ended, now=now())
        except (DataError, IntegrityError):
            if len(ended) == 1:
                # Its lease runs out, and the attempt is repeated.
                log.exception("the result of delivery %s was refused", ended[0].attempt.delivery_id)
                return []
            return [postponed for result in ended for postponed in self._write([result])]

    def _renew(self) -> None:
        if time.monotonic() - self._renewed >= RENEW_SECONDS:
            claims.lease(self._in_flight.values(), until=now() + claims.LEASE)
            self._renewed = time.monotonic()

    def _begin(self) -> int:
        """Claim what is due and begin to send it; returns the number of attempts begun."""
        # Young attempts get half of the threads, so that endpoints that begin to hang together do not hold
        # all; a quarter are for first attempts to quick endpoints.
        moment = now()
        free = self._size - len(self._in_flight)
        young = sum(attempt.started_at > moment - claims.YOUNG for attempt in self._in_flight.values())
        limit = min(free, self._size // 2 - young)
        if limit <= 0:
            return 0
        claimed = claims.claim(limit=limit, unproven=max(0, free - self._size // 4), now=moment)
        for attempt in claimed:
            self._in_flight[attempt.lease] = attempt
            threading.Thread(target=self._send, args=(attempt,), name="webhooks-send", daemon=True).start()
        if len(claimed) == limit:
            self._awake.set()
        return len(claimed)

    def _send(self, attempt: ClaimedAttempt) -> None:
        with environments.use(self.environment):
            try:
                outcome = send(attempt)
            except Exception:
                # Whatever it is must be recorded: the attempt would stay in flight for ever.
                log.exception("delivery %s could not be sent", attempt.delivery_id)
                outcome = Outcome(timedelta(), error=DEFECT)
        self._finished.put(AttemptResult(attempt, outcome, now()))
        self._awake.set()

    def _close(self, seconds: float) -> None:
        """Record what ends within `seconds`, and leave the rest to other senders at once."""
        until = time.monotonic() + seconds
        while self._in_flight and time.monotonic() < until:
            self._try_database(self._record)
            self._try_database(self._renew)
            self._wait(0.05)
        self._try_database(lambda: claims.lease(self._in_flight.values(), until=now()))
