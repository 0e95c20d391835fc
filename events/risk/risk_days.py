"""Daily sums of each agent's events, up to a watermark over the events' ids.

The sums and the watermark commit together under the watermark's row lock, so each event counts once. The
watermark stays behind every open transaction, so an event that commits late is not missed.
"""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings

from compliance.core import environments
from compliance.core.identifiers import first_id_at
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
    until = time.monotonic() + seconds
    total = 0
    while True:
        with environments.atomic():
            counted = _next_chunk(settled_until(now))
        total += counted or 0
        if counted is None or time.monotonic() >= until:
            return total


def forget(*, now: datetime) -> None:
    oldest = (now - timedelta(days=settings.EVENT_RETENTION_DAYS)).astimezone(UTC).date()
    RiskDay.objects.filter(day__lt=oldest).delete()


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
