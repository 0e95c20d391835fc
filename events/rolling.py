"""An agent's 30-day rolling risk: the worst that it did lately, fading as it recedes.

risk(t) = max over the events of the last 30 UTC days and today of score * 2^(-age / HALF_LIFE). A mean would
let a flood of ordinary events wash a breach away; a maximum can't be diluted, only outlived. All events fade
at one rate, so the greatest stays the greatest: the agent's row carries the value, an event changes it only
when it scores above what is there, and once an hour it is written anew from the daily sums.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Case, DecimalField, F, FloatField, Value, When
from django.db.models.functions import Cast, Extract, Power

from agents.models import Agent
from compliance import sql
from compliance.copying import Call, Statement
from compliance.identifiers import moment_of
from events import risk_days
from events.risk_days import HALF_LIFE

NEGLIGIBLE = 0.01
"""What has faded below this counts as nothing; even a score of 1 is at 0.06 when its 30 days are over."""

# Rows are locked in the order of ids, so that two of these never wait for each other.
_RAISE = Statement(
    "raise_risks",
    ("uuid[]", "float8[]", "timestamptz"),
    f"""
WITH worse AS (
    SELECT agent.id, given.score FROM agents_agent agent
    JOIN unnest($1, $2) AS given (id, score) ON given.id = agent.id
    WHERE agent.risk_updated_at IS NULL OR given.score > agent.risk_score * power(0.5,
        greatest(extract(epoch FROM $3 - agent.risk_updated_at), 0)::float8 / {HALF_LIFE.total_seconds()})
    ORDER BY agent.id FOR NO KEY UPDATE OF agent
)
UPDATE agents_agent agent SET risk_score = worse.score, risk_updated_at = $3
FROM worse WHERE agent.id = worse.id
""",  # noqa: S608  (only a number is put into the text)
)

# What was raised since the watermark stays: its event may not have committed yet.
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


def raising(scores: Mapping[UUID, float] | Mapping[str, float], *, now: datetime) -> Call:
    """The statement that makes each score its agent's rolling risk where it is the worst of late."""
    ids = [str(UUID(str(agent_id))) for agent_id in scores]
    return Call(_RAISE, (sql.array(ids), sql.array(map(float, scores.values())), now.isoformat()))


def fade_risk(*, now: datetime) -> int:
    """Write every agent's rolling risk as its events' daily sums have it; how many. Safe to repeat.

    While much waits to be summed up, what is written only fades.
    """
    if risk_days.is_behind(now=now):
        return _fade(now)
    mark = risk_days.summed_until()
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
