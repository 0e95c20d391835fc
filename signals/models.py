"""Streams of signals, the signals that wait in them, and how far the audit log has been followed."""

from datetime import datetime, timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Exists, F, Index, OuterRef, Q, UniqueConstraint

from compliance.core.errors import NotFound
from compliance.core.identifiers import new_id
from compliance.outbound.addresses import MAX_URL_LENGTH
from compliance.stores.rows import TenantRows
from signals.vocabulary import SUPPORTED_EVENTS, DeliveryMethod, SignalEvent, StreamStatus
from tenancy.models import Tenant
from webhooks.models import Pace


class StreamNotFound(NotFound):
    message = "Stream not found"


class StreamQuerySet(TenantRows["Stream"]):
    missing = StreamNotFound

    def newest_first(self) -> "StreamQuerySet":
        return self.order_by("-created_at", "-id")

    def receiving(self) -> "StreamQuerySet":
        """Streams for which signals are derived."""
        return self.exclude(status=StreamStatus.DISABLED)

    def due(self, now: datetime, waiting: "SignalQuerySet") -> "StreamQuerySet":
        """Return push streams with signals to send now and no sender at work, the sound ones first."""
        return self.filter(
            Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
            Q(leased_until=None) | Q(leased_until__lte=now),
            Exists(waiting.filter(stream=OuterRef("pk"))),
            method=DeliveryMethod.PUSH,
            status=StreamStatus.ENABLED,
        ).order_by("consecutive_failures", F("next_attempt_at").asc(nulls_first=True), "id")


class SignalQuerySet(models.QuerySet["Signal"]):
    def of(self, stream: "Stream") -> "SignalQuerySet":
        return self.filter(stream=stream)

    def waiting(self) -> "SignalQuerySet":
        """Signals that are neither acknowledged nor refused, in their order."""
        return self.filter(refused_at=None).order_by("id")


MAX_AUDIENCE = 256
MAX_DESCRIPTION = 500
MAX_REASON = 255
MAX_EVENT = 256
RETRY_DELAYS = (1, 2, 5, 10, 30, 60, 300)
"""Seconds before a push is tried again; the last for ever."""


def signal_events() -> list[tuple[str, str]]:
    """Return the event types; as a function, so that a new one needs no migration."""
    return list(SignalEvent.choices)


class Stream(models.Model):
    """A receiver's stream; `authorization` is encrypted. `lease` names the sender at work on it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="signal_streams")
    audience = models.CharField(max_length=MAX_AUDIENCE)
    description = models.CharField(max_length=MAX_DESCRIPTION, blank=True)
    method = models.CharField(max_length=32, choices=DeliveryMethod.choices)
    endpoint_url = models.CharField(max_length=MAX_URL_LENGTH, blank=True)
    authorization = models.BinaryField(null=True, editable=False)
    events_requested = ArrayField(models.CharField(max_length=MAX_EVENT))
    status = models.CharField(max_length=16, choices=StreamStatus.choices, default=StreamStatus.ENABLED)
    status_reason = models.CharField(max_length=MAX_REASON, blank=True)
    consecutive_failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    next_attempt_at = models.DateTimeField(null=True)
    pace = models.CharField(
        max_length=16, choices=Pace.choices, default=Pace.UNKNOWN, db_default=Pace.UNKNOWN
    )
    last_delivered_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=MAX_REASON, blank=True)
    verification_asked_at = models.DateTimeField(null=True)
    lease = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = StreamQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [Index(fields=["tenant", "-created_at", "-id"], name="signals_stream_tenant_time")]
        constraints = [
            CheckConstraint(condition=Q(method__in=DeliveryMethod.values), name="signals_method_known"),
            CheckConstraint(condition=Q(status__in=StreamStatus.values), name="signals_status_known"),
            CheckConstraint(condition=Q(pace__in=Pace.values), name="signals_pace_known"),
            CheckConstraint(
                condition=(Q(method=DeliveryMethod.PUSH) & ~Q(endpoint_url=""))
                | Q(method=DeliveryMethod.POLL, endpoint_url="", authorization=None),
                name="signals_push_has_endpoint",
            ),
            CheckConstraint(
                condition=Q(lease=None, leased_until=None)
                | Q(lease__isnull=False, leased_until__isnull=False),
                name="signals_lease_ends",
            ),
        ]

    def __str__(self) -> str:
        return self.description or str(self.id)

    @property
    def events_delivered(self) -> list[str]:
        """Requested events that are sent; a request may name events unknown here (SSF §8.1.1)."""
        return [event for event in SUPPORTED_EVENTS if event in self.events_requested]

    @property
    def is_push(self) -> bool:
        return self.method == DeliveryMethod.PUSH

    @property
    def is_failing(self) -> bool:
        return self.consecutive_failures > 0

    @property
    def is_unproven(self) -> bool:
        """Whether the receiver may hold a sender's thread for long: it fails, is slow, or was never asked."""
        return self.is_failing or self.pace != Pace.QUICK

    def retry_delay(self) -> timedelta:
        """Return how long to wait after the last of `consecutive_failures`."""
        position = min(max(self.consecutive_failures, 1), len(RETRY_DELAYS)) - 1
        return timedelta(seconds=RETRY_DELAYS[position])


class Signal(models.Model):
    """A Security Event Token that its receiver has not acknowledged; deleted once it has.

    `token` is empty until it is first sent. `refused_at`: the receiver refused it for good, and says `error`.
    """

    id = models.BigAutoField(primary_key=True)
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="signals")
    jti = models.UUIDField()
    entry_id = models.UUIDField(null=True)
    event = models.CharField(max_length=128, choices=signal_events)
    claims = models.JSONField()
    token = models.TextField(blank=True)
    kid = models.CharField(max_length=64, blank=True)
    attempt_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    refused_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=MAX_REASON, blank=True)

    objects = SignalQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        indexes = [
            Index(fields=["stream", "id"], condition=Q(refused_at=None), name="signals_waiting"),
            Index(fields=["refused_at"], condition=Q(refused_at__isnull=False), name="signals_refused"),
        ]
        constraints = [UniqueConstraint(fields=["stream", "jti"], name="signals_once_in_a_stream")]

    def __str__(self) -> str:
        return str(self.jti)


class FeedPosition(models.Model):
    """The one row of the position in the audit log's tree up to which signals have been derived."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    position = models.BigIntegerField()

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(id=1), name="signals_one_position"),
            CheckConstraint(condition=Q(position__gte=0), name="signals_position_counts"),
        ]

    def __str__(self) -> str:
        return f"{self.position}"
