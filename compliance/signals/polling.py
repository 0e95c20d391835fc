"""Hand signals to a receiver that polls (RFC 8936); each is handed out until it is acknowledged."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from compliance.core import environments
from compliance.signals.errors import NotPolled
from compliance.signals.feed import signing
from compliance.signals.models import MAX_REASON, Signal, Stream
from compliance.signals.vocabulary import StreamStatus

MOST_AT_ONCE: Final = 100
LOOK_SECONDS: Final = 0.1
_slots = threading.Semaphore(settings.SIGNALS_LONG_POLLS)


@dataclass(frozen=True)
class Poll:
    """A receiver's request: what it acknowledges, what it refuses with a reason, and how much it takes."""

    most: int = MOST_AT_ONCE
    returns_immediately: bool = False
    acknowledged: Sequence[UUID] = ()
    refused: Mapping[UUID, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PollAnswer:
    """Tokens by their `jti`, in order; `more` if others wait behind them."""

    tokens: Mapping[str, str]
    more: bool


def poll(*, tenant_id: UUID, stream_id: Any, asked: Poll, now: datetime) -> PollAnswer:
    """Take acknowledgements, then return what waits; waits for the first if the receiver lets it.

    Acknowledging another stream's signal, or one that was never handed out, does nothing.
    Raises: StreamNotFound, NotPolled, TokenKeysMissing, Unavailable (HSM).
    """
    stream = _acknowledge(tenant_id, stream_id, asked, now)
    if stream.status == StreamStatus.PAUSED or asked.most == 0:
        return PollAnswer({}, more=Signal.objects.of(stream).waiting().exists())
    if not asked.returns_immediately:
        _wait_for_first(stream)
    signals = signing.sign_waiting(stream, most=min(asked.most, MOST_AT_ONCE), now=now)
    behind = signals[-1].id if signals else 0
    more = bool(signals) and Signal.objects.of(stream).waiting().filter(id__gt=behind).exists()
    if signals:
        Stream.objects.filter(id=stream.id).update(last_delivered_at=now)
    return PollAnswer({str(signal.jti): signal.token for signal in signals}, more)


def _acknowledge(tenant_id: UUID, stream_id: Any, asked: Poll, now: datetime) -> Stream:
    with environments.atomic():
        # Streams are locked before signals, as everywhere.
        stream = Stream.objects.for_tenant(tenant_id).locked().find(stream_id)
        if stream.is_push:
            raise NotPolled()
        handed_out = Signal.objects.of(stream).handed_out()
        if asked.acknowledged:
            handed_out.filter(jti__in=asked.acknowledged).delete()
        for jti, reason in asked.refused.items():
            handed_out.filter(jti=jti, refused_at=None).update(refused_at=now, error=reason[:MAX_REASON])
    return stream


def _wait_for_first(stream: Stream) -> None:
    """Wait at most SIGNALS_LONG_POLL_SECONDS; not at all while as many others do as may in this process."""
    if not _slots.acquire(blocking=False):
        return
    try:
        end = time.monotonic() + settings.SIGNALS_LONG_POLL_SECONDS
        while time.monotonic() < end and not Signal.objects.of(stream).waiting().exists():
            time.sleep(LOOK_SECONDS)
    finally:
        _slots.release()
