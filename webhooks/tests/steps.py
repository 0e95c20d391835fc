"""The sender's steps one by one, at moments that a test chooses."""

from datetime import datetime

from compliance.outbound.http_client import Outcome
from webhooks.models import Attempt, Delivery
from webhooks.sending import claims, results
from webhooks.sending.attempts import AttemptResult, ClaimedAttempt, send


def claim(at: datetime, total: int = 100) -> list[ClaimedAttempt]:
    """Claim what may be sent at this moment, including the deliveries of senders that died."""
    claims.clean_up(now=at)
    found = claims.claim(limit=total, unproven=total, now=at)
    assert found is not None
    return found


def claimed(delivery: Delivery, at: datetime) -> ClaimedAttempt:
    """Claim one attempt, which must be of `delivery`."""
    (attempt,) = claim(at, total=1)
    assert attempt.delivery_id == delivery.id
    return attempt


def settle(attempt: ClaimedAttempt, outcome: Outcome, ended_at: datetime) -> bool:
    """Record a result; returns whether it counted."""
    stored = Attempt.objects.filter(delivery_id=attempt.delivery_id, number=attempt.number)
    was_open = stored.filter(duration_ms=None).exists()
    assert results.record([AttemptResult(attempt, outcome, ended_at)], now=ended_at) == []
    return was_open and not stored.filter(duration_ms=None).exists()


def deliver(at: datetime) -> list[Outcome]:
    """Claim, send and record, one after the other."""
    outcomes = []
    for attempt in claim(at):
        outcome = send(attempt)
        settle(attempt, outcome, at + outcome.duration)
        outcomes.append(outcome)
    return outcomes
