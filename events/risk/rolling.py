"""An agent's 30-day rolling risk: its worst event, fading with age.

risk(t) = max over the events of the last 30 UTC days and today of score * 2^(-age / HALF_LIFE). A flood of
ordinary events would dilute a mean, but not a maximum. As all events fade at one rate, an event changes the
value in the agent's row only if it scores above it; once an hour it is written anew from the daily sums.
"""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import Case, DecimalField, F, FloatField, Value, When
from django.db.models.functions import Cast, Extract, Power

from agents.models import Agent
from compliance.core.identifiers import moment_of
from compliance.stores import sql
from events.risk import risk_days
from events.risk.risk_days import HALF_LIFE

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

    While the sums are too old, the present values fade instead.
    """
    mark = risk_days.summed_until()
    if moment_of(mark) < now - BEHIND:
        return _fade(now)
    first_day = (now - settings.RISK_WINDOW).astimezone(UTC).date()
    limits = {"mark": mark, "raised_since": moment_of(mark), "first_day": first_day}
    constants = {"half_life": HALF_LIFE.total_seconds(), "negligible": NEGLIGIBLE}
    return sql.execute(_WRITE, {**limits, **constants, "now": now})


def _fade(now: datetime) -> int:
    age = Extract(Value(now) - F("risk_updated_at"), "epoch", output_field=FloatField())
    faded = F("risk_score") * Power(Value(0.5), age / Value(HALF_LIFE.total_seconds()))
    rounded = Cast(Cast(faded, DecimalField(max_digits=7, decimal_places=6)), FloatField())
    return Agent.objects.filter(risk_score__gt=0, risk_updated_at__lt=now).update(
        risk_score=Case(When(risk_score__lt=NEGLIGIBLE, then=0.0), default=rounded), risk_updated_at=now
    )
