"""Webhooks, the messages sent to them, and the history of each delivery."""

from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint

from compliance.core.identifiers import new_id
from compliance.observing.correlation import MAX_REQUEST_ID, MAX_TRACEPARENT
from compliance.outbound.addresses import MAX_URL_LENGTH
from compliance.stores.tenant_keys import TenantForeignKey
from tenancy.models import Tenant
from webhooks.querysets import DeliveryQuerySet, WebhookQuerySet
from webhooks.vocabulary import deliverable_events, event_names

# Seconds between a failed attempt's end and the next one (interface specification, Delivery and retries).
RETRY_DELAYS = (1, 10, 100)
MAX_ATTEMPTS = 1 + len(RETRY_DELAYS)
MAX_INTERRUPTIONS = 10  # repeated attempts: a delivery that kills its senders must end too
FAILING_AFTER = 3  # failed attempts in a row
SLOW_AFTER = timedelta(seconds=2)  # duration of an attempt


def retry_delay(number: int, max_attempts: int) -> timedelta | None:
    """Return how long to wait after attempt `number` failed; None after the last."""
    # Counted from the end, since each interrupted attempt raises `max_attempts`.
    left = max_attempts - number
    return timedelta(seconds=RETRY_DELAYS[-left]) if left > 0 else None


class Pace(models.TextChoices):
    """The speed of an endpoint's last attempt; decides how many requests it gets at a time."""

    UNKNOWN = "unknown"
    QUICK = "quick"
    SLOW = "slow"

    @classmethod
    def of(cls, duration: timedelta) -> "Pace":
        return cls.SLOW if duration >= SLOW_AFTER else cls.QUICK


class Format(models.TextChoices):
    """The form of a delivery's body: as specified, CloudEvents 1.0 (structured), or a Slack message."""

    STANDARD = "standard", "Envelope"
    CLOUDEVENTS = "cloudevents", "CloudEvents 1.0"
    SLACK = "slack", "Slack message"


class Webhook(models.Model):
    """A tenant's endpoint and its events; secrets are encrypted.

    `previous_secret` signs too until `previous_secret_until`. The service itself sets `disabled_at`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="webhooks")
    url = models.CharField(max_length=MAX_URL_LENGTH)
    events = ArrayField(models.CharField(max_length=64, choices=event_names))
    description = models.CharField(max_length=500, blank=True)
    format = models.CharField(
        max_length=16, choices=Format.choices, default=Format.STANDARD, db_default=Format.STANDARD
    )
    active = models.BooleanField(default=True)
    secret = models.BinaryField(editable=False)
    secret_hint = models.CharField(max_length=32)
    previous_secret = models.BinaryField(null=True, editable=False)
    previous_secret_until = models.DateTimeField(null=True)
    # Failed attempts and failed deliveries since the last success.
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
        indexes = [Index(fields=["tenant", "-created_at", "-id"], name="webhooks_tenant_time")]
        constraints = [
            CheckConstraint(condition=~Q(events=[]), name="webhooks_events_present"),
            CheckConstraint(condition=~Q(url=""), name="webhooks_url_present"),
            CheckConstraint(condition=Q(format__in=Format.values), name="webhooks_format_known"),
            CheckConstraint(condition=Q(pace__in=Pace.values), name="webhooks_pace_known"),
            CheckConstraint(
                condition=Q(previous_secret=None, previous_secret_until=None)
                | Q(previous_secret__isnull=False, previous_secret_until__isnull=False),
                name="webhooks_previous_secret_ends",
            ),
            CheckConstraint(
                condition=Q(disabled_at=None) | Q(active=False), name="webhooks_disabled_is_inactive"
            ),
        ]

    def __str__(self) -> str:
        return self.url

    @property
    def is_open(self) -> bool:
        """Return whether deliveries are sent to it."""
        return self.active and self.deleted_at is None

    @property
    def is_failing(self) -> bool:
        return self.consecutive_failures >= FAILING_AFTER


class Message(models.Model):
    """One event with the exact bytes of its envelope.

    `request_id` and `traceparent` name the request that caused it; empty where none did.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    event = models.CharField(max_length=64, choices=deliverable_events)
    body = models.BinaryField()
    created_at = models.DateTimeField()
    request_id = models.CharField(max_length=MAX_REQUEST_ID, default="", db_default="", blank=True)
    traceparent = models.CharField(max_length=MAX_TRACEPARENT, default="", db_default="", blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]


class DeliveryStatus(models.TextChoices):
    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Trigger(models.TextChoices):
    EVENT = "event"
    TEST = "test"
    REDELIVERY = "redelivery"
    NOTE = "note"


class Delivery(models.Model):
    """The sending of one message to one webhook; `lease` names the claim in force until `leased_until`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # The webhook's; nothing is looked up by it alone.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    webhook = TenantForeignKey(Webhook, on_delete=models.PROTECT, related_name="deliveries")
    message = TenantForeignKey(Message, on_delete=models.PROTECT, related_name="deliveries")
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
            Index(fields=["webhook", "-created_at", "-id"], name="webhooks_delivery_history"),
            Index(
                fields=["webhook", "next_attempt_at", "id"],
                condition=Q(status="pending"),
                name="webhooks_delivery_due",
            ),
            Index(
                fields=["webhook", "leased_until"],
                condition=Q(status="in_flight"),
                name="webhooks_delivery_leased",
            ),
        ]
        constraints = [
            UniqueConstraint(
                fields=["webhook", "message"],
                condition=Q(trigger="event"),
                name="webhooks_one_delivery_of_an_event",
            ),
            CheckConstraint(
                condition=Q(status__in=DeliveryStatus.values), name="webhooks_delivery_status_known"
            ),
            CheckConstraint(
                condition=~Q(status="in_flight") | Q(lease__isnull=False, leased_until__isnull=False),
                name="webhooks_in_flight_has_lease",
            ),
            CheckConstraint(
                condition=~Q(status="pending") | Q(next_attempt_at__isnull=False),
                name="webhooks_pending_has_time",
            ),
            CheckConstraint(
                condition=Q(status__in=["pending", "in_flight"], completed_at=None)
                | Q(status__in=["succeeded", "failed", "cancelled"], completed_at__isnull=False),
                name="webhooks_finished_has_time",
            ),
            CheckConstraint(
                condition=Q(attempt_count__lte=F("max_attempts")), name="webhooks_attempts_bounded"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.status}"

    @property
    def is_finished(self) -> bool:
        """Return whether no further attempt will be made."""
        return self.status not in (DeliveryStatus.PENDING, DeliveryStatus.IN_FLIGHT)


class Attempt(models.Model):
    """One request of a delivery, stored before it is sent and completed afterwards."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # The webhook's; nothing is looked up by it alone.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    delivery = TenantForeignKey(Delivery, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    url = models.CharField(max_length=MAX_URL_LENGTH)
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField(null=True)
    response_status = models.PositiveSmallIntegerField(null=True)
    response_body = models.TextField(null=True)  # noqa: DJ001  (null: nothing was answered)
    error = models.CharField(max_length=255, null=True)  # noqa: DJ001

    class Meta:
        ordering = ["number", "id"]
        constraints = [UniqueConstraint(fields=["delivery", "number"], name="webhooks_attempt_numbered_once")]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.delivery_id}"
