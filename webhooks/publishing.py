"""Publish events to the webhooks that subscribe to them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.observing import correlation
from compliance.stores import sql, wakeups
from webhooks.models import Delivery, Message, Trigger, Webhook
from webhooks.vocabulary import EventName

ROWS_AT_ONCE = 1000
_SUBSCRIBED = """
SELECT id FROM webhooks_webhook
WHERE tenant_id = %(tenant)s AND deleted_at IS NULL AND active AND events @> %(names)s::varchar[]
"""


def publish(*, tenant_id: UUID, name: EventName, data: dict[str, Any], now: datetime) -> Message | None:
    """Queue a delivery to each subscribed webhook, in the caller's transaction; None if there is none."""
    messages = publish_all(tenant_id=tenant_id, name=name, data=[data], now=now)
    return messages[0] if messages else None


def publish_all(
    *, tenant_id: UUID, name: EventName, data: Iterable[dict[str, Any]], now: datetime
) -> list[Message]:
    """As `publish`, for one event of each of `data`; the statements write many rows at once."""
    found = sql.prepared(_SUBSCRIBED, {"tenant": tenant_id, "names": [name.value]})
    if not found:
        return []
    with environments.atomic():
        made = [new_message(tenant_id, name.value, one, now) for one in data]
        messages = Message.objects.bulk_create(made, batch_size=ROWS_AT_ONCE)
        webhooks = [Webhook(id=row[0], tenant_id=tenant_id) for row in found]
        pairs = ((message, webhook) for message in messages for webhook in webhooks)
        enqueue(pairs, Trigger.EVENT, now)
    return messages


def new_message(tenant_id: UUID, event: str, data: dict[str, Any], now: datetime) -> Message:
    """Return an event's message, unsaved: the envelope that a delivery sends in its webhook's format."""
    message_id = new_id()
    envelope = {"id": message_id, "event": event, "created_at": now, "data": data}
    body = orjson.dumps(envelope, option=orjson.OPT_UTC_Z)
    request_id, traceparent = correlation.stored()
    return Message(
        id=message_id,
        tenant_id=tenant_id,
        event=event,
        body=body,
        created_at=now,
        request_id=request_id,
        traceparent=traceparent,
    )


def enqueue(messages: Iterable[tuple[Message, Webhook]], trigger: Trigger, now: datetime) -> list[Delivery]:
    """Queue messages to webhooks, and wake the sender."""
    deliveries = [
        Delivery(
            tenant_id=webhook.tenant_id,
            webhook=webhook,
            message=message,
            trigger=trigger,
            next_attempt_at=now,
            created_at=now,
        )
        for message, webhook in messages
    ]
    environments.on_commit(lambda: wakeups.wake(wakeups.WEBHOOKS))
    return Delivery.objects.bulk_create(deliveries, batch_size=ROWS_AT_ONCE)
