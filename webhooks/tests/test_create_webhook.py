"""`POST /v1/webhooks`."""

from typing import Any

import pytest

from auditlog.models import AuditEntry
from compliance.core.encryption import decrypt
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant, make_test_key
from webhooks.models import Webhook
from webhooks.tests.factories import make_webhook

BODY: dict[str, Any] = {"url": "https://hooks.example.com/x", "events": ["certificate.revoked"]}


def test_webhook_is_created_with_a_secret(api: ApiClient) -> None:
    client = api.as_key(make_key(make_tenant()))

    answer = client.post("/v1/webhooks", {**BODY, "description": "Security operations"})

    assert answer.status_code == 201
    data = answer.json()["data"]
    assert set(data) == {
        "id",
        "url",
        "events",
        "format",
        "active",
        "description",
        "secret",
        "secret_hint",
        "previous_secret_until",
        "disabled_at",
        "created_at",
        "updated_at",
    }
    assert data["url"] == BODY["url"]
    assert data["events"] == ["certificate.revoked"]
    assert data["active"] is True
    assert data["description"] == "Security operations"
    assert data["secret"].startswith("whsec_")
    assert data["secret"].endswith(data["secret_hint"])
    assert data["created_at"].endswith("Z")


def test_secret_is_encrypted_at_rest(api: ApiClient) -> None:
    client = api.as_key(make_key(make_tenant()))

    data = client.post("/v1/webhooks", BODY).json()["data"]

    stored = bytes(Webhook.objects.get(id=data["id"]).secret)
    assert data["secret"].encode() not in stored
    assert decrypt(stored).decode() == data["secret"]


def test_creation_is_audited_without_url_and_secret(api: ApiClient) -> None:
    tenant = make_tenant()
    client = api.as_key(make_key(tenant))

    data = client.post("/v1/webhooks", {**BODY, "url": BODY["url"] + "?token=abc"}).json()["data"]

    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.created")
    assert entry.affected_id == data["id"]
    assert entry.actor_id.startswith("api_key:")
    written = f"{entry.description} {entry.metadata}"
    assert data["secret"] not in written
    assert "token=abc" not in written


def test_repeated_event_names_count_once(api: ApiClient) -> None:
    client = api.as_key(make_key(make_tenant()))

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
def test_bad_field_is_refused(api: ApiClient, change: dict[str, Any]) -> None:
    client = api.as_key(make_key(make_tenant()))

    answer = client.post("/v1/webhooks", {**BODY, **change})

    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert answer.json()["error"].startswith(next(iter(change)))


def test_plain_http_is_for_the_sandbox(api: ApiClient) -> None:
    client = api.as_key(make_test_key(make_tenant()))

    assert client.post("/v1/webhooks", {**BODY, "url": "http://hooks.example.com/"}).status_code == 201
    assert client.post("/v1/webhooks", {**BODY, "url": "http://127.0.0.1/"}).status_code == 400


def test_development_may_use_its_own_machine(api: ApiClient, loopback: None) -> None:
    client = api.as_key(make_key(make_tenant()))

    answer = client.post("/v1/webhooks", {**BODY, "url": "http://127.0.0.1:9000/hook"})

    assert answer.status_code == 201


def test_tenant_has_room_for_so_many(api: ApiClient, settings: Any) -> None:
    settings.WEBHOOKS_PER_TENANT = 2
    tenant = make_tenant()
    for _ in range(2):
        make_webhook(tenant)
    client = api.as_key(make_key(tenant))

    answer = client.post("/v1/webhooks", BODY)

    assert answer.status_code == 409
    assert answer.json() == {"error": "A tenant can have at most 2 webhooks"}


def test_same_idempotency_key_gives_the_same_webhook_and_secret(api: ApiClient) -> None:
    client = api.as_key(make_key(make_tenant()))

    first = client.post("/v1/webhooks", BODY, Idempotency_Key="abc")
    second = client.post("/v1/webhooks", BODY, Idempotency_Key="abc")

    assert first.json() == second.json()
    assert len(client.get("/v1/webhooks").json()["data"]) == 1
