"""`GET /v1/webhooks`."""

from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant
from webhooks.tests.factories import make_inactive_webhook, make_webhook


def test_webhooks_are_listed_newest_first_without_secrets(api: ApiClient) -> None:
    tenant = make_tenant()
    older, newer = make_webhook(tenant), make_inactive_webhook(tenant)
    client = api.as_key(make_key(tenant))

    answer = client.get("/v1/webhooks")

    assert answer.status_code == 200
    assert set(answer.json()) == {"data"}
    data = answer.json()["data"]
    assert [row["id"] for row in data] == [str(newer.id), str(older.id)]
    assert [row["active"] for row in data] == [False, True]
    assert all("secret" not in row for row in data)
