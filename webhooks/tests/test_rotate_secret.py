"""`POST /v1/webhooks/{id}/rotate-secret`."""

from auditlog.models import AuditEntry
from compliance.api.permissions import Scope
from compliance.clock import now
from compliance.tenancy.tests.factories import make_key, make_tenant, make_test_key
from compliance.tests.client import ApiClient
from webhooks import delivering, signature
from webhooks.tests.factories import make_delivery, make_webhook, make_webhook_with_secret
from webhooks.tests.receivers import answer, receiving


def test_new_secret_is_shown_once_and_signs(api: ApiClient, loopback: None) -> None:
    tenant = make_tenant()
    client = api.as_key(make_key(tenant))
    with receiving(answer(200)) as receiver:
        webhook, old = make_webhook_with_secret(tenant, receiver.url)

        response = client.post(f"/v1/webhooks/{webhook.id}/rotate-secret")
        delivering.deliver(delivery_id=make_delivery(webhook).id, now=now())

    assert response.status_code == 200
    data = response.json()["data"]
    assert data["id"] == str(webhook.id)
    assert data["secret"] != old
    assert data["secret_hint"] == data["secret"][-4:]
    (received,) = receiver.received
    assert received.headers["x-service-signature"] == signature.sign(received.body, data["secret"])
    shown = client.get(f"/v1/webhooks/{webhook.id}").json()["data"]
    assert shown["secret_hint"] == data["secret_hint"]
    assert "secret" not in shown


def test_rotation_is_audited_without_the_secret(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)

    data = api.as_key(make_key(tenant)).post(f"/v1/webhooks/{webhook.id}/rotate-secret").json()["data"]

    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.secret_rotated")
    assert data["secret"] not in f"{entry.description} {entry.metadata}"


def test_lost_answer_can_be_asked_for_again(api: ApiClient) -> None:
    tenant = make_tenant()
    client = api.as_key(make_key(tenant))
    path = f"/v1/webhooks/{make_webhook(tenant).id}/rotate-secret"

    first, second = (client.post(path, Idempotency_Key="rotation") for _ in range(2))

    assert first.json() == second.json()


def test_other_tenants_and_the_other_environment_find_nothing(api: ApiClient) -> None:
    tenant = make_tenant()
    path = f"/v1/webhooks/{make_webhook(tenant).id}/rotate-secret"

    for key in (make_key(make_tenant()), make_test_key(tenant)):
        assert api.as_key(key).post(path).status_code == 404


def test_credentials_and_scope_are_needed(api: ApiClient) -> None:
    tenant = make_tenant()
    path = f"/v1/webhooks/{make_webhook(tenant).id}/rotate-secret"

    assert api.post(path).status_code == 401
    assert api.as_key(make_key(tenant, [Scope.WEBHOOKS_READ])).post(path).status_code == 403
