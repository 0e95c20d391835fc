"""A webhook that fails for too long is switched off, and everybody can see it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.outbound.http_client import Outcome
from compliance.tests.client import ApiClient
from compliance.tests.console import console_of, make_member
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant
from webhooks import services
from webhooks.models import Delivery, Webhook
from webhooks.tests.factories import ACTOR, make_delivery, make_webhook
from webhooks.tests.steps import claim, settle

SECOND = timedelta(seconds=1)
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
GOOD = Outcome(timedelta(milliseconds=20), 200, "ok")
BAD = Outcome(timedelta(milliseconds=20), 500, "no")


@pytest.fixture(autouse=True)
def soon(settings: Any) -> None:
    settings.WEBHOOK_DISABLE_AFTER_DELIVERIES = 2
    settings.WEBHOOK_DISABLE_AFTER_SECONDS = 60


def fail(webhook: Webhook, at: datetime, outcome: Outcome = BAD) -> None:
    """A delivery whose last attempt comes to `outcome`."""
    delivery = make_delivery(webhook, at=at)
    Delivery.objects.filter(id=delivery.id).update(attempt_count=3)
    (attempt,) = claim(at)
    assert settle(attempt, outcome, at)
    webhook.refresh_from_db()


def disabled(tenant: Tenant) -> Webhook:
    webhook = make_webhook(tenant)
    fail(webhook, START)
    make_delivery(webhook, at=START + 600 * SECOND)
    fail(webhook, START + 60 * SECOND)
    assert webhook.disabled_at is not None
    return webhook


def test_receiver_that_is_gone_is_disabled_at_once() -> None:
    webhook = make_webhook(make_tenant())
    waiting = make_delivery(webhook, at=START + 600 * SECOND)
    delivery = make_delivery(webhook, at=START)
    (attempt,) = claim(START)

    assert settle(attempt, Outcome(timedelta(milliseconds=20), 410, "gone"), START)

    webhook.refresh_from_db()
    assert (webhook.active, webhook.disabled_at) == (False, START)
    assert {one.status for one in Delivery.objects.filter(id__in=[waiting.id, delivery.id])} == {"failed"}
    assert AuditEntry.objects.filter(description__contains="410 Gone", affected_id=str(webhook.id)).exists()


def test_answer_of_a_former_address_does_not_disable_the_new_one() -> None:
    webhook = make_webhook(make_tenant())
    make_delivery(webhook, at=START)
    (attempt,) = claim(START)
    Webhook.objects.filter(id=webhook.id).update(url="https://other.example.org/hook")

    settle(attempt, Outcome(timedelta(milliseconds=20), 410, "gone"), START)

    webhook.refresh_from_db()
    assert webhook.active


def test_webhook_is_disabled_after_so_many_failed_deliveries_over_so_long() -> None:
    webhook = make_webhook(make_tenant())

    states = []
    for seconds in (0, 59, 60):
        fail(webhook, START + seconds * SECOND)
        states.append((webhook.failed_deliveries, webhook.active, webhook.disabled_at))

    assert states == [(1, True, None), (2, True, None), (3, False, START + 60 * SECOND)]


def test_one_success_begins_the_count_anew() -> None:
    webhook = make_webhook(make_tenant())

    for seconds, outcome in ((0, BAD), (30, GOOD), (90, BAD)):
        fail(webhook, START + seconds * SECOND, outcome)

    assert (webhook.failed_deliveries, webhook.active) == (1, True)
    assert webhook.failing_since == START + 90 * SECOND


def test_failed_attempts_that_are_retried_do_not_disable() -> None:
    webhook = make_webhook(make_tenant())
    for _ in range(5):
        make_delivery(webhook, at=START)
    for at in (START, START + 90 * SECOND):
        while attempts := claim(at):
            for attempt in attempts:
                settle(attempt, BAD, at)

    webhook.refresh_from_db()
    assert (webhook.failed_deliveries, webhook.active) == (0, True)


def test_history_audit_log_and_api_tell_of_it(client: ApiClient, tenant: Tenant) -> None:
    webhook = disabled(tenant)

    note = client.get(f"/v1/webhooks/{webhook.id}/deliveries?event=webhook.disabled").json()["data"]
    shown = client.get(f"/v1/webhooks/{webhook.id}").json()["data"]

    assert [(row["trigger"], row["status"], row["attempts"]) for row in note] == [("note", "cancelled", [])]
    message = Delivery.objects.get(id=note[0]["id"]).message
    data = json.loads(bytes(message.body))["data"]
    assert (data["failed_deliveries"], data["given_up"]) == (2, 1)
    assert (shown["active"], shown["disabled_at"]) == (False, "2026-11-20T09:01:00Z")
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.disabled")
    assert (entry.actor_type, entry.affected_id) == ("system", str(webhook.id))


def test_console_shows_it_first() -> None:
    tenant = make_tenant()
    disabled(tenant)
    client = console_of(make_member(tenant, Role.DEVELOPER))

    page = client.get(reverse("console_overview")).content.decode()
    rows = client.get(reverse("admin:webhooks_webhook_changelist")).content.decode()

    assert "Webhooks that don&#x27;t deliver" in page
    assert "disabled by the service" in page
    assert "disabled by the service" in rows


def test_what_waited_is_recovered_once_it_is_on_again(client: ApiClient, tenant: Tenant) -> None:
    webhook = disabled(tenant)
    since = {"since": START.isoformat()}
    refused = client.post(f"/v1/webhooks/{webhook.id}/recover", since)

    services.update(
        tenant_id=tenant.id, webhook_id=webhook.id, changes={"active": True}, actor=ACTOR, now=START
    )
    recovered = client.post(f"/v1/webhooks/{webhook.id}/recover", since)

    assert (refused.status_code, recovered.status_code) == (422, 202)
    assert recovered.json()["data"] == {
        "webhook_id": str(webhook.id),
        "since": "2026-11-20T09:00:00Z",
        "redelivered": 3,
    }
    webhook.refresh_from_db()
    assert (webhook.disabled_at, webhook.failed_deliveries) == (None, 0)
