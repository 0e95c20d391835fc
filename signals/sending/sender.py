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
from compliance.outbound.http_client import DEFECT, Outcome
from compliance.outbound.loop import SendingLoop
from compliance.stores import wakeups
from signals.feed import following
from signals.models import Signal
from signals.sending import claims
from signals.sending.pushing import ClaimedStream, PushResult, push
from webhooks.models import Pace

log = logging.getLogger(__name__)

FORGET_SECONDS: Final = 3600.0


class SignalSender(SendingLoop[ClaimedStream, PushResult]):
    """Push what waits in `environment`, to at most `size` receivers at a time."""

    name, gather_seconds, channels = "signals", 0.005, (wakeups.SIGNALS, wakeups.SEALED)
    renew_seconds = claims.LEASE.total_seconds() / 4
    recoverable = (ServiceError, TreeDamaged)

    def __init__(self, environment: Environment, *, size: int) -> None:
        super().__init__(environment, size=size)
        self._forgotten = 0.0

    @property
    def poll_seconds(self) -> float:
        return settings.SIGNALS_POLL_SECONDS

    def upkeep(self) -> None:
        if following.follow(now=self.now()) == following.ROUND:
            self.awake.set()
        if time.monotonic() - self._forgotten >= FORGET_SECONDS:
            Signal.objects.filter(refused_at__lt=self.now() - claims.REFUSED_KEPT).delete()
            self._forgotten = time.monotonic()

    def take(self) -> Sequence[ClaimedStream]:
        room = claims.Room(self.size, [claim.row for claim in self.in_flight.values()])
        return claims.claim(room=room, now=self.now())

    def work(self, claim: ClaimedStream) -> None:
        """Push a stream's signals in their order, and end at the first failure or slow answer."""
        for position, signal in enumerate(claim.signals, start=1):
            try:
                outcome = push(claim, signal)
            except Exception:
                # Whatever it is must be recorded: the stream would stay claimed for ever.
                log.exception("a signal of stream %s could not be sent", claim.row.id)
                outcome = Outcome(timedelta(), error=DEFECT)
            metrics.PUSHES.labels(metrics.environment(), "ok" if outcome.succeeded else "error").inc()
            is_last = position == len(claim.signals) or not outcome.succeeded or self.stopping.is_set()
            is_over = is_last or Pace.of(outcome.duration) is Pace.SLOW
            self.finish(PushResult(claim, signal, outcome, self.now(), is_over))
            if is_over:
                return

    def record(self, ended: list[PushResult]) -> tuple[list[PushResult], Collection[UUID]]:
        claims.record(ended, now=self.now())
        return [], {one.stream.lease for one in ended if one.is_last}

    def renew(self, held: Collection[ClaimedStream]) -> None:
        claims.renew([stream.lease for stream in held], now=self.now())

    def release(self, held: Collection[ClaimedStream]) -> None:
        claims.release([stream.lease for stream in held])
