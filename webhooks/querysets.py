"""Reads of webhooks and deliveries."""

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models

if TYPE_CHECKING:
    from webhooks.models import Delivery, Webhook  # noqa: F401


class WebhookQuerySet(models.QuerySet["Webhook"]):
    """Webhooks of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "WebhookQuerySet":
        return self.filter(tenant_id=tenant_id, deleted_at=None)

    def subscribed(self, event: str) -> "WebhookQuerySet":
        return self.filter(active=True, deleted_at=None, events__contains=[event])


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Deliveries of the current environment."""

    def due(self, now: datetime) -> "DeliveryQuerySet":
        return self.filter(status="pending", next_attempt_at__lte=now)

    def abandoned(self, now: datetime) -> "DeliveryQuerySet":
        return self.filter(status="in_flight", leased_until__lte=now)
