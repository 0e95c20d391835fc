"""Webhooks, the messages they carry, and the history of each delivery."""

from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from compliance.identifiers import new_id
from compliance.tenancy.models import Tenant
from webhooks.addresses import MAX_URL_LENGTH
from webhooks.querysets import DeliveryQuerySet, WebhookQuerySet
from webhooks.vocabulary import DELIVERABLE_EVENTS, EventName

# Seconds between a failed attempt's end and the next one (interface specification, Delivery and retries).
RETRY_DELAYS = (1, 10, 100)
MAX_ATTEMPTS = 1 + len(RETRY_DELAYS)
# How often an attempt that a dying process left open is made up for: what kills its senders must end too.
MAX_INTERRUPTIONS = 10
# Failures in a row after which the console calls an endpoint failing.
FAILING_AFTER = 3
# How long an attempt lasts that makes its endpoint a slow one.
SLOW_AFTER = timedelta(seconds=2)


def retry_delay(number: int, max_attempts: int) -> timedelta | None:
    """How long to wait after attempt `number` failed; None when it was the last of all.

    Counted from the end, so that an attempt made up for does not lengthen the waits.
    """
    left = max_attempts - number
    return timedelta(seconds=RETRY_DELAYS[-left]) if left > 0 else None


class Pace(models.TextChoices):
    """How long the endpoint's last attempt took: what decides how many senders it may occupy."""

    UNKNOWN = "unknown"
    QUICK = "quick"
    SLOW = "slow"

    @classmethod
    def of(cls, duration: timedelta) -> "Pace":
        return cls.SLOW if duration >= SLOW_AFTER else cls.QUICK


class Webhook(models.Model):
    """A tenant's endpoint and what it wants to hear; secrets are encrypted at rest, gone once deleted.

    `previous_secret` signs beside `secret` until its time. `disabled_at`: switched off by the service itself.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="webhooks")
    url = models.CharField(max_length=MAX_URL_LENGTH)
    events = ArrayField(models.CharField(max_length=64, choices=EventName.choices))
    description = models.CharField(max_length=500, blank=True)
    active = models.BooleanField(default=True)
    secret = models.BinaryField(editable=False)
    secret_hint = models.CharField(max_length=32)
    previous_secret = models.BinaryField(null=True, editable=False)
    previous_secret_until = models.DateTimeField(null=True)
    # Attempts that failed since the last success, and deliveries that were given up since then.
    consecutive_failures = models.PositiveIntegerField(default=0)
    failed_deliveries = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    pace = models.CharField(max_length=16, choices=Pace.choices, default=Pace.UNKNOWN)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["tenant", "-created_at", "-id"], name="webhooks_tenant_time")]
        constraints = [
            models.CheckConstraint(condition=~Q(events=[]), name="webhooks_events_present"),
            models.CheckConstraint(condition=~Q(url=""), name="webhooks_url_present"),
            models.CheckConstraint(condition=Q(pace__in=Pace.values), name="webhooks_pace_known"),
            models.CheckConstraint(
                condition=Q(previous_secret=None, previous_secret_until=None)
                | Q(previous_secret__isnull=False, previous_secret_until__isnull=False),
                name="webhooks_previous_secret_ends",
            ),
            models.CheckConstraint(
                condition=Q(disabled_at=None) | Q(active=False), name="webhooks_disabled_is_inactive"
            ),
        ]

    def __str__(self) -> str:
        return self.url

    @property
    def is_open(self) -> bool:
        """Whether deliveries to it are sent at all."""
        return self.active and self.deleted_at is None

    @property
    def is_failing(self) -> bool:
        """Whether its last attempts all failed."""
        return self.consecutive_failures >= FAILING_AFTER


class Message(models.Model):
    """One event as it is sent: the exact bytes of its envelope."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    event = models.CharField(max_length=64, choices=[(name, name) for name in DELIVERABLE_EVENTS])
    body = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.event} {self.id}"


class DeliveryStatus(models.TextChoices):
    """Where a delivery stands."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Trigger(models.TextChoices):
    """What started a delivery."""

    EVENT = "event"
    TEST = "test"
    REDELIVERY = "redelivery"
    NOTE = "note"


class Delivery(models.Model):
    """A message on its way to one webhook; `lease` names the attempt that holds it until `leased_until`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.PROTECT, related_name="deliveries")
    message = models.ForeignKey(Message, on_delete=models.PROTECT, related_name="deliveries")
    status = models.CharField(max_length=16, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING)
    trigger = models.CharField(max_length=16, choices=Trigger.choices, default=Trigger.EVENT)
    attempt_count = models.PositiveSmallIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=MAX_ATTEMPTS)
    next_attempt_at = models.DateTimeField(null=True)
    lease = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["webhook", "-created_at", "-id"], name="webhooks_delivery_history"),
            models.Index(
                fields=["webhook", "next_attempt_at", "id"],
                condition=Q(status="pending"),
                name="webhooks_delivery_due",
            ),
            models.Index(
                fields=["webhook", "leased_until"],
                condition=Q(status="in_flight"),
                name="webhooks_delivery_leased",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["webhook", "message"],
                condition=Q(trigger="event"),
                name="webhooks_one_delivery_of_an_event",
            ),
            models.CheckConstraint(
                condition=Q(status__in=DeliveryStatus.values), name="webhooks_delivery_status_known"
            ),
            models.CheckConstraint(
                condition=~Q(status="in_flight") | Q(lease__isnull=False, leased_until__isnull=False),
                name="webhooks_in_flight_has_lease",
            ),
            models.CheckConstraint(
                condition=~Q(status="pending") | Q(next_attempt_at__isnull=False),
                name="webhooks_pending_has_time",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["pending", "in_flight"], completed_at=None)
                | Q(status__in=["succeeded", "failed", "cancelled"], completed_at__isnull=False),
                name="webhooks_finished_has_time",
            ),
            models.CheckConstraint(
                condition=Q(attempt_count__lte=F("max_attempts")), name="webhooks_attempts_bounded"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.status}"

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will be sent."""
        return self.status not in (DeliveryStatus.PENDING, DeliveryStatus.IN_FLIGHT)


class Attempt(models.Model):
    """One try of a delivery, written before it is sent and completed after."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    url = models.CharField(max_length=MAX_URL_LENGTH)
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField(null=True)
    response_status = models.PositiveSmallIntegerField(null=True)
    response_body = models.TextField(null=True)  # noqa: DJ001  (null: nothing was answered)
    error = models.CharField(max_length=255, null=True)  # noqa: DJ001

    class Meta:
        ordering = ["number", "id"]
        constraints = [
            models.UniqueConstraint(fields=["delivery", "number"], name="webhooks_attempt_numbered_once")
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.delivery_id}"
