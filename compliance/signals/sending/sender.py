"""Follow the audit log and push the signals of one environment, those of each stream in their order."""

import logging
import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings

from auditlog.errors import TreeDamaged
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.observing import metrics
from compliance.signals import wakeup
from compliance.signals.feed import following
from compliance.signals.sending import claims, results
from compliance.signals.sending.pushing import ClaimedStream, PushResult, push
from webhooks.sending.http_client import DEFECT, Outcome
from webhooks.sending.loop import SendingLoop

log = logging.getLogger(__name__)

FORGET_SECONDS: Final = 3600.0


class SignalSender(SendingLoop[ClaimedStream, PushResult]):
    """Push what waits in `environment`, to at most `size` receivers at a time."""

    name, gather_seconds = "signals", 0.005
    renew_seconds = claims.LEASE.total_seconds() / 4
    recoverable = (ServiceError, TreeDamaged)

    def __init__(self, environment: Environment, *, size: int) -> None:
        super().__init__(environment, size=size)
        self._forgotten = 0.0

    @property
    def poll_seconds(self) -> float:
        return settings.SIGNALS_POLL_SECONDS

    @property
    def timeout_seconds(self) -> float:
        return settings.SIGNALS_TIMEOUT_SECONDS

    def listen(self) -> None:
        wakeup.listen(self.environment, self.awake.set, self.stopping)

    def upkeep(self) -> None:
        if following.follow(now=self.now()) == following.ROUND:
            self.awake.set()
        if time.monotonic() - self._forgotten >= FORGET_SECONDS:
            results.forget_refused(now=self.now())
            self._forgotten = time.monotonic()

    def take(self) -> Sequence[ClaimedStream]:
        failing = sum(stream.is_failing for stream in self.in_flight.values())
        free = self.size - len(self.in_flight)
        if free <= 0:
            return ()
        return claims.claim(limit=free, failing=self.size // 2 - failing, now=self.now())

    def work(self, claim: ClaimedStream) -> None:
        """Push a stream's signals in their order, and end at the first failure."""
        for position, signal in enumerate(claim.signals, start=1):
            try:
                outcome = push(claim, signal)
            except Exception:
                # Whatever it is must be recorded: the stream would stay claimed for ever.
                log.exception("a signal of stream %s could not be sent", claim.id)
                outcome = Outcome(timedelta(), error=DEFECT)
            metrics.PUSHES.labels(metrics.environment(), "ok" if outcome.succeeded else "error").inc()
            is_over = position == len(claim.signals) or not outcome.succeeded or self.stopping.is_set()
            self.finish(PushResult(claim, signal, outcome, self.now(), is_over))
            if is_over:
                return

    def record(self, ended: list[PushResult]) -> tuple[list[PushResult], Collection[UUID]]:
        results.record(ended, now=self.now())
        return [], {one.stream.lease for one in ended if one.is_last}

    def renew(self, held: Collection[ClaimedStream]) -> None:
        claims.renew(held, now=self.now())

    def release(self, held: Collection[ClaimedStream]) -> None:
        claims.release([stream.lease for stream in held])
