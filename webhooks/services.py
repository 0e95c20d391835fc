"""Publishing an event to the webhooks that subscribed to it."""

from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from compliance import environments
from compliance.identifiers import new_id
from compliance.tasks import enqueue_on_commit
from webhooks.models import Delivery, Message, Webhook
from webhooks.vocabulary import EventName

DELIVER = "webhooks.deliver"


def publish(*, tenant_id: UUID, name: EventName, data: dict[str, Any], now: datetime) -> Message | None:
    """Queue one delivery per subscribed webhook, inside the caller's transaction; None if nobody listens.

    `data` is the envelope's event-specific part; UUIDs and date-times in it are written as text.
    """
    webhooks = list(Webhook.objects.for_tenant(tenant_id).subscribed(name))
    if not webhooks:
        return None
    with environments.atomic():
        message = _message(tenant_id=tenant_id, name=name, data=data, now=now)
        deliveries = [
            Delivery(webhook=webhook, message=message, next_attempt_at=now, created_at=now)
            for webhook in webhooks
        ]
        Delivery.objects.bulk_create(deliveries)
        for delivery in deliveries:
            enqueue_on_commit(DELIVER, delivery_id=str(delivery.id))
    return message


def _message(*, tenant_id: UUID, name: EventName, data: dict[str, Any], now: datetime) -> Message:
    message_id = new_id()
    envelope = {"id": message_id, "event": name.value, "created_at": now, "data": data}
    body = orjson.dumps(envelope, option=orjson.OPT_UTC_Z)
    return Message.objects.create(id=message_id, tenant_id=tenant_id, event=name, body=body, created_at=now)
