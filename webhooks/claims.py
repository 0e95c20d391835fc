"""Taking deliveries from the queue, which is the database.

A claim writes "attempt started" and a lease and commits, before anything is sent. A lease is short and its
sender keeps renewing it; one that has run out is taken from it, and the delivery waits to be claimed again:
sent twice perhaps, lost never.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from compliance import environments, sql
from compliance.encryption import decrypt
from webhooks.delivering import Parcel
from webhooks.models import FAILING_AFTER, MAX_ATTEMPTS, MAX_INTERRUPTIONS, Pace, Webhook

LEASE = timedelta(seconds=10)
INTERRUPTED = "Interrupted: the sender stopped before an answer came"
TIDY_LIMIT = 1000
# A number of our own among the database's advisory locks.
_CLAIMS = 7_305_221_001

# One claim at a time makes the caps exact, over any number of senders. Held for milliseconds; should its
# holder hang in the middle, the server ends it. Compiling the query costs more than running it.
_OPEN = """
SELECT set_config('idle_in_transaction_session_timeout', '5000', true), set_config('jit', 'off', true),
       pg_advisory_xact_lock(%s)
"""
# `endpoint` walks the partial index from one webhook to the next, so the cost grows with the endpoints that
# wait, not with what waits for them. Of each come its oldest due deliveries, no more than it has free slots;
# endpoints take turns (`place`), as "oldest first" would hand out nothing but the backlog of the dead.
_TAKE = """
WITH RECURSIVE endpoint AS (
    (SELECT webhook_id FROM webhooks_delivery WHERE status = 'pending' ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT later.webhook_id FROM webhooks_delivery later
            WHERE later.status = 'pending' AND later.webhook_id > endpoint.webhook_id
            ORDER BY later.webhook_id LIMIT 1)
    FROM endpoint WHERE endpoint.webhook_id IS NOT NULL
), flying AS (
    SELECT webhook_id, count(*) AS held FROM webhooks_delivery
    WHERE status = 'in_flight' AND leased_until > %(now)s GROUP BY webhook_id
), slots AS (
    SELECT webhook.id AS webhook_id, webhook.pace, COALESCE(flying.held, 0) AS held,
           CASE WHEN webhook.id = ANY(%(awaited)s::uuid[]) THEN 0
                WHEN webhook.pace <> 'quick' THEN 1
                WHEN webhook.consecutive_failures >= %(failing_after)s THEN GREATEST(1, %(slots)s / 4)
                ELSE %(slots)s END - COALESCE(flying.held, 0) AS free
    FROM endpoint JOIN webhooks_webhook webhook ON webhook.id = endpoint.webhook_id
    LEFT JOIN flying ON flying.webhook_id = webhook.id
    WHERE webhook.active AND webhook.deleted_at IS NULL
), lane AS (
    SELECT %(slow_slots)s - COALESCE(sum(flying.held), 0) AS free
    FROM flying JOIN webhooks_webhook webhook ON webhook.id = flying.webhook_id AND webhook.pace = 'slow'
), due AS (
    SELECT slots.pace, found.*, slots.held + row_number() OVER (
        PARTITION BY slots.webhook_id ORDER BY found.next_attempt_at, found.id) AS place
    FROM slots CROSS JOIN LATERAL (
        SELECT delivery.id, delivery.next_attempt_at, delivery.attempt_count > 0 AS is_retry
        FROM webhooks_delivery delivery
        WHERE delivery.webhook_id = slots.webhook_id AND delivery.status = 'pending'
          AND delivery.next_attempt_at <= %(now)s
        ORDER BY delivery.next_attempt_at, delivery.id
        LIMIT GREATEST(slots.free, 0)
    ) found
), ranked AS (
    SELECT due.*, row_number() OVER (PARTITION BY pace ORDER BY place, next_attempt_at, id) AS pace_place
    FROM due
), admitted AS (
    SELECT ranked.*,
           row_number() OVER (PARTITION BY is_retry ORDER BY place, next_attempt_at, id) AS retry_place
    FROM ranked CROSS JOIN lane
    WHERE pace_place <= CASE pace WHEN 'quick' THEN %(limit)s WHEN 'unknown' THEN %(unproven)s
                                  ELSE LEAST(lane.free, %(unproven)s) END
), chosen AS (
    SELECT id FROM admitted WHERE NOT is_retry OR retry_place <= %(retries)s
    ORDER BY place, next_attempt_at, id
    LIMIT %(limit)s
), locked AS (
    SELECT delivery.id FROM webhooks_delivery delivery JOIN chosen ON chosen.id = delivery.id
    WHERE delivery.status = 'pending'
    FOR NO KEY UPDATE OF delivery SKIP LOCKED
), taken AS (
    UPDATE webhooks_delivery delivery
    SET status = 'in_flight', lease = gen_random_uuid(), leased_until = %(leased_until)s,
        next_attempt_at = NULL, attempt_count = attempt_count + 1
    FROM locked WHERE delivery.id = locked.id
    RETURNING delivery.*
), started AS (
    INSERT INTO webhooks_attempt (id, delivery_id, number, url, started_at)
    SELECT gen_random_uuid(), taken.id, taken.attempt_count, webhook.url, %(now)s
    FROM taken JOIN webhooks_webhook webhook ON webhook.id = taken.webhook_id
)
SELECT taken.id, taken.webhook_id, taken.message_id, taken.lease, taken.attempt_count,
       taken.max_attempts, webhook.url, message.body, webhook.pace, webhook.consecutive_failures,
       webhook.secret, CASE WHEN webhook.previous_secret_until > %(now)s THEN webhook.previous_secret END
