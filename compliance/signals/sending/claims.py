"""Claim streams: one sender works on a stream at a time, under a short lease that it renews.

Once a lease runs out the stream can be claimed again: a token may be sent twice, but none is lost.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from compliance.core import environments
from compliance.core.encryption import Undecryptable, decrypt
from compliance.core.identifiers import new_id
from compliance.signals.feed import signing
from compliance.signals.models import RETRY_DELAYS, Signal, Stream
from compliance.signals.sending.pushing import ClaimedSignal, ClaimedStream

LEASE: Final = timedelta(seconds=10)
UNDECRYPTABLE: Final = "The authorization header cannot be decrypted: set the delivery again"
BATCH: Final = 20
"""Signals of one stream that are taken at once."""


def claim(*, limit: int, failing: int, now: datetime) -> list[ClaimedStream]:
    """Claim at most `limit` due streams, at most `failing` of them failing, and sign what is sent to them.

    Raises: TokenKeysMissing, Unavailable (HSM); the streams are then free again.
    """
    taken = _lease(limit, failing, now)
    try:
        return [one for stream in taken if (one := _claimed(stream, now)) is not None]
    except Exception:
        release([stream.lease for stream in taken if stream.lease])
        raise


def renew(streams: Collection[ClaimedStream], *, now: datetime) -> None:
    """Extend the leases of streams that are still being worked on."""
    if streams:
        leases = [stream.lease for stream in streams]
        Stream.objects.filter(lease__in=leases).update(leased_until=now + LEASE)


def release(leases: Collection[UUID]) -> None:
    """Leave streams to other senders at once."""
    if leases:
        Stream.objects.filter(lease__in=leases).update(lease=None, leased_until=None)


def _lease(limit: int, failing: int, now: datetime) -> list[Stream]:
    due = Stream.objects.due(now, Signal.objects.waiting()).locked(skip=True)
    with environments.atomic():
        taken = list(due.filter(consecutive_failures=0)[:limit])
        taken += due.failing()[: max(min(failing, limit - len(taken)), 0)]
        for stream in taken:
            stream.lease, stream.leased_until = new_id(), now + LEASE
        Stream.objects.bulk_update(taken, ["lease", "leased_until"])
    return taken


def _claimed(stream: Stream, now: datetime) -> ClaimedStream | None:
    # A failing receiver is asked with one token; what follows waits for its answer.
    signals = signing.sign_waiting(stream, most=1 if stream.is_failing else BATCH, now=now)
    if stream.lease is None:
        return None
    if not signals:
        release([stream.lease])
        return None
    try:
        own = decrypt(bytes(stream.authorization)).decode() if stream.authorization else None
    except Undecryptable:
        _postpone(stream, now)
        return None
    taken = tuple(ClaimedSignal(one.id, one.token, one.attempt_count) for one in signals)
    return ClaimedStream(stream.id, stream.lease, stream.endpoint_url, own, stream.is_failing, taken)


def _postpone(stream: Stream, now: datetime) -> None:
    """Free a stream that cannot be sent to before its tenant or operator acts."""
    stream.consecutive_failures, stream.failing_since = len(RETRY_DELAYS), stream.failing_since or now
    stream.next_attempt_at, stream.last_error = now + stream.retry_delay(), UNDECRYPTABLE
    stream.lease = stream.leased_until = None
    health = ("consecutive_failures", "failing_since", "next_attempt_at", "last_error")
    stream.save(update_fields=[*health, "lease", "leased_until"])
