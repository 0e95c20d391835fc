"""Manage webhooks from creation to deletion."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.encryption import encrypt
from compliance.core.environments import Environment
from compliance.core.errors import Conflict, Invalid, InvalidState
from compliance.outbound.addresses import UrlPolicy, UrlRefused, check_url
from tenancy.models import Tenant
from webhooks.models import Delivery, DeliveryStatus, Format, Pace, Trigger, Webhook
from webhooks.publishing import enqueue, new_message
from webhooks.sending import signature
from webhooks.vocabulary import DISABLED_EVENT, TEST_EVENT

# Failed deliveries recovered by one call; the webhook is locked meanwhile.
RECOVERY_LIMIT = 5_000
_HEALTH = ("consecutive_failures", "failed_deliveries", "failing_since", "disabled_at", "pace")
_SECRETS = ("secret", "previous_secret", "previous_secret_until")


@dataclass(frozen=True)
class NewSecret:
    """A webhook and its new secret, which cannot be read again."""

    webhook: Webhook
    secret: str


def url_policy() -> UrlPolicy:
    """Return what the settings allow; the test environment may use plain HTTP, as nothing in it is real."""
    is_test = environments.current() is Environment.TEST
    return UrlPolicy(settings.WEBHOOK_ALLOW_HTTP or is_test, settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES)


def create(
    *,
    tenant_id: UUID,
    url: str,
    events: list[str],
    description: str = "",
    format: str = Format.STANDARD,  # noqa: A002  (the API's name)
    actor: Actor,
    now: datetime,
) -> NewSecret:
    """Create a webhook with a secret of its own; raises `Invalid`, `Conflict` if there are too many."""
    host = _host_of(url)
    secret = signature.new_secret()
    with environments.atomic():
        # Each event writes a row for each webhook.
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        if Webhook.objects.for_tenant(tenant_id).count() >= settings.WEBHOOKS_PER_TENANT:
            raise Conflict(f"A tenant can have at most {settings.WEBHOOKS_PER_TENANT} webhooks")
        webhook = Webhook.objects.create(
            tenant_id=tenant_id,
            url=url,
            events=events,
            description=description,
            format=format,
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
    """Set fields; switching off cancels pending deliveries. Raises `WebhookNotFound`, `Invalid`."""
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
            # Failures of another address, or from before it was switched off, no longer count.
            webhook.consecutive_failures = webhook.failed_deliveries = 0
            webhook.failing_since = webhook.disabled_at = None
            webhook.pace = Pace.UNKNOWN
        webhook.save(update_fields=[*changed, "updated_at", *_HEALTH])
        if not webhook.active:
            _finish_pending(webhook, DeliveryStatus.CANCELLED, now)
        description = f"Webhook to {_host_of(webhook.url)} updated: {', '.join(changed)}"
        _record(webhook, AuditAction.WEBHOOK_UPDATED, actor, now, description, changed=changed)
    return webhook


def delete(*, tenant_id: UUID, webhook_id: Any, actor: Actor, now: datetime) -> None:
    """Delete a webhook and its secret; its history stays. Raises `WebhookNotFound`."""
    with environments.atomic():
        webhook = Webhook.objects.for_tenant(tenant_id).locked().find(webhook_id)
        webhook.active, webhook.secret = False, b""
        webhook.previous_secret = webhook.previous_secret_until = None
        webhook.deleted_at = webhook.updated_at = now
        webhook.save(update_fields=["active", *_SECRETS, "deleted_at", "updated_at"])
        cancelled = _finish_pending(webhook, DeliveryStatus.CANCELLED, now)
        _record(webhook, AuditAction.WEBHOOK_DELETED, actor, now, "Webhook deleted", cancelled=cancelled)


def disable(*, webhook: Webhook, is_gone: bool, now: datetime) -> None:
    """Switch off a locked webhook that failed for too long or is gone, and note it in its history."""
    webhook.active, webhook.disabled_at, webhook.updated_at = False, now, now
    webhook.save(update_fields=["active", "disabled_at", "updated_at"])
    # Failed, not cancelled, so that a recovery includes them.
    given_up = _finish_pending(webhook, DeliveryStatus.FAILED, now)
    failed = webhook.failed_deliveries
    why = {"webhook_id": webhook.id, "reason": "gone" if is_gone else "failing"}
    counts = {"failed_deliveries": failed, "failing_since": webhook.failing_since, "given_up": given_up}
    message = new_message(webhook.tenant_id, DISABLED_EVENT, {**why, **counts}, now)
    message.save(force_insert=True)
    finished = {"status": DeliveryStatus.CANCELLED, "created_at": now, "completed_at": now}
    of_webhook = {"tenant_id": webhook.tenant_id, "webhook": webhook, "message": message}
    Delivery.objects.create(**of_webhook, trigger=Trigger.NOTE, **finished)
    words = "its receiver answered 410 Gone" if is_gone else f"{failed} deliveries in a row failed"
    description = f"Webhook disabled: {words}"
    action, actor = AuditAction.WEBHOOK_DISABLED, Actor.system("webhooks")
    _record(webhook, action, actor, now, description, given_up=given_up, failed_deliveries=failed)


def rotate_secret(
    *, tenant_id: UUID, webhook_id: Any, actor: Actor, now: datetime, overlap_seconds: int | None = None
) -> NewSecret:
    """Set a new secret for every attempt from now on, retries included; raises `WebhookNotFound`.

    The old one also signs for `overlap_seconds`, by default WEBHOOK_SECRET_OVERLAP_SECONDS.
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
        action, description = AuditAction.WEBHOOK_SECRET_ROTATED, "Webhook secret rotated"
        _record(webhook, action, actor, now, description, overlap_seconds=seconds)
    return NewSecret(webhook, secret)