FROM taken JOIN webhooks_webhook webhook ON webhook.id = taken.webhook_id
JOIN webhooks_message message ON message.id = taken.message_id
ORDER BY taken.created_at, taken.id
"""
_RENEW = """
UPDATE webhooks_delivery SET leased_until = %s
WHERE id = ANY(%s) AND lease = ANY(%s) AND status = 'in_flight'
"""
# The attempt that nobody finished is closed, and another granted: a crash is not the receiver's failure. But
# what kills its senders must end too.
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
_CANCEL_STRAYS = """
UPDATE webhooks_delivery SET status = 'cancelled', next_attempt_at = NULL, completed_at = %(now)s
WHERE id IN (
    SELECT delivery.id FROM webhooks_delivery delivery
    JOIN webhooks_webhook webhook ON webhook.id = delivery.webhook_id
    WHERE (NOT webhook.active OR webhook.deleted_at IS NOT NULL) AND delivery.status = 'pending'
    LIMIT %(limit)s FOR NO KEY UPDATE OF delivery SKIP LOCKED
)
"""


@dataclass(frozen=True)
class Room:
    """How much a sender can take now: in all, of it to endpoints not known to be quick, of it retries."""

    total: int
    unproven: int
    retries: int

    @classmethod
    def for_any(cls, total: int) -> "Room":
        return cls(total, total, total)


def claim(
    *, room: Room, now: datetime, lease: timedelta = LEASE, awaited: Collection[UUID] = ()
) -> list[Parcel]:
    """Take due deliveries, fair to endpoints and within their slots; what is returned must be sent.

    None to the webhooks in `awaited`, whose answers take their time.
    """
    values: dict[str, Any] = {
        "now": now,
        "leased_until": now + lease,
        "limit": room.total,
        "unproven": room.unproven,
        "retries": room.retries,
        "slots": settings.WEBHOOK_SLOTS_PER_ENDPOINT,
        "slow_slots": settings.WEBHOOK_SLOW_SLOTS,
        "failing_after": FAILING_AFTER,
        "awaited": list(awaited),
    }
    with environments.atomic():
        sql.query(_OPEN, [_CLAIMS])
        rows = sql.query(_TAKE, values)
    return [_parcel(row, now) for row in rows]


def renew(*, parcels: list[Parcel], now: datetime, lease: timedelta = LEASE) -> int:
    """Keep the leases of parcels that are still being sent; how many were still theirs."""
    if not parcels:
        return 0
    ids, leases = [parcel.delivery_id for parcel in parcels], [parcel.lease for parcel in parcels]
    return sql.execute(_RENEW, [now + lease, ids, leases])


def release(*, parcels: list[Parcel], now: datetime) -> int:
    """Let others take at once what this sender won't finish; how many there were."""
    return renew(parcels=parcels, now=now, lease=timedelta())


def tidy(*, now: datetime) -> int:
    """Put back what dead senders had taken, cancel what waits for webhooks out of use; how many put back."""
    values = {
        "now": now,
        "limit": TIDY_LIMIT,
        "error": INTERRUPTED,
        "most": MAX_ATTEMPTS + MAX_INTERRUPTIONS,
    }
    with environments.atomic():
        found = sql.execute(_RECLAIM, values)
        sql.execute(_CANCEL_STRAYS, values)
    return found


def call_slow(webhook_ids: set[UUID]) -> None:
    """Put endpoints that keep a request waiting into the slow lane before it ends."""
    with environments.atomic():
        waiting = Webhook.objects.filter(id__in=webhook_ids).exclude(pace=Pace.SLOW)
        free = list(waiting.locked_or_skipped().order_by("id").values_list("id", flat=True))
        Webhook.objects.filter(id__in=free).update(pace=Pace.SLOW)


def _parcel(row: Any, now: datetime) -> Parcel:
    *plain, url, body, pace, failures, secret, previous = row
    delivery_id, webhook_id, event_id, lease, number, max_attempts = plain
    return Parcel(
        delivery_id=delivery_id,
        webhook_id=webhook_id,
        event_id=event_id,
        lease=lease,
        number=number,
        max_attempts=max_attempts,
        url=url,
        body=bytes(body),
        started_at=now,
        pace=Pace(pace),
        had_failures=failures > 0,
        secrets=tuple(decrypt(bytes(held)).decode() for held in (secret, previous) if held),
    )
