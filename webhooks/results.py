"""Writing down what came of attempts, many at a time; a result counts only while its lease still holds."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from compliance import environments, sql
from webhooks import services
from webhooks.delivering import Report
from webhooks.models import DeliveryStatus, Pace, Webhook

log = logging.getLogger(__name__)

_SETTLE = """
WITH came AS (
    SELECT * FROM unnest(
        %s::uuid[], %s::uuid[], %s::smallint[], %s::text[], %s::timestamptz[], %s::timestamptz[],
        %s::integer[], %s::smallint[], %s::text[], %s::text[]
    ) AS came (id, lease, number, status, retry_at, completed_at, duration_ms, code, body, error)
), settled AS (
    UPDATE webhooks_delivery delivery
    SET status = came.status, next_attempt_at = came.retry_at, completed_at = came.completed_at,
        lease = NULL, leased_until = NULL
    FROM came
    WHERE delivery.id = came.id AND delivery.lease = came.lease AND delivery.status = 'in_flight'
    RETURNING delivery.id
), closed AS (
    UPDATE webhooks_attempt attempt
    SET duration_ms = came.duration_ms, response_status = came.code, response_body = came.body,
        error = came.error
    FROM came JOIN settled ON settled.id = came.id
    WHERE attempt.delivery_id = came.id AND attempt.number = came.number
)
SELECT id FROM settled
"""


def settle(reports: Sequence[Report], *, now: datetime) -> list[Report]:
    """Write down what came of attempts; returns those whose webhook is locked now, to be brought again.

    Webhooks are locked before deliveries, as everywhere, and only those whose health has changed.
    """
    with environments.atomic():
        webhooks, waiting = _lock_changed(reports)
        held_up = [report for report in reports if report.parcel.webhook_id in waiting]
        ready = [report for report in reports if report.parcel.webhook_id not in waiting]
        settled = _write(ready)
        for webhook in webhooks:
            own = (report for report in settled if report.parcel.webhook_id == webhook.id)
            _note_health(webhook, own, now)
    lost = len(ready) - len(settled)
    if lost:
        log.warning("%d attempts ended after their lease", lost)
    return held_up


def status_of(report: Report) -> tuple[DeliveryStatus, datetime | None]:
    """The delivery's next state, and when it is tried again."""
    if report.outcome.succeeded:
        return DeliveryStatus.SUCCEEDED, None
    delay = report.parcel.retry_delay
    if delay is None:
        return DeliveryStatus.FAILED, None
    return DeliveryStatus.PENDING, report.ended_at + delay


def _lock_changed(reports: Iterable[Report]) -> tuple[list[Webhook], set[UUID]]:
    """The webhooks whose health changes, locked; and the ids of those that others hold."""
    changed = {
        report.parcel.webhook_id
        for report in reports
        if report.parcel.had_failures
        or not report.outcome.succeeded
        or Pace.of(report.outcome.duration) != report.parcel.pace
    }
    if not changed:
        return [], set()
    locked = list(Webhook.objects.filter(id__in=changed).locked_or_skipped().order_by("id"))
    return locked, changed - {webhook.id for webhook in locked}


def _write(reports: Sequence[Report]) -> list[Report]:
    """Those that still held their lease, written down, in the order in which they ended."""
    if not reports:
        return []
    columns: dict[str, list[object]] = defaultdict(list)
    for report in reports:
        parcel, outcome = report.parcel, report.outcome
        status, retry_at = status_of(report)
        columns["id"].append(parcel.delivery_id)
        columns["lease"].append(parcel.lease)
        columns["number"].append(parcel.number)
        columns["status"].append(status.value)
        columns["retry_at"].append(retry_at)
        columns["completed_at"].append(None if retry_at else report.ended_at)
        columns["duration_ms"].append(round(outcome.duration / timedelta(milliseconds=1)))
        columns["code"].append(outcome.response_status)
        columns["body"].append(outcome.response_body)
        columns["error"].append(outcome.error)
    found = {row[0] for row in sql.query(_SETTLE, list(columns.values()))}
    settled = [report for report in reports if report.parcel.delivery_id in found]
    return sorted(settled, key=lambda report: report.ended_at)


def _note_health(webhook: Webhook, reports: Iterable[Report], now: datetime) -> None:
    """What these attempts say of the locked webhook; it is switched off after too many failed deliveries."""
    last: Report | None = None
    for last in reports:
        if last.outcome.succeeded:
            webhook.consecutive_failures = webhook.failed_deliveries = 0
            webhook.failing_since = None
            continue
        webhook.consecutive_failures += 1
        webhook.failing_since = webhook.failing_since or last.ended_at
        if status_of(last)[0] == DeliveryStatus.FAILED:
            webhook.failed_deliveries += 1
    if last is None:
        return
    webhook.pace = Pace.of(last.outcome.duration)
    webhook.save(update_fields=["consecutive_failures", "failed_deliveries", "failing_since", "pace"])
    if webhook.is_open and _has_failed_enough(webhook, now):
        services.disable(webhook=webhook, now=now)


def _has_failed_enough(webhook: Webhook, now: datetime) -> bool:
    if webhook.failing_since is None or webhook.failed_deliveries < settings.WEBHOOK_DISABLE_AFTER_DELIVERIES:
        return False
    return now - webhook.failing_since >= timedelta(seconds=settings.WEBHOOK_DISABLE_AFTER_SECONDS)