def send_test(*, tenant_id: UUID, webhook_id: Any, actor: Actor, now: datetime) -> Delivery:
    """Queue a `webhook.test` message to one webhook; raises `WebhookNotFound`, `InvalidState`."""
    with environments.atomic():
        webhook = _lock_active(tenant_id, webhook_id)
        message = new_message(tenant_id, TEST_EVENT, {"webhook_id": webhook.id}, now)
        message.save(force_insert=True)
        (delivery,) = enqueue([(message, webhook)], Trigger.TEST, now)
        _record(webhook, AuditAction.WEBHOOK_TESTED, actor, now, "Webhook tested", event_id=str(message.id))
    return delivery


def redeliver(*, tenant_id: UUID, webhook_id: Any, delivery_id: Any, actor: Actor, now: datetime) -> Delivery:
    """Queue the message of a finished delivery again, as a new delivery with the same id and bytes.

    Raises `WebhookNotFound`, `DeliveryNotFound`; `InvalidState` if one is inactive or under way.
    """
    with environments.atomic():
        webhook = _lock_active(tenant_id, webhook_id)
        delivery = Delivery.objects.to_webhook(webhook).select_related("message").find(delivery_id)
        if not delivery.is_finished:
            raise InvalidState("Delivery is still under way")
        (again,) = enqueue([(delivery.message, webhook)], Trigger.REDELIVERY, now)
        description = f"Event {delivery.message_id} redelivered"
        ids = {"delivery_id": str(again.id), "event_id": str(delivery.message_id)}
        _record(webhook, AuditAction.WEBHOOK_REDELIVERED, actor, now, description, **ids)
    return again


def redeliver_failed(
    *, tenant_id: UUID, webhook_id: Any, since: datetime, actor: Actor, now: datetime
) -> list[Delivery]:
    """Redeliver the `RECOVERY_LIMIT` oldest messages whose last delivery, created since `since`, failed.

    Raises `WebhookNotFound`; `InvalidState` if it is not active.
    """
    with environments.atomic():
        webhook = _lock_active(tenant_id, webhook_id)
        newest_first = Delivery.objects.to_webhook(webhook).order_by("message_id", "-created_at", "-id")
        latest = newest_first.distinct("message_id").values("id")
        failed = Delivery.objects.to_webhook(webhook).filter(
            id__in=latest, status="failed", created_at__gte=since
        )
        oldest = failed.select_related("message").order_by("created_at", "id")[:RECOVERY_LIMIT]
        again = enqueue(((row.message, webhook) for row in oldest), Trigger.REDELIVERY, now)
        description = f"{len(again)} failed events redelivered"
        counts = {"since": since.isoformat(), "redelivered": len(again)}
        _record(webhook, AuditAction.WEBHOOK_REDELIVERED, actor, now, description, **counts)
    return again


def _lock_active(tenant_id: UUID, webhook_id: Any) -> Webhook:
    webhook = Webhook.objects.for_tenant(tenant_id).locked().find(webhook_id)
    if not webhook.active:
        raise InvalidState("Webhook is not active")
    return webhook


def _finish_pending(webhook: Webhook, status: DeliveryStatus, now: datetime) -> int:
    """Finish the pending deliveries of a locked webhook; returns their number."""
    pending = Delivery.objects.to_webhook(webhook).pending()
    return pending.update(status=status, next_attempt_at=None, completed_at=now)


def _host_of(url: str) -> str:
    try:
        return check_url(url, url_policy()).host
    except UrlRefused as refusal:
        raise Invalid(f"url: {refusal}") from refusal


def _record(
    webhook: Webhook, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> None:
    """Append an audit entry, without the URL: many carry a token."""
    metadata |= {"events": webhook.events, "active": webhook.active}
    auditlog.record(
        of=webhook, action=action, description=description, metadata=metadata, actor=actor, now=now
    )
