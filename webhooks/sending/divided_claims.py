"""The statements of `claims` for tables that Citus divides by tenant.

A statement over several shards may neither lock rows nor write in a part of it, and recursion stays in one
shard. So candidates are read from all shards, locked tenant by tenant, and then changed by their ids.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from compliance.stores import sql
from webhooks.models import Attempt

Values = Mapping[str, Any]
Row = tuple[UUID, UUID]
"""Tenant and id of a delivery."""

_IN_FLIGHT: Final = """
SELECT delivery.tenant_id, delivery.webhook_id, count(*) AS number, min(attempt.started_at) AS oldest
FROM webhooks_delivery delivery JOIN webhooks_attempt attempt
    ON (attempt.tenant_id, attempt.delivery_id, attempt.number)
        = (delivery.tenant_id, delivery.id, delivery.attempt_count)
WHERE delivery.status = 'in_flight' AND delivery.leased_until > %(now)s
GROUP BY delivery.tenant_id, delivery.webhook_id
"""
_SLOW_IN_FLIGHT: Final = f"""
SELECT coalesce(sum(in_flight.number), 0)
FROM ({_IN_FLIGHT}) in_flight JOIN webhooks_webhook webhook
    ON (webhook.tenant_id, webhook.id) = (in_flight.tenant_id, in_flight.webhook_id)
WHERE webhook.pace = 'slow' OR in_flight.oldest <= %(slow_since)s
"""  # noqa: S608  (text of ours)
_CANDIDATES: Final = f"""
SELECT slots.used + due.place AS turn, due.next_attempt_at, due.id, slots.tenant_id
FROM (
    SELECT webhook.tenant_id, webhook.id AS webhook_id, webhook.pace,
        coalesce(in_flight.number, 0) AS used,
        CASE WHEN in_flight.oldest < %(young_since)s THEN 0
            WHEN webhook.pace <> 'quick' THEN 1
            WHEN webhook.consecutive_failures >= %(failing_after)s THEN greatest(1, %(slots)s / 4)
            ELSE %(slots)s END - coalesce(in_flight.number, 0) AS free
    FROM webhooks_webhook webhook LEFT JOIN ({_IN_FLIGHT}) in_flight
        ON (in_flight.tenant_id, in_flight.webhook_id) = (webhook.tenant_id, webhook.id)
    WHERE webhook.active AND webhook.deleted_at IS NULL
        AND uuid_hash(webhook.id) & %(last_shard)s = ANY(%(shards)s::integer[])
) slots CROSS JOIN LATERAL (
    SELECT delivery.tenant_id, delivery.id, delivery.next_attempt_at, delivery.attempt_count > 0 AS is_retry,
        row_number() OVER (
            PARTITION BY delivery.tenant_id ORDER BY delivery.next_attempt_at, delivery.id) AS place
    FROM webhooks_delivery delivery
    WHERE delivery.tenant_id = slots.tenant_id AND delivery.webhook_id = slots.webhook_id
        AND delivery.status = 'pending' AND delivery.next_attempt_at <= %(now)s
    ORDER BY delivery.next_attempt_at, delivery.id LIMIT %(slots)s
) due
WHERE due.place <= slots.free AND {{kind}}
ORDER BY turn, due.next_attempt_at, due.id LIMIT %(most)s
"""  # noqa: S608
_PROVEN: Final = _CANDIDATES.format(kind="slots.pace = 'quick' AND NOT due.is_retry")
_UNPROVEN: Final = _CANDIDATES.format(
    kind="(slots.pace = 'quick' AND due.is_retry OR slots.pace NOT IN ('quick', 'slow'))"
)
_SLOW: Final = _CANDIDATES.format(kind="slots.pace = 'slow'")
_LOCK: Final = """
SELECT id FROM webhooks_delivery WHERE tenant_id = %s AND id = ANY(%s) AND status = %s
FOR NO KEY UPDATE SKIP LOCKED
"""
# A lease of its own for each row, of what does not vary while the statement runs.
_CLAIM: Final = """
UPDATE webhooks_delivery SET status = 'in_flight', lease = md5(id::text || %(seed)s)::uuid,
    leased_until = %(leased_until)s, next_attempt_at = NULL, attempt_count = attempt_count + 1
WHERE tenant_id = ANY(%(tenants)s) AND id = ANY(%(ids)s)
"""
_CLAIMED: Final = """
SELECT delivery.tenant_id, delivery.id, delivery.webhook_id, delivery.message_id, delivery.lease,
    delivery.attempt_count, delivery.max_attempts, webhook.url, message.request_id, message.traceparent,
    message.body, webhook.pace, webhook.consecutive_failures > 0, message.event, delivery.created_at,
    webhook.secret, CASE WHEN webhook.previous_secret_until > %(now)s THEN webhook.previous_secret END
FROM webhooks_delivery delivery
JOIN webhooks_webhook webhook
    ON (webhook.tenant_id, webhook.id) = (delivery.tenant_id, delivery.webhook_id)
