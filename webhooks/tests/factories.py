"""Webhooks and deliveries for tests, named by state."""

from datetime import datetime
from typing import Any

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from tenancy.models import Tenant
from webhooks import publishing, services
from webhooks.models import Delivery, Pace, Webhook
from webhooks.vocabulary import EventName

ACTOR = Actor.system("tests")
URL = "https://hooks.example.com/agents"


def make_webhook_with_secret(
    tenant: Tenant, url: str = URL, events: list[str] | None = None, description: str = ""
) -> tuple[Webhook, str]:
    """A webhook, to `certificate.revoked` unless events are named, and its secret."""
    events = events or [EventName.CERTIFICATE_REVOKED.value]
    made = services.create(
        tenant_id=tenant.id, url=url, events=events, description=description, actor=ACTOR, now=now()
    )
    return made.webhook, made.secret


def make_webhook(tenant: Tenant, url: str = URL, events: list[str] | None = None) -> Webhook:
    return make_webhook_with_secret(tenant, url, events)[0]


def make_webhook_of_pace(tenant: Tenant, pace: Pace, events: list[str] | None = None) -> Webhook:
    """A webhook whose last attempt was quick, or slow."""
    webhook = make_webhook(tenant, events=events)
    Webhook.objects.filter(id=webhook.id).update(pace=pace)
    webhook.pace = pace
    return webhook


def make_inactive_webhook(tenant: Tenant, url: str = URL) -> Webhook:
    webhook = make_webhook(tenant, url)
    return services.update(
        tenant_id=tenant.id, webhook_id=webhook.id, changes={"active": False}, actor=ACTOR, now=now()
    )


def make_delivery(
    webhook: Webhook, *, event: EventName = EventName.CERTIFICATE_REVOKED, at: datetime | None = None
) -> Delivery:
    """A pending delivery, due at once or at `at`."""
    message = publishing.publish(
        tenant_id=webhook.tenant_id, name=event, data={"serial_number": "ab"}, now=at or now()
    )
    assert message is not None
    return Delivery.objects.select_related("message").get(webhook=webhook, message=message)


def make_finished_delivery(webhook: Webhook, status: str, **fields: Any) -> Delivery:
    delivery = make_delivery(webhook)
    values = {"next_attempt_at": None, "completed_at": now(), **fields}
    Delivery.objects.filter(id=delivery.id).update(status=status, **values)
    return Delivery.objects.select_related("message").get(id=delivery.id)
