"""Each tenant's days in numbers, for the overview's charts.

The last three days are summed anew each time, since deliveries and sums of events settle late, and with them
the days that no run has summed. No event is read: their sums are those of `events.risk.rolling`, and the
id of an event tells when it was received.
"""

from datetime import UTC, datetime, timedelta

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from compliance.core import environments
from compliance.core.identifiers import first_id_at
from compliance.stores import sql
from events.figures.models import DayFigures
from events.models import EventReview, RiskDay
from events.risk.rolling import oldest_kept
from tenancy.models import Tenant
from webhooks.models import Delivery

FIRST_DAYS = 30  # days summed in the first run
UNSETTLED_DAYS = 3  # days, today included, that are summed anew

_DAYS, _RISK, _AGENTS, _REVIEWS, _DELIVERIES, _ENTRIES, _TENANTS = (
    model._meta.db_table for model in (DayFigures, RiskDay, Agent, EventReview, Delivery, AuditEntry, Tenant)
)
# The milliseconds of a UUIDv7 are its first 48 bits.
_RECEIVED = "('x' || left(replace({}::text, '-', ''), 12))::bit(48)::bigint / 1000.0"
_FIGURES = [figure.attname for figure in DayFigures._meta.concrete_fields[3:]]  # after id, tenant and day
_TOLD = [name if name.endswith("_delay") else f"coalesce({name}, 0)" for name in _FIGURES]
_SUM_UP = f"""
WITH risk AS (
    SELECT agent.tenant_id, risk.day, sum(risk.events) AS events, sum(risk.medium) AS medium,
        sum(risk.high) AS high
    FROM {_RISK} risk JOIN {_AGENTS} agent ON agent.id = risk.agent_id
    WHERE risk.day >= %(first)s GROUP BY 1, 2
), sent AS (
    SELECT tenant_id, (created_at AT TIME ZONE 'UTC')::date AS day,
        count(*) FILTER (WHERE status = 'succeeded') AS delivered,
        count(*) FILTER (WHERE status = 'failed') AS undelivered
    FROM {_DELIVERIES} WHERE id >= %(first_id)s AND created_at >= %(first)s GROUP BY 1, 2
), reviewed AS (
    SELECT tenant_id, (reviewed_at AT TIME ZONE 'UTC')::date AS day, count(*) AS reviews,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY greatest(
            extract(epoch FROM reviewed_at)::float8 - {_RECEIVED.format("event_id")}, 0)) AS review_delay
    FROM {_REVIEWS} WHERE id >= %(first_id)s AND reviewed_at >= %(first)s AND number = 1 GROUP BY 1, 2
), breaches AS (
    SELECT entry.tenant_id, (entry.created_at AT TIME ZONE 'UTC')::date AS day,
        greatest(extract(epoch FROM entry.created_at)::float8
            - {_RECEIVED.format("(entry.metadata->>'event_id')")}, 0) AS delay
    FROM {_TENANTS} tenant JOIN {_ENTRIES} entry ON entry.tenant_id = tenant.id
    WHERE entry.event_type = %(breach)s AND entry.created_at >= %(first)s
), revoked AS (
    SELECT tenant_id, day, count(*) AS revocations,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY delay) AS revocation_delay,
        max(delay) AS longest_revocation_delay
    FROM breaches GROUP BY 1, 2
)
SELECT coalesce(json_agg(found), '[]')::text FROM (
    SELECT * FROM risk FULL JOIN sent USING (tenant_id, day) FULL JOIN reviewed USING (tenant_id, day)
        FULL JOIN revoked USING (tenant_id, day)
) AS found
"""  # noqa: S608  (only names of tables are put into the text)
# A statement of its own: one that reads divided tables as well would need a privilege on the sequence of ids.
_PUT = f"""
INSERT INTO {_DAYS} (tenant_id, day, {", ".join(_FIGURES)})
SELECT tenant_id, day, {", ".join(_TOLD)} FROM json_populate_recordset(NULL::{_DAYS}, %(found)s::json)
ON CONFLICT (day, tenant_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _FIGURES)}
"""  # noqa: S608  (only names of tables and columns are put into the text)


def sum_up_days(*, now: datetime) -> int:
    """Write the unsettled days' figures, and in the first run those of the last weeks; return how many.

    Safe to repeat. Days past the retention of events are deleted.
    """
    today = now.astimezone(UTC).date()
    latest = DayFigures.objects.values_list("day", flat=True).first()
    earliest = today - timedelta(days=FIRST_DAYS - 1)
    unsettled = timedelta(days=UNSETTLED_DAYS - 1)
    first = earliest if latest is None else max(min(latest, today) - unsettled, earliest)
    with environments.atomic():
        start = datetime(first.year, first.month, first.day, tzinfo=UTC)
        breach = AuditAction.AGENT_HIGH_RISK.value
        limits = {"first": start, "first_id": first_id_at(start), "breach": breach}
        ((found,),) = sql.query(_SUM_UP, limits)
        written = sql.execute(_PUT, {"found": found})
        DayFigures.objects.filter(day__lt=oldest_kept(now)).delete()
    return written
