"""Record the results of attempts, many in one transaction; a result counts only while its lease holds."""

import logging
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from compliance.core import environments
from compliance.observing import metrics
from compliance.stores import sql
from webhooks import services
from webhooks.models import DeliveryStatus, Pace, Webhook
from webhooks.sending.attempts import AttemptResult

log = logging.getLogger(__name__)

_RESULTS = """
SELECT * FROM unnest(
    %s::uuid[], %s::uuid[], %s::uuid[], %s::smallint[], %s::text[], %s::timestamptz[], %s::timestamptz[],
    %s::integer[], %s::smallint[], %s::text[], %s::text[]
) AS result (tenant_id, id, lease, number, status, retry_at, completed_at, duration_ms, code, body, error)
"""
_RECORD = f"""
WITH result AS ({_RESULTS}), recorded AS (
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
"""  # noqa: S608  (text of ours)
# On Citus a statement writes one table, with rows that are joined by their tenant.
_RECORD_DIVIDED = f"""
UPDATE webhooks_delivery delivery
SET status = result.status, next_attempt_at = result.retry_at, completed_at = result.completed_at,
    lease = NULL, leased_until = NULL
FROM ({_RESULTS}) result
WHERE delivery.tenant_id = result.tenant_id AND delivery.id = result.id
    AND delivery.lease = result.lease AND delivery.status = 'in_flight'
RETURNING delivery.id
"""  # noqa: S608
_CLOSE_DIVIDED = f"""
UPDATE webhooks_attempt attempt
SET duration_ms = result.duration_ms, response_status = result.code, response_body = result.body,
    error = result.error
FROM ({_RESULTS}) result
WHERE attempt.tenant_id = result.tenant_id
    AND attempt.delivery_id = result.id AND attempt.number = result.number
"""  # noqa: S608


def record(results: Sequence[AttemptResult], *, now: datetime) -> list[AttemptResult]:
    """Record results and the health of their webhooks.

    Returns those not recorded because another transaction holds their webhook's lock; pass them again later.
    """
    with environments.atomic():
        # Webhooks are locked before deliveries, as everywhere, and only those whose health changes.
        changed = {
            (result.attempt.tenant_id, result.attempt.webhook_id)
            for result in results
            if result.changes_health
        }
        webhooks = list(_locked(changed))
        busy = {webhook_id for _, webhook_id in changed} - {webhook.id for webhook in webhooks}
        postponed = [result for result in results if result.attempt.webhook_id in busy]
        ready = [result for result in results if result.attempt.webhook_id not in busy]
        recorded = _write(ready)
        environments.on_commit(lambda: _count(recorded), robust=True)
        for webhook in webhooks:
            _update_health(webhook, [one for one in recorded if one.attempt.webhook_id == webhook.id], now)
    if len(recorded) < len(ready):
        log.warning("%d attempts ended after their lease", len(ready) - len(recorded))
    return postponed


def _locked(wanted: Collection[tuple[UUID, UUID]]) -> Iterator[Webhook]:
    """Lock webhooks, named with their tenants, but for those that others hold; on Citus tenant by tenant."""
    ids = [webhook_id for _, webhook_id in wanted]
    rows = Webhook.objects.filter(id__in=ids).locked(skip=True).order_by("id")
    if not settings.DATABASE_CITUS:
        yield from rows
        return
    for tenant_id in sorted({tenant_id for tenant_id, _ in wanted}):
        yield from rows.filter(tenant_id=tenant_id)


def _count(recorded: Sequence[AttemptResult]) -> None:
    """Count the deliveries that ended."""
    for result in recorded:
        if result.status != DeliveryStatus.PENDING:
            metrics.DELIVERIES.labels(metrics.environment(), result.status.value).inc()


def _write(results: Sequence[AttemptResult]) -> list[AttemptResult]:
    """Write the results whose lease still holds; returns those, in the order in which they ended."""
    if not results:
        return []
    statement = _RECORD_DIVIDED if settings.DATABASE_CITUS else _RECORD
    found = {row[0] for row in sql.query(statement, _columns(results))}
    recorded = [result for result in results if result.attempt.delivery_id in found]
    if recorded and settings.DATABASE_CITUS:
        sql.execute(_CLOSE_DIVIDED, _columns(recorded))
    return sorted(recorded, key=lambda result: result.ended_at)


def _columns(results: Sequence[AttemptResult]) -> list[list[object]]:
    return [list(column) for column in zip(*map(_row, results), strict=True)]


def _row(result: AttemptResult) -> tuple[object, ...]:
    """Return the values of one result in the order of the arrays in `_RESULTS`."""
    attempt, outcome, retry_at = result.attempt, result.outcome, result.retry_at
    completed_at = None if retry_at else result.ended_at
    milliseconds = round(outcome.duration / timedelta(milliseconds=1))
    claim = attempt.tenant_id, attempt.delivery_id, attempt.lease, attempt.number
    state = result.status.value, retry_at, completed_at
    return *claim, *state, milliseconds, outcome.response_status, outcome.response_body, outcome.error


def _update_health(webhook: Webhook, results: Sequence[AttemptResult], now: datetime) -> None:
    """Count the failures of a locked webhook, and switch it off after too many failed deliveries."""
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
    if webhook.is_open and _has_failed_enough(webhook, now):
        services.disable(webhook=webhook, now=now)


def _has_failed_enough(webhook: Webhook, now: datetime) -> bool:
    if webhook.failing_since is None or webhook.failed_deliveries < settings.WEBHOOK_DISABLE_AFTER_DELIVERIES:
        return False
    return now - webhook.failing_since >= timedelta(seconds=settings.WEBHOOK_DISABLE_AFTER_SECONDS)
