"""`DELETE /v1/webhooks/{id}`."""

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant
from webhooks import publishing
from webhooks.models import Delivery, Webhook
from webhooks.tests.factories import make_delivery, make_finished_delivery, make_webhook
from webhooks.vocabulary import EventName


def test_deleted_webhook_is_gone(api: ApiClient) -> None:
    tenant = make_tenant()
    path = f"/v1/webhooks/{make_webhook(tenant).id}"
    client = api.as_key(make_key(tenant))

    answer = client.delete(path)

    assert answer.status_code == 204
    assert answer.content == b""
    assert client.get(path).status_code == 404
    assert client.get("/v1/webhooks").json() == {"data": []}
    assert client.get(f"{path}/deliveries").status_code == 404
    assert client.patch(path, {"active": True}).status_code == 404
    assert client.delete(path).status_code == 404


def test_deletion_cancels_what_waits_and_keeps_the_history(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)
    waiting, done = make_delivery(webhook), make_finished_delivery(webhook, "succeeded")

    api.as_key(make_key(tenant)).delete(f"/v1/webhooks/{webhook.id}")

    statuses = dict(Delivery.objects.filter(webhook=webhook).values_list("id", "status"))
    assert statuses == {waiting.id: "cancelled", done.id: "succeeded"}


def test_deletion_destroys_the_secret_and_is_audited(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)

    api.as_key(make_key(tenant)).delete(f"/v1/webhooks/{webhook.id}")

    assert bytes(Webhook.objects.get(id=webhook.id).secret) == b""
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.deleted")
    assert entry.affected_id == str(webhook.id)


def test_nothing_is_published_to_a_deleted_webhook(api: ApiClient) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant)
    api.as_key(make_key(tenant)).delete(f"/v1/webhooks/{webhook.id}")

    found = publishing.publish(tenant_id=tenant.id, name=EventName.CERTIFICATE_REVOKED, data={}, now=now())

    assert found is None
