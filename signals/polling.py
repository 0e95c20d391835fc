"""Hand signals to a receiver that polls (RFC 8936); each is handed out until it is acknowledged."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from compliance.core import environments
from compliance.core.errors import InvalidState, Unavailable
from compliance.core.shares import AllTaken, SharedSlots
from signals import streams
from signals.models import MAX_REASON, Signal, Stream
from signals.vocabulary import StreamStatus

MOST_AT_ONCE: Final = 100
LOOK_SECONDS: Final = 0.1
SLOTS = SharedSlots(settings.SIGNALS_LONG_POLLS)


class NotPolled(InvalidState):
    message = "The stream delivers by push"


class TooManyPolls(Unavailable):
    message = "As many polls wait as may; poll again later, or with returnImmediately"


@dataclass(frozen=True)
class PollAnswer:
    """Signals with their tokens, in order; `more` if others wait behind them."""

    signals: Sequence[Signal]
    more: bool


def poll(
    *,
    tenant_id: UUID,
    stream_id: Any,
    acknowledged: Sequence[UUID] = (),
    refused: Mapping[UUID, str],
    most: int = MOST_AT_ONCE,
    returns_immediately: bool = False,
    now: datetime,
) -> PollAnswer:
    """Take acknowledgements and refusals with their reasons, then return what waits, `most` at once.

    Waits for the first if the receiver lets it. Acknowledging another stream's signal, or one that was never
    handed out, does nothing.
    Raises: StreamNotFound, NotPolled, TooManyPolls, TokenKeysMissing, Unavailable (HSM).
    """
    with environments.atomic():
        # Streams are locked before signals, as everywhere.
        stream = Stream.objects.for_tenant(tenant_id).locked().find(stream_id)
        if stream.is_push:
            raise NotPolled()
        handed_out = Signal.objects.of(stream).exclude(token="")
        if acknowledged:
            handed_out.filter(jti__in=acknowledged).delete()
        for jti, reason in refused.items():
            handed_out.filter(jti=jti, refused_at=None).update(refused_at=now, error=reason[:MAX_REASON])
    waiting = Signal.objects.of(stream).waiting()
    if stream.status == StreamStatus.PAUSED or most == 0:
        return PollAnswer([], more=waiting.exists())
    if not returns_immediately:
        _wait_for_first(stream)
    signals = streams.sign_waiting(stream, most=min(most, MOST_AT_ONCE), now=now)
    if signals:
        Stream.objects.filter(id=stream.id).update(last_delivered_at=now)
    return PollAnswer(signals, bool(signals) and waiting.filter(id__gt=signals[-1].id).exists())


def _wait_for_first(stream: Stream) -> None:
    """Wait at most SIGNALS_LONG_POLL_SECONDS. Raises: TooManyPolls where as many wait as may."""
    waiting, seconds = Signal.objects.of(stream).waiting(), settings.SIGNALS_LONG_POLL_SECONDS
    end = time.monotonic() + seconds
    if waiting.exists():
        return
    try:
        slot = SLOTS.take(stream.tenant_id)
    except AllTaken as error:
        # An empty answer at once would have the receiver ask again at once.
        raise TooManyPolls(retry_after=math.ceil(seconds) or 1) from error
    with slot:
        while time.monotonic() < end and not waiting.all().exists():
            time.sleep(LOOK_SECONDS)
