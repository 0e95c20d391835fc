"""`POST /v1/webhooks/{id}/rotate-secret`."""

from datetime import timedelta

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant
from webhooks import services
from webhooks.sending import signature
from webhooks.tests.factories import ACTOR, make_delivery, make_webhook, make_webhook_with_secret
from webhooks.tests.steps import deliver


def test_new_secret_is_shown_once_and_signs(api: ApiClient, loopback: None) -> None:
    tenant = make_tenant()
    client = api.as_key(make_key(tenant))
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


def test_leaked_secret_signs_nothing_more(api: ApiClient, loopback: None) -> None:
    tenant = make_tenant()
    with receiving(answer(200)) as receiver:
        webhook = make_webhook(tenant, receiver.url)

        response = api.as_key(make_key(tenant)).post(
            f"/v1/webhooks/{webhook.id}/rotate-secret", {"overlap_seconds": 0}
        )
        make_delivery(webhook)
        deliver(now())

    assert response.json()["data"]["previous_secret_until"] is None
    assert "x-service-signature-previous" not in receiver.received[0].headers
    webhook.refresh_from_db()
    assert webhook.previous_secret is None


def test_rotation_is_audited_without_the_secret(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)

    data = api.as_key(make_key(tenant)).post(f"/v1/webhooks/{webhook.id}/rotate-secret").json()["data"]

    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.secret_rotated")
    assert data["secret"] not in f"{entry.description} {entry.metadata}"
