"""An agent's 30-day rolling risk: its worst event, fading with age.

risk(t) = max over the events of the last 30 UTC days and today of score * 2^(-age / HALF_LIFE). A flood of
ordinary events would dilute a mean, but not a maximum. As all events fade at one rate, an event changes the
value in the agent's row only if it scores above it; once an hour it is written anew from the daily sums.
"""

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from django.conf import settings

from compliance.core import environments
from compliance.core.identifiers import first_id_at, moment_of
from compliance.stores import sql
from events.models import BehaviorEvent, RiskDay, RiskWatermark

HALF_LIFE = timedelta(days=7, hours=12)
LAG = timedelta(seconds=60)  # longest time from the making of an event's id to the start of its transaction
CHUNK = 100_000  # events of one step
RUN_SECONDS = 45.0  # after which a run begins no other step: the next one goes on
NOTHING = UUID(int=0)

# The peak is the event with the greatest score * 2^(received_at / half-life), compared by the logarithm
_SUM_UP = """
INSERT INTO events_riskday AS known
    (agent_id, day, events, medium, high, score_sum, max_score, peak_score, peak_at)
SELECT agent_id, day, count(*), count(*) FILTER (WHERE risk_band = 'medium'),
    count(*) FILTER (WHERE risk_band = 'high'), sum(risk_score), max(risk_score),
    (array_agg(risk_score ORDER BY weight DESC))[1], (array_agg(received_at ORDER BY weight DESC))[1]
FROM (
    SELECT agent_id, risk_band, risk_score, received_at, (received_at AT TIME ZONE 'UTC')::date AS day,
        ln(greatest(risk_score, 1e-9)) / ln(2::float8)
            + extract(epoch FROM received_at)::float8 / %(half_life)s AS weight
    FROM events_behaviorevent WHERE id >= %(low)s AND id < %(high)s
) weighed
GROUP BY agent_id, day
ORDER BY agent_id, day
ON CONFLICT (day, agent_id) DO UPDATE SET
    events = known.events + excluded.events,
    medium = known.medium + excluded.medium,
    high = known.high + excluded.high,
    score_sum = known.score_sum + excluded.score_sum,
    max_score = greatest(known.max_score, excluded.max_score),
    (peak_score, peak_at) = (
        SELECT score, at FROM (
            VALUES (known.peak_score, known.peak_at), (excluded.peak_score, excluded.peak_at)
        ) AS peaks (score, at)
        ORDER BY score * power(2, extract(epoch FROM at - known.peak_at)::float8 / %(half_life)s) DESC LIMIT 1
    )
"""
# Shows only the service's own role's transactions; no other role writes events
_OLDEST_TRANSACTION = """
SELECT min(xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def sum_up(*, now: datetime, seconds: float = RUN_SECONDS) -> int:
    """Add new events to the daily sums, for about so long; return how many. Safe to repeat."""
    return in_chunks(_next_chunk, now, seconds)


def in_chunks(work: Callable[[UUID], int | None], now: datetime, seconds: float) -> int:
    """Work on chunks of the settled events for about so long; return on how many events.

    `work` gets the id below which events are settled, and returns None if nothing is left.
    """
    until = time.monotonic() + seconds
    total = 0
    while True:
        with environments.atomic():
            counted = work(settled_until(now))
        total += counted or 0
        if counted is None or time.monotonic() >= until:
            return total


def oldest_kept(now: datetime) -> date:
    """Return the first UTC day whose figures are kept: that of the oldest events."""
    return now.astimezone(UTC).date() - timedelta(days=settings.EVENT_RETENTION_DAYS)


def forget(*, now: datetime) -> None:
    RiskDay.objects.filter(day__lt=oldest_kept(now)).delete()


def summed_until() -> UUID:
    """Return the watermark: events with lower ids are in the daily sums."""
    return RiskWatermark.objects.values_list("upto", flat=True).first() or NOTHING


def settled_until(now: datetime) -> UUID:
    """Return an id below which no open transaction can commit an event any more."""
    oldest = sql.query(_OLDEST_TRANSACTION)[0][0]
    return first_id_at((now if oldest is None else min(now, oldest)) - LAG)


def _next_chunk(settled: UUID) -> int | None:
    """Sum up about `CHUNK` events; return how many, None if there is nothing to do."""
    RiskWatermark.objects.get_or_create(id=1, defaults={"upto": NOTHING})
    mark = RiskWatermark.objects.select_for_update(skip_locked=True).first()
    if mark is None or mark.upto >= settled:
        return None
    upto = BehaviorEvent.objects.id_after(CHUNK, low=mark.upto, high=settled) or settled
    sql.execute(_SUM_UP, {"low": mark.upto, "high": upto, "half_life": HALF_LIFE.total_seconds()})
    counted = BehaviorEvent.objects.filter(id__gte=mark.upto, id__lt=upto).count()
    mark.upto = upto
    mark.save(update_fields=["upto"])
    return counted


BEHIND = timedelta(minutes=15)  # age from which the daily sums are too old
NEGLIGIBLE = 0.01  # risk below this counts as 0

# A row that another transaction has locked is left out, so that no tenant's events wait for another's locks:
# its risk follows with the agent's next event, or with the hourly sums.
_RAISE = f"""
WITH worse AS (
    SELECT agent.id, given.score FROM agents_agent agent
    JOIN unnest(%(risen)s::uuid[], %(risks)s::float8[]) AS given (id, score) ON given.id = agent.id
    WHERE OF_TENANT (agent.risk_updated_at IS NULL
        OR given.score > agent.risk_score * power(0.5,
        greatest(extract(epoch FROM %(now)s - agent.risk_updated_at), 0)::float8
        / {HALF_LIFE.total_seconds()}))
    ORDER BY agent.id FOR NO KEY UPDATE OF agent SKIP LOCKED
)
UPDATE agents_agent agent SET risk_score = worse.score, risk_updated_at = %(now)s
FROM worse WHERE OF_TENANT agent.id = worse.id
"""  # noqa: S608  (only a number is put into the text)
RAISE_RISKS = _RAISE.replace("OF_TENANT", "")
"""Make `risks` the risks of the agents `risen` where they are higher; both are arrays."""
RAISE_RISKS_OF_TENANT = _RAISE.replace("OF_TENANT", "agent.tenant_id = %(tenant)s AND")
"""The same for the agents of one `tenant`: where tables are distributed, a query locks rows of one only."""


# A value raised since the watermark stays, since its event may not have committed yet
_WRITE = """
UPDATE agents_agent agent SET
    risk_score = CASE WHEN found.risk < %(negligible)s THEN 0 ELSE found.risk END, risk_updated_at = %(now)s
