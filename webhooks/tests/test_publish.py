"""Publishing: what is queued, for whom, and with which bytes."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from tenancy.services import get_tenant
from tenancy.tests.factories import make_tenant
from webhooks import publishing
from webhooks.models import Delivery, Message
from webhooks.openapi import EXAMPLE_DATA, example_envelope
from webhooks.tests.factories import make_inactive_webhook, make_webhook
from webhooks.vocabulary import DELIVERABLE_EVENTS, EventName


def publish(tenant_id: UUID, name: EventName = EventName.CERTIFICATE_REVOKED) -> Message | None:
    return publishing.publish(tenant_id=tenant_id, name=name, data={"a": 1}, now=now())


def test_each_subscribed_webhook_gets_a_delivery_of_one_message() -> None:
    tenant = make_tenant()
    subscribed = {make_webhook(tenant).id, make_webhook(tenant).id}
    make_webhook(tenant, events=["risk.alert"])
    make_inactive_webhook(tenant)
    make_webhook(make_tenant())

    message = publish(tenant.id)

    deliveries = Delivery.objects.filter(message=message)
    assert {delivery.webhook_id for delivery in deliveries} == subscribed
    assert {delivery.status for delivery in deliveries} == {"pending"}


def test_event_nobody_listens_to_is_not_kept() -> None:
    tenant = make_tenant()

    assert publish(tenant.id) is None
    assert not Message.objects.filter(tenant=tenant).exists()


def test_environments_do_not_hear_each_other() -> None:
    tenant = make_tenant()
    make_webhook(tenant)

    with environments.use(Environment.TEST):
        get_tenant(tenant_id=tenant.id)
        assert publish(tenant.id) is None


def test_body_is_written_once_with_times_and_ids_as_text() -> None:
    tenant = make_tenant()
    make_webhook(tenant)
    moment = datetime(2026, 11, 20, 9, 15, 0, 123456, tzinfo=UTC)

    message = publishing.publish(
        tenant_id=tenant.id,
        name=EventName.CERTIFICATE_REVOKED,
        data={"agent_id": tenant.id, "revoked_at": moment},
        now=moment,
    )

    assert message is not None
    assert json.loads(bytes(message.body)) == {
        "id": str(message.id),
        "event": "certificate.revoked",
        "created_at": "2026-11-20T09:15:00.123456Z",
        "data": {"agent_id": str(tenant.id), "revoked_at": "2026-11-20T09:15:00.123456Z"},
    }


def test_rolled_back_change_publishes_nothing(committed: None) -> None:
    tenant = make_tenant()
    make_webhook(tenant)

    with pytest.raises(RuntimeError), environments.atomic():
        _publish_and_fail(tenant.id)

    assert not Message.objects.filter(tenant=tenant).exists()
    assert not Delivery.objects.filter(webhook__tenant=tenant).exists()


def _publish_and_fail(tenant_id: UUID) -> None:
    publish(tenant_id)
    raise RuntimeError


def test_every_event_has_a_documented_payload() -> None:
    assert set(EXAMPLE_DATA) == set(DELIVERABLE_EVENTS)
    assert set(example_envelope("certificate.revoked")) == {"id", "event", "created_at", "data"}
