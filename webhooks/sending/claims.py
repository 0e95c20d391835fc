"""Claim deliveries from the queue, which is the database.

A claim records the attempt and a short lease before anything is sent. The sender renews the lease; once it
runs out the delivery can be claimed again: it may be sent twice, but is never lost.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from compliance.core import environments
from compliance.core.encryption import decrypt
from compliance.observing import correlation
from compliance.stores import sql
from webhooks.models import FAILING_AFTER, MAX_ATTEMPTS, MAX_INTERRUPTIONS, SLOW_AFTER, Format, Pace
from webhooks.sending.attempts import ClaimedAttempt

LEASE = timedelta(seconds=10)
# An endpoint that has kept a request waiting for longer gets no other until it answers.
YOUNG = timedelta(seconds=0.5)
INTERRUPTED = "Interrupted: the sender stopped before an answer came"
CLEAN_UP_LIMIT = 1000
_LOCK = 0x77656268  # "webh": the key of the advisory lock of a claim

# The lock, held for milliseconds, makes the caps exact over any number of senders; no sender waits for it.
# Should its holder hang, the server ends it. Compiling the query would cost more than running it.
_OPEN = """
SELECT set_config('idle_in_transaction_session_timeout', '5000', true), set_config('jit', 'off', true),
       pg_try_advisory_xact_lock(%s)
"""
# `endpoint` walks the partial index from one webhook to the next, so the cost grows with the endpoints that
# wait, not with their backlogs. Each endpoint offers its oldest due deliveries, at most as many as it has
# free slots. Every endpoint's first comes before any endpoint's second (`turn`): "oldest first" would claim
# nothing but the backlog of dead endpoints. The lateral join keeps the planner from scanning all attempts.
_CLAIM = """
WITH RECURSIVE endpoint AS (
    (SELECT webhook_id FROM webhooks_delivery WHERE status = 'pending' ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT later.webhook_id FROM webhooks_delivery later
            WHERE later.status = 'pending' AND later.webhook_id > endpoint.webhook_id
            ORDER BY later.webhook_id LIMIT 1)
    FROM endpoint WHERE endpoint.webhook_id IS NOT NULL
), in_flight AS (
    SELECT delivery.webhook_id, count(*) AS number, min(attempt.started_at) AS oldest
    FROM webhooks_delivery delivery CROSS JOIN LATERAL (
        SELECT started_at FROM webhooks_attempt
        WHERE delivery_id = delivery.id AND number = delivery.attempt_count LIMIT 1
    ) attempt
    WHERE delivery.status = 'in_flight' AND delivery.leased_until > %(now)s GROUP BY delivery.webhook_id
), slots AS (
    SELECT webhook.id AS webhook_id, webhook.pace, COALESCE(in_flight.number, 0) AS used,
           CASE WHEN in_flight.oldest < %(young_since)s THEN 0
                WHEN webhook.pace <> 'quick' THEN 1
                WHEN webhook.consecutive_failures >= %(failing_after)s THEN GREATEST(1, %(slots)s / 4)
                ELSE %(slots)s END - COALESCE(in_flight.number, 0) AS free
    FROM endpoint JOIN webhooks_webhook webhook ON webhook.id = endpoint.webhook_id
    LEFT JOIN in_flight ON in_flight.webhook_id = webhook.id
    WHERE webhook.active AND webhook.deleted_at IS NULL
), slow_slots AS (
    SELECT %(slow_slots)s - COALESCE(sum(in_flight.number), 0) AS free
    FROM in_flight JOIN webhooks_webhook webhook ON webhook.id = in_flight.webhook_id
    WHERE webhook.pace = 'slow' OR in_flight.oldest <= %(slow_since)s
), due AS (
    SELECT slots.pace, found.id, found.next_attempt_at,
           slots.pace <> 'quick' OR found.is_retry AS is_unproven,
           slots.used + row_number() OVER (
               PARTITION BY slots.webhook_id ORDER BY found.next_attempt_at, found.id) AS turn
    FROM slots CROSS JOIN LATERAL (
        SELECT delivery.id, delivery.next_attempt_at, delivery.attempt_count > 0 AS is_retry
        FROM webhooks_delivery delivery
        WHERE delivery.webhook_id = slots.webhook_id AND delivery.status = 'pending'
          AND delivery.next_attempt_at <= %(now)s
        ORDER BY delivery.next_attempt_at, delivery.id
        LIMIT GREATEST(slots.free, 0)
    ) found
), ranked AS (
    SELECT due.*, row_number() OVER (PARTITION BY pace ORDER BY turn, next_attempt_at, id) AS pace_rank
    FROM due
), admitted AS (
    SELECT ranked.*,
           row_number() OVER (PARTITION BY is_unproven ORDER BY turn, next_attempt_at, id) AS unproven_rank
    FROM ranked CROSS JOIN slow_slots WHERE pace <> 'slow' OR pace_rank <= slow_slots.free
), chosen AS (
    SELECT id FROM admitted WHERE NOT is_unproven OR unproven_rank <= %(unproven)s
    ORDER BY turn, next_attempt_at, id LIMIT %(limit)s
), locked AS (
    SELECT delivery.id FROM webhooks_delivery delivery JOIN chosen ON chosen.id = delivery.id
    WHERE delivery.status = 'pending'
    FOR NO KEY UPDATE OF delivery SKIP LOCKED
), claimed AS (
    UPDATE webhooks_delivery delivery
    SET status = 'in_flight', lease = gen_random_uuid(), leased_until = %(leased_until)s,
        next_attempt_at = NULL, attempt_count = attempt_count + 1
    FROM locked WHERE delivery.id = locked.id
    RETURNING delivery.*
), started AS (
    INSERT INTO webhooks_attempt (id, tenant_id, delivery_id, number, url, started_at)
    SELECT gen_random_uuid(), claimed.tenant_id, claimed.id, claimed.attempt_count, webhook.url, %(now)s
    FROM claimed JOIN webhooks_webhook webhook ON webhook.id = claimed.webhook_id
)
SELECT claimed.tenant_id, claimed.id, claimed.webhook_id, claimed.message_id, claimed.lease,
       claimed.attempt_count, claimed.max_attempts, webhook.url, message.request_id,
       message.traceparent, message.body,
       webhook.pace, webhook.consecutive_failures > 0, message.event, claimed.created_at,
       webhook.format,
       webhook.secret, CASE WHEN webhook.previous_secret_until > %(now)s THEN webhook.previous_secret END
