"""Reads of webhooks and deliveries."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Count, Q

from compliance.identifiers import parse_id
from webhooks.errors import DeliveryNotFound, WebhookNotFound

if TYPE_CHECKING:
    from webhooks.models import Delivery, Webhook


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

    def newest_first(self) -> "WebhookQuerySet":
        return self.order_by("-created_at", "-id")

    def locked(self) -> "WebhookQuerySet":
        """The rows locked until the transaction ends; deliveries to them can still be published."""
        return self.select_for_update(of=("self",), no_key=True)

    def locked_or_skipped(self) -> "WebhookQuerySet":
        """As `locked()`, without those that others hold."""
        return self.select_for_update(of=("self",), no_key=True, skip_locked=True)

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

    def with_history(self) -> "DeliveryQuerySet":
        """With what the API shows of each, in two queries."""
        return self.select_related("message").prefetch_related("attempts")

    def find(self, delivery_id: Any) -> "Delivery":
        """The delivery with the id that a client wrote; raises `DeliveryNotFound`, for nonsense too."""
        parsed = delivery_id if isinstance(delivery_id, UUID) else parse_id(delivery_id)
        delivery = self.filter(id=parsed).first() if parsed else None
        if delivery is None:
            raise DeliveryNotFound()
        return delivery
