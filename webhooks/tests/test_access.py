"""Every endpoint of webhooks needs a credential and a scope, and finds the caller's own rows only."""

from typing import Any

import pytest

from compliance.api.gate import Scope
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key
from webhooks.models import Delivery, Webhook
from webhooks.tests.factories import make_finished_delivery, make_webhook

READ, WRITE = Scope.WEBHOOKS_READ, Scope.WEBHOOKS_WRITE
ONE = "/v1/webhooks/{webhook}"
NEW = {"url": "https://hooks.example.com/", "events": ["risk.alert"]}
OF_ONE: list[tuple[str, str, Any, Scope]] = [
    ("get", ONE, None, READ),
    ("patch", ONE, {"active": False}, WRITE),
    ("delete", ONE, None, WRITE),
    ("post", f"{ONE}/rotate-secret", {}, WRITE),
    ("post", f"{ONE}/test", None, WRITE),
    ("post", f"{ONE}/recover", {"since": "2026-11-20T09:00:00Z"}, WRITE),
    ("get", f"{ONE}/deliveries", None, READ),
    ("post", f"{ONE}/deliveries/{{delivery}}/redeliver", None, WRITE),
]
ALL = [("get", "/v1/webhooks", None, READ), ("post", "/v1/webhooks", NEW, WRITE), *OF_ONE]


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


def ask(client: ApiClient, method: str, path: str, body: Any, tenant: Tenant) -> int:
    delivery = make_finished_delivery(make_webhook(tenant), "failed")
    address = path.format(webhook=delivery.webhook_id, delivery=delivery.id)
    send = getattr(client, method)
    status: int = (send(address) if body is None else send(address, body)).status_code
    return status


@pytest.mark.parametrize(("method", "path", "body", "scope"), ALL)
def test_credentials_and_scope_are_needed(
    api: ApiClient, tenant: Tenant, method: str, path: str, body: Any, scope: Scope
) -> None:
    other = make_key(tenant, [WRITE if scope == READ else READ])

    assert ask(api, method, path, body, tenant) == 401
    assert ask(api.as_key(other), method, path, body, tenant) == 403


@pytest.mark.parametrize(("method", "path", "body", "scope"), OF_ONE)
def test_other_tenants_and_the_other_environment_find_and_change_nothing(
    api: ApiClient, tenant: Tenant, method: str, path: str, body: Any, scope: Scope
) -> None:
    for key in (make_key(make_tenant()), make_test_key(tenant)):
        assert ask(api.as_key(key), method, path, body, tenant) == 404

    assert Webhook.objects.for_tenant(tenant.id).filter(active=True).count() == 2
    assert {each.trigger for each in Delivery.objects.filter(tenant=tenant)} == {"event"}
