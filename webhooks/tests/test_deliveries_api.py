"""The endpoints of deliveries: history, redelivery, recovery; and the secret's rotation."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant
from webhooks import services
from webhooks.models import Delivery, Webhook
from webhooks.sending import signature
from webhooks.tests.factories import (
    ACTOR,
    make_delivery,
    make_finished_delivery,
    make_webhook,
    make_webhook_with_secret,
)
from webhooks.tests.steps import claimed, deliver
from webhooks.vocabulary import EventName

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def path(webhook: Webhook, query: str = "") -> str:
    return f"/v1/webhooks/{webhook.id}/deliveries{query}"


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


# --- `POST /v1/webhooks/{id}/deliveries/{id}/redeliver`, and the recovery of all that failed -------


def redelivery_path(delivery: Delivery) -> str:
    return f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}/redeliver"


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_same_event_goes_out_again_as_a_delivery_of_its_own(
    client: ApiClient, tenant: Tenant, loopback: None, status: str
) -> None:
    with receiving(answer(200)) as receiver:
        delivery = make_finished_delivery(make_webhook(tenant, receiver.url), status)

        response = client.post(redelivery_path(delivery))
        again = Delivery.objects.get(trigger="redelivery", webhook=delivery.webhook)
        deliver(now())

    assert response.status_code == 202
    data = response.json()["data"]
    assert (data["id"], data["event_id"]) == (str(again.id), str(delivery.message_id))
    assert (data["trigger"], data["status"], data["attempt_count"]) == ("redelivery", "pending", 0)
    assert receiver.received[0].body == bytes(delivery.message.body)
    delivery.refresh_from_db()
    assert delivery.status == status
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.redelivered")
    assert entry.affected_id == str(delivery.webhook_id)
    assert (entry.metadata or {})["event_id"] == str(delivery.message_id)


def test_delivery_under_way_is_not_sent_twice(client: ApiClient, tenant: Tenant) -> None:
    delivery = make_delivery(make_webhook(tenant))

    pending = client.post(redelivery_path(delivery))
    claimed(delivery, now())
    in_flight = client.post(redelivery_path(delivery))

    assert (pending.status_code, in_flight.status_code) == (422, 422)
    assert pending.json() == {"error": "Delivery is still under way"}


def test_inactive_webhook_gets_nothing_again(client: ApiClient, tenant: Tenant) -> None:
    delivery = make_finished_delivery(make_webhook(tenant), "failed")
    Webhook.objects.filter(id=delivery.webhook_id).update(active=False)

    assert client.post(redelivery_path(delivery)).status_code == 422


def test_delivery_of_another_webhook_is_not_found(client: ApiClient, tenant: Tenant) -> None:
    delivery = make_finished_delivery(make_webhook(tenant), "failed")
    other = make_webhook(tenant)

    crossed = client.post(f"/v1/webhooks/{other.id}/deliveries/{delivery.id}/redeliver")
    nonsense = client.post(f"/v1/webhooks/{other.id}/deliveries/x/redeliver")

    assert (crossed.status_code, nonsense.status_code) == (404, 404)
    assert crossed.json() == {"error": "Delivery not found"}


def recover(webhook: Webhook, **ago: Any) -> list[Delivery]:
    moment = now()
    return services.redeliver_failed(
        tenant_id=webhook.tenant_id,
        webhook_id=webhook.id,
        since=moment - timedelta(**ago),
        actor=ACTOR,
        now=moment,
    )


def test_recovery_takes_each_event_whose_last_delivery_failed() -> None:
    webhook = make_webhook(make_tenant())
    failed = make_finished_delivery(webhook, "failed")
    make_finished_delivery(webhook, "succeeded")
    make_delivery(webhook)
    make_finished_delivery(webhook, "failed", created_at=now() - timedelta(days=2))

    assert [delivery.message_id for delivery in recover(webhook, hours=1)] == [failed.message_id]
    assert recover(webhook, hours=1) == []


# --- `POST /v1/webhooks/{id}/rotate-secret` --------------------------------------------------------


def test_new_secret_is_shown_once_and_signs(client: ApiClient, tenant: Tenant, loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        webhook, old = make_webhook_with_secret(tenant, receiver.url)

        response = client.post(f"/v1/webhooks/{webhook.id}/rotate-secret")
        make_delivery(webhook)
        deliver(now())

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
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.secret_rotated")
    assert data["secret"] not in f"{entry.description} {entry.metadata}"


def test_old_secret_signs_beside_the_new_one_until_its_time(loopback: None) -> None:
    tenant, moment = make_tenant(), now()
    with receiving(answer(200)) as receiver:
        webhook, old = make_webhook_with_secret(tenant, receiver.url)
        new = services.rotate_secret(
            tenant_id=tenant.id, webhook_id=webhook.id, actor=ACTOR, now=moment, overlap_seconds=60
        ).secret
        for seconds in (59, 60):
            make_delivery(webhook, at=moment)
            deliver(moment + timedelta(seconds=seconds))

    within, after = receiver.received
    assert within.headers["x-service-signature"] == signature.sign(within.body, new)
    assert within.headers["x-service-signature-previous"] == signature.sign(within.body, old)
    timestamp = int(within.headers["webhook-timestamp"])
    assert within.headers["webhook-signature"].split(" ") == [
        signature.sign_standard(
            within.body, secret, message_id=within.headers["webhook-id"], timestamp=timestamp
        )
        for secret in (new, old)
    ]
    assert "x-service-signature-previous" not in after.headers
    assert " " not in after.headers["webhook-signature"]


def test_leaked_secret_signs_nothing_more(client: ApiClient, tenant: Tenant, loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        webhook = make_webhook(tenant, receiver.url)

        response = client.post(f"/v1/webhooks/{webhook.id}/rotate-secret", {"overlap_seconds": 0})
        make_delivery(webhook)
        deliver(now())

    assert response.json()["data"]["previous_secret_until"] is None
    assert "x-service-signature-previous" not in receiver.received[0].headers
    webhook.refresh_from_db()
    assert webhook.previous_secret is None
