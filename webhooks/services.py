"""Webhooks: publishing events to them, and their life from registration to deletion."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance import environments, sql
from compliance.encryption import encrypt
from compliance.environments import Environment
from compliance.identifiers import new_id
from compliance.tenancy.models import Tenant
from webhooks import doorbell, signature
from webhooks.addresses import UrlPolicy, UrlRefused, check_url
from webhooks.errors import DeliveryUnderWay, InvalidUrl, TooManyWebhooks, WebhookInactive
from webhooks.models import Delivery, DeliveryStatus, Message, Pace, Trigger, Webhook
from webhooks.vocabulary import DISABLED_EVENT, TEST_EVENT, EventName

# How many failed deliveries one call recovers; the webhook is locked meanwhile.
RECOVERY_LIMIT = 5_000
_HEALTH = ("consecutive_failures", "failed_deliveries", "failing_since", "disabled_at", "pace")
_SUBSCRIBED = """
SELECT id FROM webhooks_webhook
WHERE tenant_id = %(tenant)s AND deleted_at IS NULL AND active AND events @> %(names)s::varchar[]
"""
_SECRETS = ("secret", "previous_secret", "previous_secret_until")


@dataclass(frozen=True)
class Registration:
    """What a tenant says of a new webhook."""

    url: str
    events: list[str]
    description: str = ""


@dataclass(frozen=True)
class NewSecret:
    """A webhook and its fresh secret, which nobody can read again."""

    webhook: Webhook
    secret: str


def url_policy() -> UrlPolicy:
    """What the settings allow; the test environment may use plain HTTP, as nothing in it is real."""
    is_test = environments.current() is Environment.TEST
    return UrlPolicy(
        allow_http=settings.WEBHOOK_ALLOW_HTTP or is_test,
        allow_private=settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES,
    )


def publish(*, tenant_id: UUID, name: EventName, data: dict[str, Any], now: datetime) -> Message | None:
    """Queue one delivery per subscribed webhook, inside the caller's transaction; None if nobody listens.

    `data` is the envelope's event-specific part; UUIDs and date-times in it are written as text.
    """
    found = sql.prepared(_SUBSCRIBED, {"tenant": tenant_id, "names": [name.value]})
    if not found:
        return None
    webhooks = [Webhook(id=row[0]) for row in found]
    with environments.atomic():
        message = _message(tenant_id=tenant_id, event=name.value, data=data, now=now)
        _queue(message=message, webhooks=webhooks, trigger=Trigger.EVENT, now=now)
    return message


def create(*, tenant_id: UUID, registration: Registration, actor: Actor, now: datetime) -> NewSecret:
    """A webhook with a secret of its own; raises `InvalidUrl`, `TooManyWebhooks`."""
    host = _host_of(registration.url)
    secret = signature.new_secret()
    with environments.atomic():
        _check_room(tenant_id)
        webhook = Webhook.objects.create(
            tenant_id=tenant_id,
            **vars(registration),
            secret=encrypt(secret.encode()),
            secret_hint=signature.hint_of(secret),
            created_at=now,
            updated_at=now,
        )
        _record(webhook, AuditAction.WEBHOOK_CREATED, actor, now, f"Webhook to {host} created")
    return NewSecret(webhook, secret)


def update(
    *, tenant_id: UUID, webhook_id: Any, changes: dict[str, Any], actor: Actor, now: datetime
) -> Webhook:
    """Set the named fields; switching off cancels what waits. `WebhookNotFound`, `InvalidUrl`."""
    if "url" in changes:
        _host_of(changes["url"])
    with environments.atomic():
        webhook = Webhook.objects.for_tenant(tenant_id).locked().find(webhook_id)
        changed = sorted(name for name, value in changes.items() if getattr(webhook, name) != value)
        if not changed:
            return webhook
        for name in changed:
            setattr(webhook, name, changes[name])
        webhook.updated_at = now
        if "url" in changed or "active" in changed:
            # A new address, or one switched on again, is not judged by what was before.
            webhook.consecutive_failures = webhook.failed_deliveries = 0
            webhook.failing_since = webhook.disabled_at = None
            webhook.pace = Pace.UNKNOWN
        webhook.save(update_fields=[*changed, "updated_at", *_HEALTH])
        if not webhook.active:
            _end_pending(webhook, DeliveryStatus.CANCELLED, now)
        description = f"Webhook to {_host_of(webhook.url)} updated: {', '.join(changed)}"
        _record(webhook, AuditAction.WEBHOOK_UPDATED, actor, now, description, changed=changed)
    return webhook


def delete(*, tenant_id: UUID, webhook_id: Any, actor: Actor, now: datetime) -> None:
    """Take the webhook out of use for good, secret included; its history stays. `WebhookNotFound`."""
    with environments.atomic():
        webhook = Webhook.objects.for_tenant(tenant_id).locked().find(webhook_id)
        webhook.active, webhook.secret = False, b""
        webhook.previous_secret = webhook.previous_secret_until = None
        webhook.deleted_at = webhook.updated_at = now
        webhook.save(update_fields=["active", *_SECRETS, "deleted_at", "updated_at"])
        cancelled = _end_pending(webhook, DeliveryStatus.CANCELLED, now)
        _record(webhook, AuditAction.WEBHOOK_DELETED, actor, now, "Webhook deleted", cancelled=cancelled)


def disable(*, webhook: Webhook, now: datetime) -> None:
    """Switch off, by the service itself, a locked webhook that has failed for too long.

    What waits becomes failed, so that recovering the failed finds it. A note in its history tells of it.
    """
    webhook.active, webhook.disabled_at, webhook.updated_at = False, now, now
    webhook.save(update_fields=["active", "disabled_at", "updated_at"])
    given_up = _end_pending(webhook, DeliveryStatus.FAILED, now)
    counts = {"failed_deliveries": webhook.failed_deliveries, "failing_since": webhook.failing_since}
    data = {"webhook_id": webhook.id, **counts, "given_up": given_up}
    message = _message(tenant_id=webhook.tenant_id, event=DISABLED_EVENT, data=data, now=now)
    Delivery.objects.create(
        webhook=webhook,
        message=message,
        trigger=Trigger.NOTE,
        status=DeliveryStatus.CANCELLED,
        created_at=now,
        completed_at=now,
    )
    _record(
        webhook,
        AuditAction.WEBHOOK_DISABLED,
        Actor.system("webhooks"),
        now,
        f"Webhook disabled after {webhook.failed_deliveries} failed deliveries in a row",
        given_up=given_up,
        failed_deliveries=webhook.failed_deliveries,
    )


def rotate_secret(
    *, tenant_id: UUID, webhook_id: Any, actor: Actor, now: datetime, overlap_seconds: int | None = None
) -> NewSecret:
    """A new secret for every attempt from now on, retries included; raises `WebhookNotFound`.

    The old one signs beside it for `overlap_seconds` more, WEBHOOK_SECRET_OVERLAP_SECONDS unless given.
    """
    seconds = settings.WEBHOOK_SECRET_OVERLAP_SECONDS if overlap_seconds is None else overlap_seconds
    until = now + timedelta(seconds=seconds) if seconds else None
    secret = signature.new_secret()
    with environments.atomic():
        webhook = Webhook.objects.for_tenant(tenant_id).locked().find(webhook_id)
        webhook.previous_secret, webhook.previous_secret_until = webhook.secret if until else None, until
        webhook.secret, webhook.secret_hint = encrypt(secret.encode()), signature.hint_of(secret)
        webhook.updated_at = now
        webhook.save(update_fields=[*_SECRETS, "secret_hint", "updated_at"])
        _record(
            webhook,
            AuditAction.WEBHOOK_SECRET_ROTATED,
            actor,
            now,
            "Webhook secret rotated",
            overlap_seconds=seconds,
        )
    return NewSecret(webhook, secret)


def send_test(*, tenant_id: UUID, webhook_id: Any, actor: Actor, now: datetime) -> Delivery:
    """Queue a `webhook.test` message to this webhook alone; `WebhookNotFound`, `WebhookInactive`."""
    with environments.atomic():
        webhook = _active_webhook(tenant_id, webhook_id)
        data = {"webhook_id": webhook.id}
        message = _message(tenant_id=tenant_id, event=TEST_EVENT, data=data, now=now)
        (delivery,) = _queue(message=message, webhooks=[webhook], trigger=Trigger.TEST, now=now)
        _record(webhook, AuditAction.WEBHOOK_TESTED, actor, now, "Webhook tested", event_id=str(message.id))
    return delivery


def redeliver(*, tenant_id: UUID, webhook_id: Any, delivery_id: Any, actor: Actor, now: datetime) -> Delivery:
    """Queue the same message, id and bytes, once more, as a delivery of its own.

    Raises `WebhookNotFound`, `DeliveryNotFound`, `WebhookInactive`, `DeliveryUnderWay`.
    """
    with environments.atomic():
        webhook = _active_webhook(tenant_id, webhook_id)
        delivery = Delivery.objects.to_webhook(webhook).select_related("message").find(delivery_id)
        if not delivery.is_finished:
            raise DeliveryUnderWay()
        return _redeliver(webhook, delivery, actor, now)


def redeliver_failed(
    *, tenant_id: UUID, webhook_id: Any, since: datetime, actor: Actor, now: datetime
) -> list[Delivery]:
    """Redeliver the messages whose last delivery, made since `since`, has failed: `RECOVERY_LIMIT` oldest.

    Raises `WebhookNotFound`, `WebhookInactive`.
    """
    with environments.atomic():
        webhook = _active_webhook(tenant_id, webhook_id)
        latest = (
            Delivery.objects.to_webhook(webhook)
            .order_by("message_id", "-created_at", "-id")
            .distinct("message_id")
            .values("id")
        )
        failed = Delivery.objects.to_webhook(webhook).failed_since(since).filter(id__in=latest)
        oldest = failed.select_related("message").order_by("created_at", "id")[:RECOVERY_LIMIT]
        again = [_delivery(row.message, webhook, Trigger.REDELIVERY, now) for row in oldest]
        _put(again)
        description = f"{len(again)} failed events redelivered"
        times = {"since": since.isoformat(), "redelivered": len(again)}
        _record(webhook, AuditAction.WEBHOOK_REDELIVERED, actor, now, description, **times)
    return again


def _active_webhook(tenant_id: UUID, webhook_id: Any) -> Webhook:
    webhook = Webhook.objects.for_tenant(tenant_id).locked().find(webhook_id)
    if not webhook.active:
        raise WebhookInactive()
    return webhook


def _redeliver(webhook: Webhook, delivery: Delivery, actor: Actor, now: datetime) -> Delivery:
    (again,) = _queue(message=delivery.message, webhooks=[webhook], trigger=Trigger.REDELIVERY, now=now)
    _record(
        webhook,
        AuditAction.WEBHOOK_REDELIVERED,
        actor,
        now,
        f"Event {delivery.message_id} redelivered",
        delivery_id=str(again.id),
        event_id=str(delivery.message_id),
    )
    return again


def _message(*, tenant_id: UUID, event: str, data: dict[str, Any], now: datetime) -> Message:
    message_id = new_id()
    envelope = {"id": message_id, "event": event, "created_at": now, "data": data}
    body = orjson.dumps(envelope, option=orjson.OPT_UTC_Z)
    return Message.objects.create(id=message_id, tenant_id=tenant_id, event=event, body=body, created_at=now)


def _queue(
    *, message: Message, webhooks: Iterable[Webhook], trigger: Trigger, now: datetime
) -> list[Delivery]:
    deliveries = [_delivery(message, webhook, trigger, now) for webhook in webhooks]
    _put(deliveries)
    return deliveries


def _delivery(message: Message, webhook: Webhook, trigger: Trigger, now: datetime) -> Delivery:
    return Delivery(webhook=webhook, message=message, trigger=trigger, next_attempt_at=now, created_at=now)


def _put(deliveries: list[Delivery]) -> None:
    """Into the queue, and ring once it is committed."""
    Delivery.objects.bulk_create(deliveries, batch_size=1000)
    doorbell.ring_on_commit()


def _end_pending(webhook: Webhook, status: DeliveryStatus, now: datetime) -> int:
    """End what waits for the locked webhook; how many."""
    return (
        Delivery.objects.to_webhook(webhook)
        .pending()
        .update(status=status, next_attempt_at=None, completed_at=now)
    )


def _check_room(tenant_id: UUID) -> None:
    """Every event writes a row for each webhook: there is a limit, counted under the tenant's lock."""
    Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
    if Webhook.objects.for_tenant(tenant_id).count() >= settings.WEBHOOKS_PER_TENANT:
        raise TooManyWebhooks(f"A tenant can have at most {settings.WEBHOOKS_PER_TENANT} webhooks")


def _host_of(url: str) -> str:
    try:
        return check_url(url, url_policy()).host
    except UrlRefused as refusal:
        raise InvalidUrl(f"url: {refusal}") from refusal


def _record(
    webhook: Webhook, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> None:
    """The URL stays out: many carry a token."""
    auditlog.record(
        tenant_id=webhook.tenant_id,
        action=action,
        affected_id=webhook.id,
        description=description,
        metadata={"events": webhook.events, "active": webhook.active, **metadata},
        actor=actor,
        now=now,
    )
