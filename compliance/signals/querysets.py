"""Queries for streams and their signals."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from compliance.core.identifiers import parse_id
from compliance.signals.errors import StreamNotFound
from compliance.signals.vocabulary import DeliveryMethod, StreamStatus

if TYPE_CHECKING:
    from compliance.signals.models import Signal, Stream  # noqa: F401


class StreamQuerySet(models.QuerySet["Stream"]):
    def for_tenant(self, tenant_id: UUID) -> "StreamQuerySet":
        return self.filter(tenant_id=tenant_id)

    def newest_first(self) -> "StreamQuerySet":
        return self.order_by("-created_at", "-id")

    def receiving(self) -> "StreamQuerySet":
        """Streams for which signals are derived."""
        return self.exclude(status=StreamStatus.DISABLED)

    def failing(self) -> "StreamQuerySet":
        return self.filter(consecutive_failures__gt=0)

    def due(self, now: datetime, waiting: "SignalQuerySet") -> "StreamQuerySet":
        """Return push streams with signals to send now and no sender at work, the sound ones first."""
        return self.filter(
            Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
            Q(leased_until=None) | Q(leased_until__lte=now),
            Exists(waiting.filter(stream=OuterRef("pk"))),
            method=DeliveryMethod.PUSH,
            status=StreamStatus.ENABLED,
        ).order_by("consecutive_failures", F("next_attempt_at").asc(nulls_first=True), "id")

    def locked(self, *, skip: bool = False) -> "StreamQuerySet":
        return self.select_for_update(of=("self",), no_key=True, skip_locked=skip)

    def find(self, stream_id: Any) -> "Stream":
        """Return the stream with an id from a client; raises `StreamNotFound`, also if malformed."""
        stream = self.filter(id=parse_id(str(stream_id))).first()
        if stream is None:
            raise StreamNotFound()
        return stream


class SignalQuerySet(models.QuerySet["Signal"]):
    def of(self, stream: "Stream") -> "SignalQuerySet":
        return self.filter(stream=stream)

    def waiting(self) -> "SignalQuerySet":
        """Signals that are neither acknowledged nor refused, in their order."""
        return self.filter(refused_at=None).order_by("id")

    def handed_out(self) -> "SignalQuerySet":
        """Signals that were signed, and so may have reached the receiver."""
        return self.exclude(token="")

    def refused_before(self, moment: datetime) -> "SignalQuerySet":
        return self.filter(refused_at__lt=moment)
