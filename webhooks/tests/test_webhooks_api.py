"""The endpoints of webhooks: create, change, list, delete, test."""

import json
from typing import Any

import pytest

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.core.encryption import decrypt
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key
from webhooks import publishing
from webhooks.models import Delivery, Pace, Webhook
from webhooks.tests.factories import (
    make_delivery,
    make_finished_delivery,
    make_inactive_webhook,
    make_webhook,
)
from webhooks.tests.steps import deliver
from webhooks.vocabulary import EventName

BODY: dict[str, Any] = {"url": "https://hooks.example.com/x", "events": ["certificate.revoked"]}


def test_webhook_is_created_with_a_secret_that_is_kept_encrypted_and_unsaid(api: ApiClient) -> None:
    tenant, url = make_tenant(), f"{BODY['url']}?token=abc"

    answer = api.as_key(make_key(tenant)).post(
        "/v1/webhooks", {**BODY, "url": url, "description": "Security operations"}
    )

    assert answer.status_code == 201
    data = answer.json()["data"]
    assert set(data) == {
        "id", "url", "events", "format", "active", "description", "secret", "secret_hint",
        "previous_secret_until", "disabled_at", "created_at", "updated_at",
    }  # fmt: skip
    assert data["url"] == url
    assert data["events"] == ["certificate.revoked"]
    assert data["active"] is True
    assert data["description"] == "Security operations"
    assert data["secret"].startswith("whsec_")
    assert data["secret"].endswith(data["secret_hint"])
    assert data["created_at"].endswith("Z")
    stored = bytes(Webhook.objects.get(id=data["id"]).secret)
    assert data["secret"].encode() not in stored
    assert decrypt(stored).decode() == data["secret"]
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.created")
    assert entry.affected_id == data["id"]
    assert entry.actor_id.startswith("api_key:")
    written = f"{entry.description} {entry.metadata}"
    assert data["secret"] not in written
    assert "token=abc" not in written


def test_repeated_event_names_count_once(client: ApiClient) -> None:
    answer = client.post("/v1/webhooks", {**BODY, "events": ["risk.alert", "agent.created", "risk.alert"]})

    assert answer.json()["data"]["events"] == ["risk.alert", "agent.created"]


@pytest.mark.parametrize(
    "change",
    [
        {"url": "hooks.example.com"},
        {"url": "ftp://hooks.example.com/"},
        {"url": "http://hooks.example.com/"},
        {"url": "https://localhost/"},
        {"url": "https://10.0.0.1/"},
        {"url": "https://me@hooks.example.com/"},
        {"url": "https://hooks.example.com/" + "x" * 2048},
        {"events": ["certificate.revoked", "certificate.eaten"]},
        {"events": ["webhook.test"]},
        {"events": [["risk.alert"]]},
    ],
)
def test_bad_field_is_refused(client: ApiClient, change: dict[str, Any]) -> None:
    answer = client.post("/v1/webhooks", {**BODY, **change})

    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert answer.json()["error"].startswith(next(iter(change)))


def test_plain_http_is_for_the_sandbox(api: ApiClient) -> None:
    client = api.as_key(make_test_key(make_tenant()))

    assert client.post("/v1/webhooks", {**BODY, "url": "http://hooks.example.com/"}).status_code == 201
    assert client.post("/v1/webhooks", {**BODY, "url": "http://127.0.0.1/"}).status_code == 400


def test_development_may_use_its_own_machine(client: ApiClient, loopback: None) -> None:
    answer = client.post("/v1/webhooks", {**BODY, "url": "http://127.0.0.1:9000/hook"})

    assert answer.status_code == 201


def test_tenant_has_room_for_so_many(client: ApiClient, tenant: Tenant, settings: Any) -> None:
    settings.WEBHOOKS_PER_TENANT = 2
    for _ in range(2):
        make_webhook(tenant)

    answer = client.post("/v1/webhooks", BODY)

    assert answer.status_code == 409
    assert answer.json() == {"error": "A tenant can have at most 2 webhooks"}


def test_same_idempotency_key_gives_the_same_webhook_and_secret(client: ApiClient) -> None:
    first = client.post("/v1/webhooks", BODY, Idempotency_Key="abc")
    second = client.post("/v1/webhooks", BODY, Idempotency_Key="abc")

    assert first.json() == second.json()
    assert len(client.get("/v1/webhooks").json()["data"]) == 1


# --- `PATCH /v1/webhooks/{id}` ---------------------------------------------------------------------


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
def test_named_fields_are_changed_and_the_rest_stays(
    client: ApiClient, tenant: Tenant, change: dict[str, Any]
) -> None:
    webhook = make_webhook(tenant)
    before = client.get(f"/v1/webhooks/{webhook.id}").json()["data"]

    answer = client.patch(f"/v1/webhooks/{webhook.id}", change)

    assert answer.status_code == 200
    after = answer.json()["data"]
    assert after == {**before, **change, "updated_at": after["updated_at"]}
    assert client.get(f"/v1/webhooks/{webhook.id}").json()["data"] == after


