"""`POST /v1/webhooks/{id}/deliveries/{id}/redeliver`, and the recovery of all that failed."""

from datetime import timedelta
from typing import Any

import pytest

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant
from webhooks import services
from webhooks.models import Delivery, Webhook
from webhooks.tests.factories import ACTOR, make_delivery, make_finished_delivery, make_webhook
from webhooks.tests.steps import claimed, deliver


def path(delivery: Delivery) -> str:
    return f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}/redeliver"


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_same_event_goes_out_again_as_a_delivery_of_its_own(
    api: ApiClient, loopback: None, status: str
) -> None:
    tenant = make_tenant()
    with receiving(answer(200)) as receiver:
        delivery = make_finished_delivery(make_webhook(tenant, receiver.url), status)

        response = api.as_key(make_key(tenant)).post(path(delivery))
        again = Delivery.objects.get(trigger="redelivery", webhook=delivery.webhook)
        deliver(now())

    assert response.status_code == 202
    data = response.json()["data"]
    assert (data["id"], data["event_id"]) == (str(again.id), str(delivery.message_id))
    assert (data["trigger"], data["status"], data["attempt_count"]) == ("redelivery", "pending", 0)
    assert receiver.received[0].body == bytes(delivery.message.body)
    delivery.refresh_from_db()
    assert delivery.status == status


def test_redelivery_is_audited(api: ApiClient) -> None:
    tenant = make_tenant()
    delivery = make_finished_delivery(make_webhook(tenant), "failed")

    api.as_key(make_key(tenant)).post(path(delivery))

    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.redelivered")
    assert entry.affected_id == str(delivery.webhook_id)
    assert entry.metadata is not None
    assert entry.metadata["event_id"] == str(delivery.message_id)


def test_delivery_under_way_is_not_sent_twice(api: ApiClient) -> None:
    tenant = make_tenant()
    delivery = make_delivery(make_webhook(tenant))
    client = api.as_key(make_key(tenant))

    pending = client.post(path(delivery))
    claimed(delivery, now())
    in_flight = client.post(path(delivery))

    assert (pending.status_code, in_flight.status_code) == (422, 422)
    assert pending.json() == {"error": "Delivery is still under way"}


def test_inactive_webhook_gets_nothing_again(api: ApiClient) -> None:
    tenant = make_tenant()
    delivery = make_finished_delivery(make_webhook(tenant), "failed")
    Webhook.objects.filter(id=delivery.webhook_id).update(active=False)

    assert api.as_key(make_key(tenant)).post(path(delivery)).status_code == 422


def test_delivery_of_another_webhook_is_not_found(api: ApiClient) -> None:
    tenant = make_tenant()
    delivery = make_finished_delivery(make_webhook(tenant), "failed")
    other = make_webhook(tenant)
    client = api.as_key(make_key(tenant))

    crossed = client.post(f"/v1/webhooks/{other.id}/deliveries/{delivery.id}/redeliver")
    nonsense = client.post(f"/v1/webhooks/{other.id}/deliveries/x/redeliver")

    assert (crossed.status_code, nonsense.status_code) == (404, 404)
    assert crossed.json() == {"error": "Delivery not found"}


def recover(webhook: Webhook, **ago: Any) -> list[Delivery]:
    moment = now()
    return services.redeliver_failed(
        tenant_id=webhook.tenant_id,
        webhook_id=webhook.id,
        since=moment - timedelta(**ago),
        actor=ACTOR,
        now=moment,
    )


def test_recovery_takes_each_event_whose_last_delivery_failed() -> None:
    webhook = make_webhook(make_tenant())
    failed = make_finished_delivery(webhook, "failed")
    make_finished_delivery(webhook, "succeeded")
    make_delivery(webhook)
    make_finished_delivery(webhook, "failed", created_at=now() - timedelta(days=2))

    assert [delivery.message_id for delivery in recover(webhook, hours=1)] == [failed.message_id]
    assert recover(webhook, hours=1) == []
