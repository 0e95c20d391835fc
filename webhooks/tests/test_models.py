"""What the database itself refuses, and what a row knows of itself."""

from typing import Any

import pytest
from django.db import IntegrityError

from compliance.core import environments
from compliance.core.clock import now
from tenancy.tests.factories import make_tenant
from webhooks.models import Delivery, Webhook
from webhooks.tests.factories import make_delivery, make_webhook


@pytest.mark.parametrize(
    "change",
    [{"events": []}, {"url": ""}, {"pace": "lazy"}, {"disabled_at": now()}, {"previous_secret": b"x"}],
)
def test_webhook_without_its_essentials_is_refused(change: dict[str, Any]) -> None:
    webhook = make_webhook(make_tenant())

    with pytest.raises(IntegrityError), environments.atomic():
        Webhook.objects.filter(id=webhook.id).update(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "lost"},
        {"status": "in_flight"},
        {"next_attempt_at": None},
        {"status": "succeeded"},
        {"completed_at": now()},
        {"attempt_count": 5},
    ],
)
def test_contradictory_delivery_is_refused(change: dict[str, Any]) -> None:
    delivery = make_delivery(make_webhook(make_tenant()))

    with pytest.raises(IntegrityError), environments.atomic():
        Delivery.objects.filter(id=delivery.id).update(**change)


def test_event_is_delivered_to_a_webhook_once() -> None:
    delivery = make_delivery(make_webhook(make_tenant()))

    with pytest.raises(IntegrityError), environments.atomic():
        Delivery.objects.create(
            tenant_id=delivery.tenant_id,
            webhook=delivery.webhook,
            message=delivery.message,
            next_attempt_at=now(),
            created_at=now(),
        )


def test_attempt_is_numbered_once() -> None:
    delivery = make_delivery(make_webhook(make_tenant()))
    first = {
        "tenant_id": delivery.tenant_id,
        "number": 1,
        "url": "https://a.example.com/",
        "started_at": now(),
    }
    delivery.attempts.create(**first)

    with pytest.raises(IntegrityError), environments.atomic():
        delivery.attempts.create(**first)