FROM (
    SELECT agent.id, coalesce(round(max(
        peaks.score * power(0.5, greatest(extract(epoch FROM %(now)s::timestamptz - peaks.at), 0)::float8
            / %(half_life)s)
    )::numeric, 6), 0)::float8 AS risk
    FROM agents_agent agent LEFT JOIN (
        SELECT agent_id, peak_score AS score, peak_at AS at FROM events_riskday WHERE day >= %(first_day)s
        UNION ALL
        SELECT agent_id, risk_score, received_at FROM events_behaviorevent
            WHERE id >= %(mark)s AND received_at <= %(now)s
    ) peaks ON peaks.agent_id = agent.id
    WHERE agent.risk_score > 0 OR peaks.score >= %(negligible)s
    GROUP BY agent.id
) found
WHERE agent.id = found.id AND (agent.risk_updated_at IS NULL OR agent.risk_updated_at < %(raised_since)s)
    AND (agent.risk_score > 0 OR found.risk >= %(negligible)s)
"""


def fade_risk(*, now: datetime) -> int:
    """Write every agent's rolling risk from the daily sums; return how many. Safe to repeat.

    While the sums are too old, the present values stay: none is below what it should be.
    """
    mark = summed_until()
    if moment_of(mark) < now - BEHIND:
        return 0
    first_day = (now - settings.RISK_WINDOW).astimezone(UTC).date()
    limits = {"mark": mark, "raised_since": moment_of(mark), "first_day": first_day}
    constants = {"half_life": HALF_LIFE.total_seconds(), "negligible": NEGLIGIBLE}
    return sql.execute(_WRITE, {**limits, **constants, "now": now})