FROM claimed JOIN webhooks_webhook webhook ON webhook.id = claimed.webhook_id
JOIN webhooks_message message ON message.id = claimed.message_id
ORDER BY claimed.created_at, claimed.id
"""
_RENEW = """
UPDATE webhooks_delivery SET leased_until = %s
WHERE id = ANY(%s) AND lease = ANY(%s) AND status = 'in_flight'
"""
# The unfinished attempt is closed and another granted: a crash is not the receiver's failure.
_RECLAIM = """
WITH lost AS (
    SELECT id FROM webhooks_delivery WHERE status = 'in_flight' AND leased_until <= %(now)s
    ORDER BY leased_until, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
), closed AS (
    UPDATE webhooks_attempt attempt SET error = %(error)s
    FROM webhooks_delivery delivery JOIN lost ON lost.id = delivery.id
    WHERE attempt.delivery_id = delivery.id AND attempt.number = delivery.attempt_count
      AND attempt.duration_ms IS NULL
)
UPDATE webhooks_delivery delivery
SET status = CASE WHEN attempt_count < %(most)s THEN 'pending' ELSE 'failed' END,
    max_attempts = LEAST(max_attempts + 1, %(most)s),
    next_attempt_at = CASE WHEN attempt_count < %(most)s THEN %(now)s END,
    completed_at = CASE WHEN attempt_count < %(most)s THEN NULL ELSE %(now)s END,
    lease = NULL, leased_until = NULL
FROM lost WHERE delivery.id = lost.id
"""
_CANCEL_UNWANTED = """
UPDATE webhooks_delivery SET status = 'cancelled', next_attempt_at = NULL, completed_at = %(now)s
WHERE id IN (
    SELECT delivery.id FROM webhooks_delivery delivery
    JOIN webhooks_webhook webhook ON webhook.id = delivery.webhook_id
    WHERE (NOT webhook.active OR webhook.deleted_at IS NOT NULL) AND delivery.status = 'pending'
    LIMIT %(limit)s FOR NO KEY UPDATE OF delivery SKIP LOCKED
)
"""


def claim(*, limit: int, unproven: int, now: datetime) -> list[ClaimedAttempt] | None:
    """Claim at most `limit` due deliveries, which must be sent; fair to endpoints and within their slots.

    At most `unproven` of them are retries, or go to endpoints not known to be quick. None: another sender is
    claiming at this moment.
    """
    values = {
        "now": now,
        "leased_until": now + LEASE,
        "young_since": now - YOUNG,
        "slow_since": now - SLOW_AFTER,
        "limit": limit,
        "unproven": unproven,
        "slots": settings.WEBHOOK_SLOTS_PER_ENDPOINT,
        "slow_slots": settings.WEBHOOK_SLOW_SLOTS,
        "failing_after": FAILING_AFTER,
    }
    with environments.atomic():
        ((_, _, has_turn),) = sql.query(_OPEN, [_LOCK])
        rows = sql.query(_CLAIM, values) if has_turn else None
    return None if rows is None else [_claimed(row, now) for row in rows]


def lease(attempts: Collection[ClaimedAttempt], *, until: datetime) -> None:
    """Set the end of the leases of attempts that are still being sent; now, to release them."""
    if attempts:
        ids, leases = zip(*((attempt.delivery_id, attempt.lease) for attempt in attempts), strict=True)
        sql.execute(_RENEW, [until, list(ids), list(leases)])


def clean_up(*, now: datetime) -> None:
    """Put deliveries of dead senders back, and cancel those that wait for webhooks out of use."""
    most = MAX_ATTEMPTS + MAX_INTERRUPTIONS
    values = {"now": now, "limit": CLEAN_UP_LIMIT, "error": INTERRUPTED, "most": most}
    with environments.atomic():
        sql.execute(_RECLAIM, values)
        sql.execute(_CANCEL_UNWANTED, values)


def _claimed(row: Any, now: datetime) -> ClaimedAttempt:
    *plain, request_id, traceparent, body, pace, had_failures, event, created_at, form, secret, previous = row
    secrets = tuple(decrypt(stored).decode() for stored in (secret, previous) if stored)
    ids = correlation.resume(request_id, traceparent) if request_id else None
    values = (
        *plain,
        bytes(body),
        Pace(pace),
        had_failures,
        now,
        event,
        created_at,
        Format(form),
        secrets,
        ids,
    )
    return ClaimedAttempt(*values)
