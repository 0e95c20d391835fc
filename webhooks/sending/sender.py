"""Send the webhooks of one environment."""

import logging
import time
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from uuid import UUID

from django.conf import settings
from django.db import DataError, IntegrityError

from compliance.core.environments import Environment
from compliance.observing import correlation, metrics
from compliance.outbound.http_client import DEFECT, Outcome
from compliance.outbound.loop import SendingLoop
from compliance.stores import wakeups
from webhooks.models import Pace
from webhooks.sending import claims, results
from webhooks.sending.attempts import AttemptResult, ClaimedAttempt, send

log = logging.getLogger(__name__)

CLEAN_UP_SECONDS = 1.0


class Sender(SendingLoop[ClaimedAttempt, AttemptResult]):
    """Send what is due in `environment`, at most `size` attempts at a time."""

    name, gather_seconds, channels = "webhooks", 0.015, (wakeups.WEBHOOKS,)
    renew_seconds = claims.LEASE.total_seconds() / 4

    def __init__(self, environment: Environment, *, size: int) -> None:
        super().__init__(environment, size=size)
        self._cleaned_up = 0.0
        self._retries: list[datetime] = []  # a heap: when its own failed deliveries are due again

    @property
    def poll_seconds(self) -> float:
        seconds = settings.WEBHOOK_POLL_SECONDS
        if self._retries:
            seconds = min(seconds, (self._retries[0] - self.now()).total_seconds())
        return max(0.0, seconds)

    def upkeep(self) -> None:
        if time.monotonic() - self._cleaned_up >= CLEAN_UP_SECONDS:
            claims.clean_up(now=self.now())
            self._cleaned_up = time.monotonic()

    def take(self) -> Sequence[ClaimedAttempt]:
        # Young attempts get half of the threads, so that endpoints that begin to hang together do not hold
        # all; a quarter are for first attempts to quick endpoints.
        moment = self.now()
        while self._retries and self._retries[0] <= moment:
            heappop(self._retries)
        free = self.size - len(self.in_flight)
        young = sum(attempt.started_at > moment - claims.YOUNG for attempt in self.in_flight.values())
        limit = min(free, self.size // 2 - young)
        if limit <= 0:
            return ()
        unproven = max(0, free - self.size // 4)
        claimed = claims.claim(limit=limit, unproven=unproven, now=moment)
        if claimed is None or len(claimed) == limit:
            self.awake.set()
        return claimed or ()

    def work(self, claim: ClaimedAttempt) -> None:
        with correlation.use(claim.correlation):
            try:
                outcome = send(claim)
            except Exception:
                # Whatever it is must be recorded: the attempt would stay in flight for ever.
                log.exception("delivery %s could not be sent", claim.delivery_id)
                outcome = Outcome(timedelta(), error=DEFECT)
        seconds, name = outcome.duration.total_seconds(), metrics.environment()
        metrics.ATTEMPTS.labels(name, "succeeded" if outcome.succeeded else "failed").inc()
        metrics.ATTEMPT_SECONDS.labels(name).observe(seconds)
        if claim.number == 1 and not claim.had_failures and claim.pace is not Pace.SLOW:
            # A tenant's bad endpoint waits for its slots, which tells nothing of the service.
            delay = (claim.started_at - claim.created_at).total_seconds()
            metrics.DELIVERY_DELAY_SECONDS.labels(name, claim.event).observe(max(0.0, delay))
        self.finish(AttemptResult(claim, outcome, self.now()))

    def record(self, ended: list[AttemptResult]) -> tuple[list[AttemptResult], Collection[UUID]]:
        postponed = _recorded(ended, self.now())
        kept = {result.attempt.lease for result in postponed}
        for result in ended:
            if result.attempt.lease not in kept and (retry_at := result.retry_at) is not None:
                heappush(self._retries, retry_at)
        return postponed, {result.attempt.lease for result in ended} - kept

    def renew(self, held: Collection[ClaimedAttempt]) -> None:
        claims.lease(held, until=self.now() + claims.LEASE)

    def release(self, held: Collection[ClaimedAttempt]) -> None:
        claims.lease(held, until=self.now())


def _recorded(ended: list[AttemptResult], now: datetime) -> list[AttemptResult]:
    """Record results, and return those to record later; one that the database refuses holds up no other."""
    try:
        return results.record(ended, now=now)
    except (DataError, IntegrityError):
        if len(ended) == 1:
            # Its lease runs out, and the attempt is repeated.
            log.exception("the result of delivery %s was refused", ended[0].attempt.delivery_id)
            return []
        return [postponed for result in ended for postponed in _recorded([result], now)]
