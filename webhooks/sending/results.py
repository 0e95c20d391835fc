"""Record the results of attempts, many in one transaction; a result counts only while its lease holds."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings

from compliance.core import environments
from compliance.observing import metrics
from compliance.stores import sql
from webhooks import services
from webhooks.models import DeliveryStatus, Pace, Webhook
from webhooks.sending.attempts import AttemptResult

log = logging.getLogger(__name__)

_RECORD = """
WITH result AS (
    SELECT * FROM unnest(
        %s::uuid[], %s::uuid[], %s::smallint[], %s::text[], %s::timestamptz[], %s::timestamptz[],
        %s::integer[], %s::smallint[], %s::text[], %s::text[]
    ) AS result (id, lease, number, status, retry_at, completed_at, duration_ms, code, body, error)
), recorded AS (
    UPDATE webhooks_delivery delivery
    SET status = result.status, next_attempt_at = result.retry_at, completed_at = result.completed_at,
        lease = NULL, leased_until = NULL
    FROM result
    WHERE delivery.id = result.id AND delivery.lease = result.lease AND delivery.status = 'in_flight'
    RETURNING delivery.id
), closed AS (
    UPDATE webhooks_attempt attempt
    SET duration_ms = result.duration_ms, response_status = result.code, response_body = result.body,
        error = result.error
    FROM result JOIN recorded ON recorded.id = result.id
    WHERE attempt.delivery_id = result.id AND attempt.number = result.number
)
SELECT id FROM recorded
"""


def record(results: Sequence[AttemptResult], *, now: datetime) -> list[AttemptResult]:
    """Record results and the health of their webhooks.

    Returns those not recorded because another transaction holds their webhook's lock; pass them again later.
    """
    with environments.atomic():
        # Webhooks are locked before deliveries, as everywhere, and only those whose health changes.
        changed = {
            result.attempt.webhook_id
            for result in results
            if result.attempt.had_failures
            or not result.outcome.succeeded
            or Pace.of(result.outcome.duration) != result.attempt.pace
        }
        webhooks = list(Webhook.objects.filter(id__in=changed).locked(skip=True).order_by("id"))
        busy = changed - {webhook.id for webhook in webhooks}
        postponed = [result for result in results if result.attempt.webhook_id in busy]
        ready = [result for result in results if result.attempt.webhook_id not in busy]
        recorded = _write(ready)
        for status in [result.status for result in recorded if result.status != DeliveryStatus.PENDING]:
            ended = metrics.DELIVERIES.labels(metrics.environment(), status.value)
            environments.on_commit(ended.inc, robust=True)
        for webhook in webhooks:
            _update_health(webhook, [one for one in recorded if one.attempt.webhook_id == webhook.id], now)
    if len(recorded) < len(ready):
        log.warning("%d attempts ended after their lease", len(ready) - len(recorded))
    return postponed


def _write(results: Sequence[AttemptResult]) -> list[AttemptResult]:
    """Write the results whose lease still holds; returns those, in the order in which they ended."""
    if not results:
        return []
    rows = []
    for result in results:
        attempt, outcome, retry_at = result.attempt, result.outcome, result.retry_at
        completed_at = None if retry_at else result.ended_at
        milliseconds = round(outcome.duration / timedelta(milliseconds=1))
        claim = attempt.delivery_id, attempt.lease, attempt.number
        state = result.status.value, retry_at, completed_at
        answer = milliseconds, outcome.response_status, outcome.response_body, outcome.error
        rows.append((*claim, *state, *answer))  # in the order of `_RECORD`'s arrays
    columns = [list(column) for column in zip(*rows, strict=True)]
    found = {row[0] for row in sql.query(_RECORD, columns)}
    recorded = [result for result in results if result.attempt.delivery_id in found]
    return sorted(recorded, key=lambda result: result.ended_at)


def _update_health(webhook: Webhook, results: Sequence[AttemptResult], now: datetime) -> None:
    """Count the failures of a locked webhook, and switch it off after too many, or if it is gone."""
    if not results:
        return
    for result in results:
        if result.outcome.succeeded:
            webhook.consecutive_failures = webhook.failed_deliveries = 0
            webhook.failing_since = None
        else:
            webhook.consecutive_failures += 1
            webhook.failing_since = webhook.failing_since or result.ended_at
            webhook.failed_deliveries += result.status == DeliveryStatus.FAILED
    webhook.pace = Pace.of(results[-1].outcome.duration)
    webhook.save(update_fields=["consecutive_failures", "failed_deliveries", "failing_since", "pace"])
    is_gone = any(result.outcome.is_gone and result.attempt.url == webhook.url for result in results)
    has_failed_enough = (
        webhook.failing_since is not None
        and webhook.failed_deliveries >= settings.WEBHOOK_DISABLE_AFTER_DELIVERIES
        and now - webhook.failing_since >= timedelta(seconds=settings.WEBHOOK_DISABLE_AFTER_SECONDS)
    )
    if webhook.is_open and (is_gone or has_failed_enough):
        services.disable(webhook=webhook, is_gone=is_gone, now=now)
