"""Webhooks in the console: what developers do, and that nobody else does it."""

from typing import Any, cast

import pytest
from django.http import HttpResponse
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.core.encryption import decrypt
from compliance.tenancy.models import Role, Tenant
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.console import actor_id_of, console_of, make_member
from webhooks.models import Delivery, DeliveryStatus, Trigger
from webhooks.tests.factories import make_finished_delivery, make_inactive_webhook, make_webhook

EVERY_ACTION = ["test", "recover", "rotate", "off"]


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def act(role: Role, tenant: Tenant, action: str, row: Any, **data: Any) -> HttpResponse:
    client = console_of(make_member(tenant, role))
    return cast("HttpResponse", client.post(reverse(f"admin:webhooks_{action}", args=[row.pk]), data))


def test_developer_sends_a_test_message(acme: Tenant) -> None:
    webhook = make_webhook(acme)

    act(Role.DEVELOPER, acme, "webhook_test", webhook)

    assert Delivery.objects.get(webhook=webhook).trigger == Trigger.TEST
    (entry,) = AuditEntry.objects.for_tenant(acme.id).of_type("webhook.tested")
    assert entry.actor_id == actor_id_of("developer")


def test_developer_redelivers_one_and_all_that_failed(acme: Tenant) -> None:
    webhook = make_webhook(acme)
    failed = make_finished_delivery(webhook, DeliveryStatus.FAILED, completed_at=now())

    act(Role.DEVELOPER, acme, "webhook_recover", webhook, hours=1)
    first = Delivery.objects.to_webhook(webhook).filter(trigger=Trigger.REDELIVERY).count()
    client = console_of(make_member(acme, Role.DEVELOPER, "second"))
    client.post(reverse("admin:webhooks_delivery_redeliver", args=[failed.pk]))

    assert first == 1
    assert Delivery.objects.to_webhook(webhook).filter(trigger=Trigger.REDELIVERY).count() == 2


def test_a_rotated_secret_is_shown_once(acme: Tenant) -> None:
    webhook = make_webhook(acme)

    page: Any = act(Role.DEVELOPER, acme, "webhook_rotate", webhook)

    webhook.refresh_from_db()
    secret = page.context["secret"]
    assert decrypt(bytes(webhook.secret)).decode() == secret
    client = console_of(make_member(acme, Role.DEVELOPER, "second"))
    later = client.get(reverse("admin:webhooks_webhook_change", args=[webhook.pk]))
    assert secret not in later.content.decode()


def test_developer_switches_a_webhook_off_and_on(acme: Tenant) -> None:
    webhook, silent = make_webhook(acme), make_inactive_webhook(acme)

    act(Role.DEVELOPER, acme, "webhook_off", webhook)
    client = console_of(make_member(acme, Role.DEVELOPER, "second"))
    client.post(reverse("admin:webhooks_webhook_on", args=[silent.pk]))

    webhook.refresh_from_db()
    silent.refresh_from_db()
    assert (webhook.active, silent.active) == (False, True)


@pytest.mark.parametrize("action", EVERY_ACTION)
@pytest.mark.parametrize("role", [Role.OFFICER, Role.AUDITOR])
def test_officers_and_auditors_change_no_webhook(acme: Tenant, role: Role, action: str) -> None:
    webhook = make_webhook(acme)

    answer = act(role, acme, f"webhook_{action}", webhook, hours=1)

    webhook.refresh_from_db()
    assert answer.status_code == 403
    assert webhook.active
    assert not Delivery.objects.filter(webhook=webhook).exists()


@pytest.mark.parametrize("action", EVERY_ACTION)
def test_a_foreign_webhook_is_answered_like_a_missing_one(acme: Tenant, action: str) -> None:
    webhook = make_webhook(make_tenant("Rival"))

    answer = act(Role.DEVELOPER, acme, f"webhook_{action}", webhook, hours=1)

    webhook.refresh_from_db()
    assert answer.headers["Location"] == reverse("admin:index")
    assert webhook.active
