"""Reads of webhooks and deliveries."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections, models
from django.db.models import Count, Q

from compliance import environments
from compliance.identifiers import parse_id
from webhooks.errors import DeliveryNotFound, WebhookNotFound

if TYPE_CHECKING:
    from webhooks.models import Delivery, Webhook

# Oldest due deliveries of each endpoint, no more than it has free slots; the slow ones together no more than
# their lane has. A global "oldest first" would hand out nothing but the backlog of one dead endpoint.
# `endpoint` walks the partial index from one webhook to the next, so the cost grows with the endpoints that
# wait, not with what waits for them.
_DUE_BY_ENDPOINT = """
WITH RECURSIVE endpoint AS (
    (SELECT webhook_id FROM webhooks_delivery WHERE status = 'pending' ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT later.webhook_id FROM webhooks_delivery later
            WHERE later.status = 'pending' AND later.webhook_id > endpoint.webhook_id
            ORDER BY later.webhook_id LIMIT 1)
    FROM endpoint WHERE endpoint.webhook_id IS NOT NULL
), flying AS (
    SELECT webhook_id, count(*) AS held FROM webhooks_delivery
    WHERE status = 'in_flight' AND leased_until > %(now)s GROUP BY webhook_id
), slots AS (
    SELECT webhook.id AS webhook_id, webhook.pace = 'slow' AS is_slow,
           CASE webhook.pace WHEN 'quick' THEN %(slots)s ELSE 1 END - COALESCE(flying.held, 0) AS free
    FROM endpoint JOIN webhooks_webhook webhook ON webhook.id = endpoint.webhook_id
    LEFT JOIN flying ON flying.webhook_id = webhook.id
), lane AS (
    SELECT %(slow_slots)s - COALESCE(sum(flying.held), 0) AS free
    FROM flying JOIN webhooks_webhook webhook ON webhook.id = flying.webhook_id AND webhook.pace = 'slow'
), due AS (
    SELECT found.*, row_number() OVER (
        PARTITION BY found.is_slow ORDER BY found.next_attempt_at, found.id) AS place
    FROM slots CROSS JOIN LATERAL (
        SELECT delivery.id, delivery.next_attempt_at, slots.is_slow FROM webhooks_delivery delivery
        WHERE delivery.webhook_id = slots.webhook_id AND delivery.status = 'pending'
          AND delivery.next_attempt_at <= %(due_by)s
        ORDER BY delivery.next_attempt_at, delivery.id
        LIMIT GREATEST(slots.free, 0)
    ) found
)
SELECT due.id FROM due CROSS JOIN lane
WHERE NOT due.is_slow OR due.place <= lane.free
ORDER BY due.next_attempt_at, due.id
LIMIT %(limit)s
"""
# A number of our own among the database's advisory locks.
_SLOW_LANE = 7_305_221_001


class WebhookQuerySet(models.QuerySet["Webhook"]):
    """Webhooks of the current environment."""

    def existing(self) -> "WebhookQuerySet":
        return self.filter(deleted_at=None)

    def for_tenant(self, tenant_id: UUID) -> "WebhookQuerySet":
        return self.existing().filter(tenant_id=tenant_id)

    def with_counts(self) -> "WebhookQuerySet":
        """With `pending_count` and `failed_count` of their deliveries."""
        return self.annotate(
            pending_count=Count("deliveries", filter=Q(deliveries__status="pending")),
            failed_count=Count("deliveries", filter=Q(deliveries__status="failed")),
        )

    def subscribed(self, event: str) -> "WebhookQuerySet":
        return self.existing().filter(active=True, events__contains=[event])

    def newest_first(self) -> "WebhookQuerySet":
        return self.order_by("-created_at", "-id")

    def locked(self) -> "WebhookQuerySet":
        """The rows locked until the transaction ends; deliveries to them can still be published."""
        return self.select_for_update(of=("self",), no_key=True)

    def find(self, webhook_id: Any) -> "Webhook":
        """The webhook with the id that a client wrote; raises `WebhookNotFound`, for nonsense too."""
        parsed = webhook_id if isinstance(webhook_id, UUID) else parse_id(webhook_id)
        webhook = self.filter(id=parsed).first() if parsed else None
        if webhook is None:
            raise WebhookNotFound()
        return webhook


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Deliveries of the current environment."""

    def to_webhook(self, webhook: "Webhook") -> "DeliveryQuerySet":
        return self.filter(webhook=webhook)

    def of_event(self, event: str | None) -> "DeliveryQuerySet":
        return self.filter(message__event=event) if event else self

    def with_status(self, status: str | None) -> "DeliveryQuerySet":
        return self.filter(status=status) if status else self

    def pending(self) -> "DeliveryQuerySet":
        return self.filter(status="pending")

    def failed_since(self, since: datetime) -> "DeliveryQuerySet":
        return self.filter(status="failed", created_at__gte=since)

    def in_flight(self, now: datetime) -> "DeliveryQuerySet":
        """Being sent by somebody who still may."""
        return self.filter(status="in_flight", leased_until__gt=now)

    def abandoned(self, now: datetime) -> "DeliveryQuerySet":
        """Taken by a sender that did not come back in time."""
        return self.filter(status="in_flight", leased_until__lte=now)

    def claimable(self, now: datetime) -> "DeliveryQuerySet":
        return self.filter(
            Q(status="pending", next_attempt_at__lte=now) | Q(status="in_flight", leased_until__lte=now)
        )

    def leased_as(self, lease: UUID) -> "DeliveryQuerySet":
        return self.filter(status="in_flight", lease=lease)

    def unlocked(self) -> "DeliveryQuerySet":
        """The rows locked until the transaction ends; those that others hold are left out."""
        return self.select_for_update(of=("self",), no_key=True, skip_locked=True)

    def with_history(self) -> "DeliveryQuerySet":
        """With what the API shows of each, in two queries."""
        return self.select_related("message").prefetch_related("attempts")

    def to_slow_webhooks(self) -> "DeliveryQuerySet":
        return self.filter(webhook__pace="slow")

    def lock_slow_lane(self) -> None:
        """Let no other claim for a slow webhook through until the transaction ends."""
        with connections[environments.current().alias].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SLOW_LANE])

    def next_waiting(self, webhook_id: UUID, now: datetime) -> UUID | None:
        """The endpoint's oldest due delivery, if any."""
        due = self.pending().filter(webhook_id=webhook_id, next_attempt_at__lte=now)
        return due.order_by("next_attempt_at", "id").values_list("id", flat=True).first()

    def find(self, delivery_id: Any) -> "Delivery":
        """The delivery with the id that a client wrote; raises `DeliveryNotFound`, for nonsense too."""
        parsed = delivery_id if isinstance(delivery_id, UUID) else parse_id(delivery_id)
        delivery = self.filter(id=parsed).first() if parsed else None
        if delivery is None:
            raise DeliveryNotFound()
        return delivery

    def due_by_endpoint(
        self, *, now: datetime, due_by: datetime, slots: int, slow_slots: int, limit: int
    ) -> list[UUID]:
        """Ids of due deliveries, each endpoint's oldest within its free slots, at most `limit`."""
        values: dict[str, datetime | int] = {
            "now": now,
            "due_by": due_by,
            "slots": slots,
            "slow_slots": slow_slots,
            "limit": limit,
        }
        with connections[environments.current().alias].cursor() as cursor:
            cursor.execute(_DUE_BY_ENDPOINT, values)
            return [row[0] for row in cursor.fetchall()]
