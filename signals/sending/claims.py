"""Claim streams, and record what pushes came to: one sender works on a stream at a time, under a short lease.

Once a lease runs out the stream can be claimed again: a token may be sent twice, but none is lost. What a
result says of a stream counts only while its lease holds.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import F

from compliance.core import environments
from compliance.core.encryption import Undecryptable, decrypt
from compliance.core.identifiers import new_id
from compliance.core.shares import AllTaken, SharedSlots
from signals import streams
from signals.models import RETRY_DELAYS, Signal, Stream
from signals.sending.pushing import ClaimedStream, PushResult
from webhooks.models import Pace

LEASE: Final = timedelta(seconds=10)
UNDECRYPTABLE: Final = "The authorization header cannot be decrypted: set the delivery again"
BATCH: Final = 20
"""Signals of one stream that are taken at once."""
MOST_DUE: Final = 1_000
"""Due streams that are looked at in a turn."""
MOST_REFUSALS: Final = 4
"""A token that its receiver has refused so often is set aside, so that those behind it arrive."""
REFUSED_KEPT: Final = timedelta(days=30)
RECORDED: Final = (
    *("consecutive_failures", "failing_since", "next_attempt_at", "last_error", "last_delivered_at", "pace"),
    *("lease", "leased_until"),
)


class Room:
    """The number of streams a sender of `size` threads may still claim beside those `in_flight`.

    A tenant has a quarter of the threads. Unproven streams have half of them, a quarter of these a tenant.
    """

    def __init__(self, size: int, in_flight: Collection[Stream]) -> None:
        self._threads = SharedSlots(size, share=max(1, size // 4))
        self._unproven = SharedSlots(max(1, size // 2), share=max(1, size // 8))
        self._turns = Counter(stream.tenant_id for stream in in_flight)
        for stream in in_flight:
            self._admits(stream)

    def chosen(self, due: Iterable[Stream]) -> list[UUID]:
        """Return the ids of the streams to claim, turn by turn over tenants."""
        places = []
        for place, stream in enumerate(due):
            places.append((self._turns[stream.tenant_id], place, stream))
            self._turns[stream.tenant_id] += 1
        return [stream.id for *_, stream in sorted(places, key=lambda one: one[:2]) if self._admits(stream)]

    def _admits(self, stream: Stream) -> bool:
        with ExitStack() as taken:
            try:
                if stream.is_unproven:
                    taken.enter_context(self._unproven.take(stream.tenant_id))
                self._threads.take(stream.tenant_id)
            except AllTaken:
                return False
            taken.pop_all()
        return True


def claim(*, room: Room, now: datetime) -> list[ClaimedStream]:
    """Claim due streams, and sign what is sent to them.

    Raises: TokenKeysMissing, Unavailable (HSM); the streams are then free again.
    """
    taken = _lease(room, now)
    try:
        return [one for stream in taken if (one := _claimed(stream, now)) is not None]
    except Exception:
        release([stream.lease for stream in taken if stream.lease])
        raise


def renew(leases: Collection[UUID], *, now: datetime) -> None:
    """Extend the leases of streams that are still being worked on."""
    if leases:
        Stream.objects.filter(lease__in=leases).update(leased_until=now + LEASE)


def release(leases: Collection[UUID]) -> None:
    """Leave streams to other senders at once."""
    if leases:
        Stream.objects.filter(lease__in=leases).update(lease=None, leased_until=None)


def _lease(room: Room, now: datetime) -> list[Stream]:
    due = Stream.objects.due(now, Signal.objects.waiting())
    chosen = room.chosen(due[:MOST_DUE])
    if not chosen:
        return []
    with environments.atomic():
        taken = list(due.filter(id__in=chosen).locked(skip=True))
        for stream in taken:
            stream.lease, stream.leased_until = new_id(), now + LEASE
        Stream.objects.bulk_update(taken, ["lease", "leased_until"])
    return taken


def _claimed(stream: Stream, now: datetime) -> ClaimedStream | None:
    # A failing receiver is asked with one token; what follows waits for its answer.
    signals = streams.sign_waiting(stream, most=1 if stream.is_failing else BATCH, now=now)
    if stream.lease is None:
        return None
    if not signals:
        release([stream.lease])
        return None
    try:
        own = decrypt(bytes(stream.authorization)).decode() if stream.authorization else None
    except Undecryptable:
        # It cannot be sent to before its tenant or operator acts.
        stream.consecutive_failures, stream.failing_since = len(RETRY_DELAYS), stream.failing_since or now
        stream.next_attempt_at, stream.last_error = now + stream.retry_delay(), UNDECRYPTABLE
        stream.lease = stream.leased_until = None
        stream.save(update_fields=RECORDED)
        return None
    return ClaimedStream(stream, stream.lease, own, signals)


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
            stream.save(update_fields=RECORDED)
            streams.pause_failing(stream=stream, now=now)


def _count_failure(result: PushResult, now: datetime) -> None:
    changes = {"attempt_count": F("attempt_count") + 1, "error": result.problem}
    if result.refusal and result.signal.attempt_count + 1 >= MOST_REFUSALS:
        changes["refused_at"] = now
    Signal.objects.filter(id=result.signal.id).update(**changes)


def _update(stream: Stream, result: PushResult) -> None:
    stream.pace = Pace.of(result.outcome.duration)
    if result.outcome.succeeded:
        stream.consecutive_failures, stream.failing_since = 0, None
        stream.next_attempt_at, stream.last_error = None, ""
        stream.last_delivered_at = result.ended_at
    else:
        stream.consecutive_failures += 1
        stream.failing_since = stream.failing_since or result.ended_at
        stream.last_error = result.problem
        stream.next_attempt_at = result.ended_at + max(stream.retry_delay(), result.outcome.retry_after)
    if result.is_last:
        stream.lease = stream.leased_until = None
