"""Queries for webhooks and deliveries."""

from datetime import datetime
from typing import TYPE_CHECKING, Self
from uuid import UUID

from compliance.core.errors import NotFound
from compliance.stores.rows import TenantRows

if TYPE_CHECKING:
    from webhooks.models import Delivery, Webhook


class WebhookNotFound(NotFound):
    message = "Webhook not found"


class DeliveryNotFound(NotFound):
    message = "Delivery not found"


class WebhookQuerySet(TenantRows["Webhook"]):
    missing = WebhookNotFound

    def existing(self) -> Self:
        return self.filter(deleted_at=None)

    def for_tenant(self, tenant_id: UUID) -> Self:
        return super().for_tenant(tenant_id).existing()


class DeliveryQuerySet(TenantRows["Delivery"]):
    missing = DeliveryNotFound

    def to_webhook(self, webhook: "Webhook") -> "DeliveryQuerySet":
        return self.filter(tenant_id=webhook.tenant_id, webhook=webhook)

    def pending(self) -> "DeliveryQuerySet":
        return self.filter(status="pending")

    def due(self, now: datetime) -> "DeliveryQuerySet":
        return self.pending().filter(next_attempt_at__lte=now)