JOIN webhooks_message message
    ON (message.tenant_id, message.id) = (delivery.tenant_id, delivery.message_id)
WHERE delivery.tenant_id = ANY(%(tenants)s) AND delivery.id = ANY(%(ids)s)
ORDER BY delivery.created_at, delivery.id
"""
_LOST: Final = """
SELECT tenant_id, id FROM webhooks_delivery WHERE status = 'in_flight' AND leased_until <= %(now)s
ORDER BY leased_until, id LIMIT %(limit)s
"""
# Of a delivery's attempts only the last one is without duration and error.
_CLOSE: Final = """
UPDATE webhooks_attempt SET error = %(error)s
WHERE tenant_id = ANY(%(tenants)s) AND delivery_id = ANY(%(ids)s) AND duration_ms IS NULL AND error IS NULL
"""
_RECLAIM: Final = """
UPDATE webhooks_delivery
SET status = CASE WHEN attempt_count < %(most)s THEN 'pending' ELSE 'failed' END,
    max_attempts = least(max_attempts + 1, %(most)s),
    next_attempt_at = CASE WHEN attempt_count < %(most)s THEN %(now)s::timestamptz END,
    completed_at = CASE WHEN attempt_count < %(most)s THEN NULL ELSE %(now)s::timestamptz END,
    lease = NULL, leased_until = NULL
WHERE tenant_id = ANY(%(tenants)s) AND id = ANY(%(ids)s) AND leased_until <= %(now)s
"""
_UNWANTED: Final = """
SELECT delivery.tenant_id, delivery.id FROM webhooks_delivery delivery
JOIN webhooks_webhook webhook
    ON (webhook.tenant_id, webhook.id) = (delivery.tenant_id, delivery.webhook_id)
WHERE (NOT webhook.active OR webhook.deleted_at IS NOT NULL) AND delivery.status = 'pending' LIMIT %(limit)s
"""
_CANCEL: Final = """
UPDATE webhooks_delivery SET status = 'cancelled', next_attempt_at = NULL, completed_at = %(now)s
WHERE tenant_id = ANY(%(tenants)s) AND id = ANY(%(ids)s)
"""


class _Candidate(NamedTuple):
    """A due delivery, as candidates are ordered."""

    turn: int
    next_attempt_at: Any
    id: UUID
    tenant_id: UUID


def claim(values: Values) -> list[Any]:
    """As the statement of `claims.claim`, with its values, in the transaction that has the shards' locks."""
    locked = _locked([(one.tenant_id, one.id) for one in _chosen(values)], "pending")
    if not locked:
        return []
    named = {**values, **_named(locked)}
    sql.execute(_CLAIM, {**named, "seed": secrets.token_hex()})
    rows = sql.query(_CLAIMED, named)
    Attempt.objects.bulk_create(
        Attempt(tenant_id=row[0], delivery_id=row[1], number=row[5], url=row[7], started_at=values["now"])
        for row in rows
    )
    return rows


def reclaim(values: Values) -> None:
    """Put deliveries back whose leases have run out."""
    if locked := _locked(sql.query(_LOST, values), "in_flight"):
        named = {**values, **_named(locked)}
        sql.execute(_CLOSE, named)
        sql.execute(_RECLAIM, named)


def cancel_unwanted(values: Values) -> None:
    """Cancel what waits for webhooks out of use."""
    if locked := _locked(sql.query(_UNWANTED, values), "pending"):
        sql.execute(_CANCEL, {**values, **_named(locked)})


def _chosen(values: Values) -> list[_Candidate]:
    """The deliveries to claim, by turns; of slow and other unproven ones at most what they may have."""
    limit, unproven, slow = values["limit"], values["unproven"], values["slow_slots"]
    if slow:
        slow -= sql.query(_SLOW_IN_FLIGHT, values)[0][0]
    tried = sorted(
        [*_first(_SLOW, values, min(slow, unproven)), *_first(_UNPROVEN, values, min(limit, unproven))]
    )
    return sorted([*_first(_PROVEN, values, limit), *tried[: max(0, unproven)]])[:limit]


def _first(statement: str, values: Values, most: int) -> list[_Candidate]:
    if most <= 0:
        return []
    return [_Candidate(*row) for row in sql.query(statement, {**values, "most": most})]


def _locked(rows: Iterable[Row], status: str) -> list[Row]:
    """Lock the deliveries that still have the status, without those that another transaction holds."""
    by_tenant: dict[UUID, list[UUID]] = defaultdict(list)
    for tenant_id, delivery_id in rows:
        by_tenant[tenant_id].append(delivery_id)
    return [
        (tenant_id, found)
        for tenant_id in sorted(by_tenant)
        for (found,) in sql.query(_LOCK, [tenant_id, by_tenant[tenant_id], status])
    ]


def _named(rows: Sequence[Row]) -> dict[str, list[UUID]]:
    """The tenants, each once, and the ids."""
    return {"tenants": list({tenant_id for tenant_id, _ in rows}), "ids": [one for _, one in rows]}
