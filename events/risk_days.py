"""Daily sums of each agent's events, added up from the events table behind a watermark over ids.

The sums and the watermark commit together, under the watermark's row lock: whatever is lost, repeated or run
twice at once, each event counts once. The watermark keeps behind every transaction that is still open, so an
event that commits late is not passed by.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings

from compliance import environments, sql
from compliance.identifiers import first_id_at, moment_of
from events.models import BehaviorEvent, RiskDay, RiskWatermark

HALF_LIFE = timedelta(days=7, hours=12)
LAG = timedelta(seconds=60)
"""How long before its transaction begins an event's id may have been made."""
BEHIND = timedelta(minutes=15)
CHUNK = 100_000
CHUNKS = 20
NOTHING = UUID(int=0)

# The peak is the greatest of score * 2^(received_at / half-life), compared by its logarithm; a score of 0
# never is. The sums of one chunk are added to what the day has.
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
# Of other roles' sessions it sees no times, but only the service's own role writes events.
_OLDEST_TRANSACTION = """
SELECT min(xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def sum_up(*, now: datetime) -> int:
    """Add what arrived since the last time to the daily sums; how many events. Safe to repeat."""
    total = 0
    for _ in range(CHUNKS):
        with environments.atomic():
            counted = _next_chunk(_settled_until(now))
        if counted is None:
            break
        total += counted
    return total


def forget(*, now: datetime) -> None:
    """Drop the sums of days past the events' retention."""
    oldest = (now - timedelta(days=settings.EVENT_RETENTION_DAYS)).astimezone(UTC).date()
    RiskDay.objects.filter(day__lt=oldest).delete()


def summed_until() -> UUID:
    """Events with lower ids are in the daily sums."""
    mark = RiskWatermark.objects.first()
    return NOTHING if mark is None else mark.upto


def is_behind(*, now: datetime) -> bool:
    """Whether so much waits to be summed up that the sums don't tell of the present."""
    return moment_of(summed_until()) < now - BEHIND


def _settled_until(now: datetime) -> UUID:
    """No transaction is left that could still commit an event with a lower id."""
    oldest = sql.query(_OLDEST_TRANSACTION)[0][0]
    return first_id_at((now if oldest is None else min(now, oldest)) - LAG)


def _next_chunk(settled: UUID) -> int | None:
    """Sum up at most some `CHUNK` events; how many, None once there is nothing to do."""
    RiskWatermark.objects.get_or_create(id=1, defaults={"upto": NOTHING})
    mark = RiskWatermark.objects.select_for_update(skip_locked=True).first()
    if mark is None or mark.upto >= settled:
        return None
    beyond = BehaviorEvent.objects.id_after(CHUNK, low=mark.upto, high=settled)
    upto = beyond or settled
    sql.execute(_SUM_UP, {"low": mark.upto, "high": upto, "half_life": HALF_LIFE.total_seconds()})
    counted = CHUNK if beyond else BehaviorEvent.objects.filter(id__gte=mark.upto, id__lt=settled).count()
    mark.upto = upto
    mark.save(update_fields=["upto"])
    return counted
