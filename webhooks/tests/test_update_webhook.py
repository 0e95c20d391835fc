"""`PATCH /v1/webhooks/{id}`."""

from typing import Any

import pytest

from auditlog.models import AuditEntry
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant
from webhooks.models import Pace, Webhook
from webhooks.tests.factories import make_delivery, make_inactive_webhook, make_webhook


@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://other.example.com/y"},
        {"events": ["agent.created", "agent.halted"]},
        {"active": False},
        {"description": "new"},
        {"url": "https://other.example.com/y", "events": ["risk.alert"], "active": False, "description": ""},
    ],
)
def test_named_fields_are_changed_and_the_rest_stays(api: ApiClient, change: dict[str, Any]) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)
    client = api.as_key(make_key(tenant))
    before = client.get(f"/v1/webhooks/{webhook.id}").json()["data"]

    answer = client.patch(f"/v1/webhooks/{webhook.id}", change)

    assert answer.status_code == 200
    after = answer.json()["data"]
    assert after == {**before, **change, "updated_at": after["updated_at"]}
    assert client.get(f"/v1/webhooks/{webhook.id}").json()["data"] == after


def test_change_is_audited_and_none_is_not(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)
    client = api.as_key(make_key(tenant))

    client.patch(f"/v1/webhooks/{webhook.id}", {"description": "new", "active": True})
    client.patch(f"/v1/webhooks/{webhook.id}", {"description": "new"})

    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.updated")
    assert entry.metadata is not None
    assert entry.metadata["changed"] == ["description"]


def test_switching_off_cancels_what_waits(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)
    delivery = make_delivery(webhook)

    api.as_key(make_key(tenant)).patch(f"/v1/webhooks/{webhook.id}", {"active": False})

    delivery.refresh_from_db()
    assert delivery.status == "cancelled"
    assert delivery.completed_at is not None


def test_switching_on_again_forgets_old_failures(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_inactive_webhook(tenant)
    Webhook.objects.filter(id=webhook.id).update(consecutive_failures=7, pace=Pace.SLOW)

    api.as_key(make_key(tenant)).patch(f"/v1/webhooks/{webhook.id}", {"active": True})

    webhook.refresh_from_db()
    assert webhook.active
    assert (webhook.consecutive_failures, webhook.pace) == (0, Pace.UNKNOWN)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"secret": "whsec_x"},
        {"description": "ok", "colour": "red"},
        {"url": "http://hooks.example.com/"},
        {"url": "https://127.0.0.1/"},
        {"events": ["nothing"]},
    ],
)
def test_bad_change_is_refused_and_changes_nothing(api: ApiClient, body: dict[str, Any]) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)
    client = api.as_key(make_key(tenant))
    before = client.get(f"/v1/webhooks/{webhook.id}").json()

    answer = client.patch(f"/v1/webhooks/{webhook.id}", body)

    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert client.get(f"/v1/webhooks/{webhook.id}").json() == before
