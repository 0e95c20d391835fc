"""An agent's 30-day rolling risk: the worst that it did lately, fading as it recedes.

risk(t) = max over the events of the last 30 days of score * 2^(-age / HALF_LIFE). A mean would let a flood
of ordinary events wash a breach away; a maximum can't be diluted, only outlived. All events fade at one rate,
so the greatest stays the greatest: the agent's row alone carries the value, and an event changes it only
when it scores above what is there.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Case, DecimalField, F, FloatField, Q, Value, When
from django.db.models.functions import Cast, Extract, Power

from agents.models import Agent

HALF_LIFE = timedelta(days=7, hours=12)
NEGLIGIBLE = 0.01
"""What has faded below this counts as nothing; even a score of 1 is at 0.06 when its 30 days are over."""


def rolling_risk(*, score: float, written_at: datetime | None, now: datetime) -> float:
    """The risk at `now` of an agent whose risk was `score` at `written_at`; 0 to 1."""
    if written_at is None:
        return 0.0
    return score * 2 ** -(max(now - written_at, timedelta(0)) / HALF_LIFE)


def raise_risk(*, agent: Agent, score: float, now: datetime) -> None:
    """Make `score` the agent's rolling risk if it is the worst of late: a rare write of the agent's row."""
    if score <= rolling_risk(score=agent.risk_score, written_at=agent.risk_updated_at, now=now):
        return
    lower = Q(risk_score__lte=score) | Q(risk_updated_at=agent.risk_updated_at)
    Agent.objects.filter(lower, id=agent.id).update(risk_score=score, risk_updated_at=now)


def raise_risks(scores: Mapping[UUID, float], *, now: datetime) -> None:
    """`raise_risk()` for many agents."""
    for agent in Agent.objects.filter(id__in=scores):
        raise_risk(agent=agent, score=scores[agent.id], now=now)


def fade_risk(*, now: datetime) -> int:
    """Bring every agent's rolling risk up to `now` in one statement; how many changed. Safe to repeat."""
    age = Extract(Value(now) - F("risk_updated_at"), "epoch", output_field=FloatField())
    faded = F("risk_score") * Power(Value(0.5), age / Value(HALF_LIFE.total_seconds()))
    rounded = Cast(Cast(faded, DecimalField(max_digits=7, decimal_places=6)), FloatField())
    return Agent.objects.filter(risk_score__gt=0, risk_updated_at__lt=now).update(
        risk_score=Case(When(risk_score__lt=NEGLIGIBLE, then=0.0), default=rounded), risk_updated_at=now
    )
