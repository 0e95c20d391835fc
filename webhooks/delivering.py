"""From the queue to the receiver: claim a delivery, send it, write down what came of it.

The database is the queue. A claim writes "attempt started" and a lease and commits; then the request is
sent with no transaction open; the result counts only while the lease still names this attempt. A sender
that dies leaves a lease that runs out, and the delivery is claimed again: sent twice perhaps, lost never.
"""

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F

from compliance import environments
from compliance.encryption import decrypt
from compliance.identifiers import new_id
from compliance.tasks import enqueue, enqueue_on_commit
from webhooks import sender, signature
from webhooks.models import (
    MAX_ATTEMPTS,
    MAX_INTERRUPTIONS,
    Attempt,
    Delivery,
    DeliveryStatus,
    Pace,
    Webhook,
)
from webhooks.sender import Outcome, Rules
from webhooks.services import DELIVER, url_policy

log = logging.getLogger(__name__)

# What a sender may need beyond the request itself, before its delivery counts as abandoned.
LEASE_MARGIN = timedelta(seconds=15)
# Younger ones have a bell that is still on its way.
SWEEP_GRACE = timedelta(seconds=1)
SWEEP_LIMIT = 1000
INTERRUPTED = "Interrupted: the sender stopped before an answer came"


@dataclass(frozen=True)
class Parcel:
    """A claimed attempt: all it takes to send it without the database."""

    delivery_id: UUID
    webhook_id: UUID
    event_id: UUID
    lease: UUID
    number: int
    url: str
    body: bytes
    started_at: datetime
    retry_delay: timedelta | None
    pace: Pace
    had_failures: bool
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Turn:
    """One attempt made: what came of it, and the endpoint's next delivery that waits for a slot.

    None for a slow endpoint: the sweep lets the slow take turns.
    """

    outcome: Outcome
    next_id: UUID | None


class _LeaseLost(Exception):
    """Somebody else took the delivery meanwhile; undoes the transaction."""


def deliver(*, delivery_id: UUID, now: datetime) -> Turn | None:
    """Make the delivery's next attempt if it is due and its endpoint has a free slot; None if not.

    The caller sees to `next_id`: its own bell may have rung while the endpoint's slots were taken.
    """
    parcel = claim(delivery_id=delivery_id, now=now)
    if parcel is None:
        return None
    outcome = send(parcel=parcel)
    ended = now + outcome.duration
    complete(parcel=parcel, outcome=outcome, now=ended)
    is_slow = Pace.of(outcome.duration) == Pace.SLOW
    return Turn(outcome, None if is_slow else Delivery.objects.next_waiting(parcel.webhook_id, ended))


def claim(*, delivery_id: UUID, now: datetime) -> Parcel | None:
    """Take the delivery for one attempt; None when it is not due, taken, cancelled, or has to wait.

    Claims of one endpoint go one by one under its row's lock, which makes the cap on its slots exact.
    """
    with environments.atomic():
        claimable = Delivery.objects.claimable(now).filter(id=delivery_id)
        webhook = Webhook.objects.locked().filter(deliveries__in=claimable).first()
        if webhook is None:
            return None
        # Again, now that nobody else can claim from this endpoint.
        delivery = claimable.unlocked().select_related("message").first()
        if delivery is None:
            return None
        if delivery.status == DeliveryStatus.IN_FLIGHT:
            _make_up_for_interruption(delivery)
        if not webhook.is_open:
            _finish(delivery, DeliveryStatus.CANCELLED, now)
            return None
        if delivery.attempt_count >= delivery.max_attempts:
            _finish(delivery, DeliveryStatus.FAILED, now)
            return None
        if not _has_slot(webhook, now):
            return None
        return _take(webhook, delivery, now)


def send(*, parcel: Parcel) -> Outcome:
    """The request itself; takes at most WEBHOOK_TIMEOUT_SECONDS and touches no database."""
    rules = Rules(
        policy=url_policy(),
        timeout_seconds=settings.WEBHOOK_TIMEOUT_SECONDS,
        ca_file=settings.WEBHOOK_CA_FILE or None,
    )
    return sender.post(parcel.url, body=parcel.body, headers=headers_of(parcel), rules=rules)


