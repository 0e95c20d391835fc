"""`POST /v1/webhooks/{id}/test`."""

import json

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant
from webhooks.models import Delivery
from webhooks.tests.factories import make_inactive_webhook, make_webhook
from webhooks.tests.steps import deliver


def test_test_event_goes_to_this_webhook_alone(api: ApiClient, loopback: None) -> None:
    tenant = make_tenant()
    with receiving(answer(200)) as receiver:
        webhook = make_webhook(tenant, receiver.url)
        make_webhook(tenant, receiver.url)

        response = api.as_key(make_key(tenant)).post(f"/v1/webhooks/{webhook.id}/test")
        (delivery,) = Delivery.objects.filter(webhook__tenant=tenant)
        deliver(now())

    assert response.status_code == 202
    data = response.json()["data"]
    assert data["id"] == str(delivery.id)
    assert (data["event"], data["trigger"], data["status"]) == ("webhook.test", "test", "pending")
    envelope = json.loads(receiver.received[0].body)
    assert (envelope["event"], envelope["id"]) == ("webhook.test", data["event_id"])
    assert envelope["data"] == {"webhook_id": str(webhook.id)}


def test_test_is_audited(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)

    api.as_key(make_key(tenant)).post(f"/v1/webhooks/{webhook.id}/test")

    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.tested")
    assert entry.affected_id == str(webhook.id)


def test_inactive_webhook_cannot_be_tested(api: ApiClient) -> None:
    tenant = make_tenant()

    response = api.as_key(make_key(tenant)).post(f"/v1/webhooks/{make_inactive_webhook(tenant).id}/test")

    assert response.status_code == 422
    assert response.json() == {"error": "Webhook is not active"}
