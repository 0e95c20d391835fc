"""`GET /v1/webhooks/{id}`."""

import pytest

from compliance.api.rest.permissions import Scope
from compliance.tenancy.tests.factories import make_key, make_tenant, make_test_key
from compliance.tests.client import ApiClient
from webhooks.tests.factories import make_webhook, make_webhook_with_secret


def test_webhook_is_shown_with_the_hint_and_never_the_secret(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook, secret = make_webhook_with_secret(tenant)

    answer = api.as_key(make_key(tenant)).get(f"/v1/webhooks/{webhook.id}")

    assert answer.status_code == 200
    data = answer.json()["data"]
    assert set(data) == {
        "id",
        "url",
        "events",
        "active",
        "description",
        "secret_hint",
        "previous_secret_until",
        "disabled_at",
        "created_at",
        "updated_at",
    }
    assert data["secret_hint"] == secret[-4:]


@pytest.mark.parametrize("nonsense", ["x", "00000000-0000-0000-0000-000000000000", "%00"])
def test_unknown_webhook_is_not_found(api: ApiClient, nonsense: str) -> None:
    answer = api.as_key(make_key(make_tenant())).get(f"/v1/webhooks/{nonsense}")

    assert answer.status_code == 404
    assert answer.json() == {"error": "Webhook not found"}


def test_other_tenants_and_the_other_environment_find_nothing(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)

    for key in (make_key(make_tenant()), make_test_key(tenant)):
        assert api.as_key(key).get(f"/v1/webhooks/{webhook.id}").status_code == 404


def test_credentials_and_scope_are_needed(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)
    key = make_key(tenant, [Scope.WEBHOOKS_WRITE])

    assert api.get(f"/v1/webhooks/{webhook.id}").status_code == 401
    assert api.as_key(key).get(f"/v1/webhooks/{webhook.id}").status_code == 403
