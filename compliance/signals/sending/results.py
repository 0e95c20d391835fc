"""Record the results of pushes; what they say of a stream counts only while its lease holds."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db.models import F

from compliance.core import environments
from compliance.signals import streams
from compliance.signals.models import Signal, Stream
from compliance.signals.sending.pushing import PushResult

MOST_REFUSALS: Final = 4
"""A token that its receiver has refused so often is set aside, so that those behind it arrive."""
REFUSED_KEPT: Final = timedelta(days=30)


def record(results: Sequence[PushResult], *, now: datetime) -> None:
    """Record results in the order in which they came."""
    with environments.atomic():
        # Streams are locked before signals, as everywhere.
        leases = {result.stream.lease for result in results}
        held = {row.lease: row for row in Stream.objects.filter(lease__in=leases).order_by("id").locked()}
        Signal.objects.filter(id__in=[one.signal.id for one in results if one.outcome.succeeded]).delete()
        for result in results:
            if not result.outcome.succeeded:
                _count_failure(result, now)
            stream = held.get(result.stream.lease)
            if stream is not None:
                _update(stream, result)
        for stream in held.values():
            _save(stream)
            streams.pause_failing(stream=stream, now=now)


def forget_refused(*, now: datetime) -> int:
    """Delete what receivers refused long ago; return how many."""
    return Signal.objects.refused_before(now - REFUSED_KEPT).delete()[0]


def _count_failure(result: PushResult, now: datetime) -> None:
    signal = Signal.objects.filter(id=result.signal.id)
    changes = {"attempt_count": F("attempt_count") + 1, "error": result.problem}
    if result.refusal and result.signal.attempt_count + 1 >= MOST_REFUSALS:
        changes["refused_at"] = now
    signal.update(**changes)


def _update(stream: Stream, result: PushResult) -> None:
    if result.outcome.succeeded:
        stream.consecutive_failures, stream.failing_since = 0, None
        stream.next_attempt_at, stream.last_error = None, ""
        stream.last_delivered_at = result.ended_at
    else:
        stream.consecutive_failures += 1
        stream.failing_since = stream.failing_since or result.ended_at
        stream.last_error = result.problem
        stream.next_attempt_at = result.ended_at + stream.retry_delay()
    if result.is_last:
        stream.lease = stream.leased_until = None


def _save(stream: Stream) -> None:
    health = ("consecutive_failures", "failing_since", "next_attempt_at", "last_error", "last_delivered_at")
    stream.save(update_fields=[*health, "lease", "leased_until"])