def headers_of(parcel: Parcel) -> dict[str, str]:
    """The signature as specified, and Standard Webhooks' three headers beside it."""
    timestamp = int(parcel.started_at.timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": f"{settings.SERVICE_NAME}-webhooks/1.0",
        "Accept-Encoding": "identity",
        "Connection": "close",
        signature.header_name(settings.SERVICE_NAME): signature.sign(parcel.body, parcel.secret),
        "webhook-id": str(parcel.event_id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature.sign_standard(
            parcel.body, parcel.secret, message_id=parcel.event_id, timestamp=timestamp
        ),
    }


def complete(*, parcel: Parcel, outcome: Outcome, now: datetime) -> bool:
    """Write down what came of an attempt that ended at `now`; False, and nothing, if its lease was lost."""
    try:
        with environments.atomic():
            _note_health(parcel, outcome)
            status = _settle(parcel, outcome, now)
            _close_attempt(parcel, outcome)
    except _LeaseLost:
        log.warning("delivery %s attempt %d ended after its lease", parcel.delivery_id, parcel.number)
        return False
    log.info("delivery %s attempt %d: %s", parcel.delivery_id, parcel.number, status)
    return True


def sweep(*, now: datetime) -> int:
    """Ring for what is due or abandoned and was not rung for, or whose bell was lost; how many."""
    due = Delivery.objects.due_by_endpoint(
        now=now,
        due_by=now - SWEEP_GRACE,
        slots=settings.WEBHOOK_SLOTS_PER_ENDPOINT,
        slow_slots=settings.WEBHOOK_SLOW_SLOTS,
        limit=SWEEP_LIMIT,
    )
    abandoned = Delivery.objects.abandoned(now).order_by("leased_until", "id")
    found = [*due, *abandoned.values_list("id", flat=True)[:SWEEP_LIMIT]]
    for delivery_id in found:
        if not enqueue(DELIVER, delivery_id=str(delivery_id)):
            break
    return len(found)


def _has_slot(webhook: Webhook, now: datetime) -> bool:
    """Whether the locked webhook may occupy one more sender.

    What hangs costs senders, what fails at once does not: the slow ones share a few slots, so that any
    number of them leaves senders to the rest.
    """
    held = Delivery.objects.to_webhook(webhook).in_flight(now).count()
    if webhook.pace == Pace.QUICK:
        return held < settings.WEBHOOK_SLOTS_PER_ENDPOINT
    if held or webhook.pace == Pace.UNKNOWN:
        return not held
    Delivery.objects.lock_slow_lane()
    return Delivery.objects.to_slow_webhooks().in_flight(now).count() < settings.WEBHOOK_SLOW_SLOTS


def _take(webhook: Webhook, delivery: Delivery, now: datetime) -> Parcel:
    delivery.status, delivery.lease = DeliveryStatus.IN_FLIGHT, new_id()
    delivery.leased_until = now + timedelta(seconds=settings.WEBHOOK_TIMEOUT_SECONDS) + LEASE_MARGIN
    delivery.next_attempt_at = None
    delivery.attempt_count += 1
    delivery.save(
        update_fields=["status", "lease", "leased_until", "next_attempt_at", "attempt_count", "max_attempts"]
    )
    Attempt.objects.create(delivery=delivery, number=delivery.attempt_count, url=webhook.url, started_at=now)
    return Parcel(
        delivery_id=delivery.id,
        webhook_id=webhook.id,
        event_id=delivery.message_id,
        lease=delivery.lease,
        number=delivery.attempt_count,
        url=webhook.url,
        body=bytes(delivery.message.body),
        started_at=now,
        retry_delay=delivery.retry_delay(),
        pace=Pace(webhook.pace),
        had_failures=webhook.consecutive_failures > 0,
        secret=decrypt(bytes(webhook.secret)).decode(),
    )


def _make_up_for_interruption(delivery: Delivery) -> None:
    """Close the attempt that nobody finished, and grant another: a crash is not the receiver's failure."""
    Attempt.objects.filter(delivery=delivery, number=delivery.attempt_count, duration_ms=None).update(
        error=INTERRUPTED
    )
    if delivery.max_attempts < MAX_ATTEMPTS + MAX_INTERRUPTIONS:
        delivery.max_attempts += 1


def _finish(delivery: Delivery, status: DeliveryStatus, now: datetime) -> None:
    delivery.status, delivery.completed_at = status, now
    delivery.next_attempt_at = delivery.lease = delivery.leased_until = None
    delivery.save(
        update_fields=["status", "completed_at", "next_attempt_at", "lease", "leased_until", "max_attempts"]
    )
    log.info("delivery %s: %s", delivery.id, delivery.status)


def _note_health(parcel: Parcel, outcome: Outcome) -> None:
    """Before the delivery's row, as everywhere: the webhook is locked first. A healthy one isn't written."""
    changes: dict[str, Any] = {}
    if not outcome.succeeded:
        changes["consecutive_failures"] = F("consecutive_failures") + 1
    elif parcel.had_failures:
        changes["consecutive_failures"] = 0
    if (pace := Pace.of(outcome.duration)) != parcel.pace:
        changes["pace"] = pace
    if changes:
        Webhook.objects.filter(id=parcel.webhook_id).update(**changes)


def _settle(parcel: Parcel, outcome: Outcome, now: datetime) -> DeliveryStatus:
    """The delivery's new state, by compare-and-set on the lease; raises `_LeaseLost`."""
    retry_at: datetime | None = None
    if outcome.succeeded:
        status = DeliveryStatus.SUCCEEDED
    elif parcel.retry_delay is None:
        status = DeliveryStatus.FAILED
    else:
        status, retry_at = DeliveryStatus.PENDING, now + parcel.retry_delay
        seconds = parcel.retry_delay.total_seconds()
        enqueue_on_commit(DELIVER, delay_seconds=seconds, delivery_id=str(parcel.delivery_id))
    held = Delivery.objects.leased_as(parcel.lease).filter(id=parcel.delivery_id)
    changed = held.update(
        status=status,
        next_attempt_at=retry_at,
        completed_at=None if retry_at else now,
        lease=None,
        leased_until=None,
    )
    if not changed:
        raise _LeaseLost
    return status


def _close_attempt(parcel: Parcel, outcome: Outcome) -> None:
    Attempt.objects.filter(delivery_id=parcel.delivery_id, number=parcel.number).update(
        duration_ms=round(outcome.duration / timedelta(milliseconds=1)),
        response_status=outcome.response_status,
        response_body=outcome.response_body,
        error=outcome.error,
    )
