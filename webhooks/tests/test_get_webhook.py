"""`GET /v1/webhooks/{id}`."""

import pytest

from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant
from webhooks.tests.factories import make_webhook_with_secret


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
        "format",
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