def test_change_is_audited_and_none_is_not(client: ApiClient, tenant: Tenant) -> None:
    webhook = make_webhook(tenant)

    client.patch(f"/v1/webhooks/{webhook.id}", {"description": "new", "active": True})
    client.patch(f"/v1/webhooks/{webhook.id}", {"description": "new"})

    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.updated")
    assert entry.metadata is not None
    assert entry.metadata["changed"] == ["description"]


def test_switching_off_cancels_what_waits(client: ApiClient, tenant: Tenant) -> None:
    webhook = make_webhook(tenant)
    delivery = make_delivery(webhook)

    client.patch(f"/v1/webhooks/{webhook.id}", {"active": False})

    delivery.refresh_from_db()
    assert delivery.status == "cancelled"
    assert delivery.completed_at is not None


def test_switching_on_again_forgets_old_failures(client: ApiClient, tenant: Tenant) -> None:
    webhook = make_inactive_webhook(tenant)
    Webhook.objects.filter(id=webhook.id).update(consecutive_failures=7, pace=Pace.SLOW)

    client.patch(f"/v1/webhooks/{webhook.id}", {"active": True})

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
def test_bad_change_is_refused_and_changes_nothing(
    client: ApiClient, tenant: Tenant, body: dict[str, Any]
) -> None:
    webhook = make_webhook(tenant)
    before = client.get(f"/v1/webhooks/{webhook.id}").json()

    answer = client.patch(f"/v1/webhooks/{webhook.id}", body)

    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert client.get(f"/v1/webhooks/{webhook.id}").json() == before


# --- `GET /v1/webhooks` ----------------------------------------------------------------------------


def test_webhooks_are_listed_newest_first_without_secrets(client: ApiClient, tenant: Tenant) -> None:
    older, newer = make_webhook(tenant), make_inactive_webhook(tenant)

    answer = client.get("/v1/webhooks")

    assert answer.status_code == 200
    assert set(answer.json()) == {"data"}
    data = answer.json()["data"]
    assert [row["id"] for row in data] == [str(newer.id), str(older.id)]
    assert [row["active"] for row in data] == [False, True]
    assert all("secret" not in row for row in data)


# --- `DELETE /v1/webhooks/{id}` --------------------------------------------------------------------


def test_deleted_webhook_is_gone(client: ApiClient, tenant: Tenant) -> None:
    path = f"/v1/webhooks/{make_webhook(tenant).id}"

    answer = client.delete(path)

    assert answer.status_code == 204
    assert answer.content == b""
    assert client.get(path).status_code == 404
    assert client.get("/v1/webhooks").json() == {"data": []}
    assert client.get(f"{path}/deliveries").status_code == 404
    assert client.patch(path, {"active": True}).status_code == 404
    assert client.delete(path).status_code == 404


def test_deletion_cancels_what_waits_destroys_the_secret_and_keeps_the_history(
    client: ApiClient, tenant: Tenant
) -> None:
    webhook = make_webhook(tenant)
    waiting, done = make_delivery(webhook), make_finished_delivery(webhook, "succeeded")

    client.delete(f"/v1/webhooks/{webhook.id}")

    statuses = dict(Delivery.objects.filter(webhook=webhook).values_list("id", "status"))
    assert statuses == {waiting.id: "cancelled", done.id: "succeeded"}
    assert bytes(Webhook.objects.get(id=webhook.id).secret) == b""
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.deleted")
    assert entry.affected_id == str(webhook.id)
    event = EventName.CERTIFICATE_REVOKED
    assert publishing.publish(tenant_id=tenant.id, name=event, data={}, now=now()) is None


# --- `POST /v1/webhooks/{id}/test` -----------------------------------------------------------------


def test_test_event_goes_to_this_webhook_alone(client: ApiClient, tenant: Tenant, loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        webhook = make_webhook(tenant, receiver.url)
        make_webhook(tenant, receiver.url)

        response = client.post(f"/v1/webhooks/{webhook.id}/test")
        (delivery,) = Delivery.objects.filter(webhook__tenant=tenant)
        deliver(now())

    assert response.status_code == 202
    data = response.json()["data"]
    assert data["id"] == str(delivery.id)
    assert (data["event"], data["trigger"], data["status"]) == ("webhook.test", "test", "pending")
    envelope = json.loads(receiver.received[0].body)
    assert (envelope["event"], envelope["id"]) == ("webhook.test", data["event_id"])
    assert envelope["data"] == {"webhook_id": str(webhook.id)}
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.tested")
    assert entry.affected_id == str(webhook.id)


def test_inactive_webhook_cannot_be_tested(client: ApiClient, tenant: Tenant) -> None:
    response = client.post(f"/v1/webhooks/{make_inactive_webhook(tenant).id}/test")

    assert response.status_code == 422
    assert response.json() == {"error": "Webhook is not active"}
