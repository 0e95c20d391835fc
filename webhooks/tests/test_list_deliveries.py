"""`GET /v1/webhooks/{id}/deliveries`."""

from datetime import UTC, datetime, timedelta

import pytest

from compliance.core.clock import now
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant
from webhooks import services
from webhooks.models import Webhook
from webhooks.tests.factories import ACTOR, make_delivery, make_finished_delivery, make_webhook
from webhooks.tests.steps import deliver
from webhooks.vocabulary import EventName

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def path(webhook: Webhook, query: str = "") -> str:
    return f"/v1/webhooks/{webhook.id}/deliveries{query}"


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant))


def test_delivery_is_shown_with_its_attempts(client: ApiClient, tenant: Tenant, loopback: None) -> None:
    with receiving(answer(503, b"later")) as receiver:
        webhook = make_webhook(tenant, receiver.url)
        delivery = make_delivery(webhook, at=START)
        deliver(START)

    response = client.get(path(webhook))

    assert response.status_code == 200
    body = response.json()
    assert (body["has_next_page"], body["next_cursor"]) == (False, None)
    (shown,) = body["data"]
    (attempt,) = shown.pop("attempts")
    next_attempt_at = shown.pop("next_attempt_at")
    assert shown == {
        "id": str(delivery.id),
        "webhook_id": str(webhook.id),
        "event_id": str(delivery.message_id),
        "event": "certificate.revoked",
        "status": "pending",
        "trigger": "event",
        "attempt_count": 1,
        "max_attempts": 4,
        "created_at": "2026-11-20T09:00:00Z",
        "completed_at": None,
    }
    assert next_attempt_at.startswith("2026-11-20T09:00:01")
    assert attempt.pop("duration_ms") >= 0
    assert attempt == {
        "number": 1,
        "url": receiver.url,
        "started_at": "2026-11-20T09:00:00Z",
        "response_status": 503,
        "response_body": "later",
        "error": None,
    }


def test_pages_lose_and_repeat_nothing(client: ApiClient, tenant: Tenant) -> None:
    webhook = make_webhook(tenant)
    made = [str(make_delivery(webhook, at=START).id) for _ in range(5)]

    found, query = [], "?limit=2"
    for _ in range(3):
        body = client.get(path(webhook, query)).json()
        found += [row["id"] for row in body["data"]]
        query = f"?limit=2&before={body['next_cursor']}"

    assert found == made[::-1]
    assert (body["has_next_page"], body["next_cursor"]) == (False, None)


def test_plain_time_is_a_cursor(client: ApiClient, tenant: Tenant) -> None:
    webhook = make_webhook(tenant)
    older = make_delivery(webhook, at=START)
    make_delivery(webhook, at=START + timedelta(hours=1))

    body = client.get(path(webhook, "?before=2026-11-20T09:30:00Z")).json()

    assert [row["id"] for row in body["data"]] == [str(older.id)]


def test_history_is_filtered_by_event_and_status(client: ApiClient, tenant: Tenant) -> None:
    webhook = make_webhook(tenant, events=["certificate.revoked", "risk.alert"])
    failed = make_finished_delivery(webhook, "failed")
    alert = make_delivery(webhook, event=EventName.RISK_ALERT)
    services.send_test(tenant_id=tenant.id, webhook_id=webhook.id, actor=ACTOR, now=now())

    def ids(query: str) -> list[str]:
        return [row["id"] for row in client.get(path(webhook, query)).json()["data"]]

    assert ids("?status=failed") == [str(failed.id)]
    assert ids("?event=risk.alert") == [str(alert.id)]
    assert ids("?event=risk.alert&status=failed") == []
    assert len(ids("?event=webhook.test")) == 1
    assert len(ids("")) == 3


def test_history_is_one_webhooks_own(client: ApiClient, tenant: Tenant) -> None:
    mine, other = make_webhook(tenant), make_webhook(tenant)
    make_delivery(mine)

    assert len(client.get(path(mine)).json()["data"]) == 1
    assert len(client.get(path(other)).json()["data"]) == 1
    assert client.get(path(mine)).json()["data"][0]["webhook_id"] == str(mine.id)
