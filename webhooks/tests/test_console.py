"""Webhooks in the console: what developers do, and that nobody else does it."""

import io
import json
from datetime import timedelta
from typing import Any, cast

import pytest
from django.core.management import call_command
from django.db import connections
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.encryption import decrypt
from compliance.tests.console import actor_id_of, console_of, make_member
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant
from webhooks.models import Attempt, Delivery, DeliveryStatus, Trigger, Webhook
from webhooks.tests.factories import (
    make_delivery,
    make_finished_delivery,
    make_inactive_webhook,
    make_webhook,
    make_webhook_with_secret,
)


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

    client = console_of(make_member(acme, Role.DEVELOPER))

    page = client.post(reverse("admin:webhooks_webhook_rotate", args=[webhook.pk]), follow=True)

    webhook.refresh_from_db()
    secret = page.context["secret"]
    assert decrypt(bytes(webhook.secret)).decode() == secret
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


NEW = {
    "url": "https://hooks.example.com/new",
    "events": ["risk.alert"],
    "format": "slack",
    "description": "Pager",
}


def add(role: Role, member_of: Tenant, **fields: Any) -> Any:
    client = console_of(make_member(member_of, role))
    form = {"tenant": member_of.pk, **NEW, **fields}
    return client.post(reverse("admin:webhooks_webhook_add"), form, follow=True)


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.OFFICER_WEBHOOKS])
def test_those_who_keep_webhooks_add_one_and_see_its_secret_once(acme: Tenant, role: Role) -> None:
    page = add(role, acme)

    webhook = Webhook.objects.get(tenant=acme)
    assert {name: getattr(webhook, name) for name in NEW} == NEW
    assert decrypt(bytes(webhook.secret)).decode() in page.content.decode()
    (entry,) = AuditEntry.objects.for_tenant(acme.id).of_type("webhook.created")
    assert entry.actor_id == actor_id_of(role.value)


def test_officer_who_keeps_webhooks_changes_them_and_stays_an_officer(acme: Tenant) -> None:
    webhook, agent = make_webhook(acme), make_certified_agent(acme)
    client = console_of(make_member(acme, Role.OFFICER_WEBHOOKS))

    client.post(reverse("admin:webhooks_webhook_change", args=[webhook.pk]), NEW)
    client.post(reverse("admin:webhooks_webhook_off", args=[webhook.pk]))
    client.post(reverse("admin:agents_agent_suspend", args=[agent.pk]), {"reason": "odd"})
    refused = client.get(reverse("admin:gateway_gatewayroute_add"))

    webhook.refresh_from_db()
    agent.refresh_from_db()
    assert (webhook.url, webhook.active, agent.status) == (NEW["url"], False, "suspended")
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"url": "http://hooks.example.com/"}, "https"),
        ({"url": "https://10.0.0.1/"}, "public"),
        ({"url": "https://user:pass@hooks.example.com/"}, "user name"),
        ({"events": []}, "required"),
        ({"events": ["agent.dreams"]}, "not one of the available choices"),
    ],
)
def test_rules_of_urls_and_events_hold_in_the_console(
    acme: Tenant, settings: Any, fields: dict[str, Any], told: str
) -> None:
    settings.WEBHOOK_ALLOW_HTTP = settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = False

    page = add(Role.DEVELOPER, acme, **fields)

    assert told in page.content.decode()
    assert not Webhook.objects.filter(tenant=acme).exists()


def test_more_webhooks_than_a_tenant_may_have_are_an_error_on_the_page(acme: Tenant, settings: Any) -> None:
    settings.WEBHOOKS_PER_TENANT = 0

    page = add(Role.DEVELOPER, acme)

    assert "at most 0 webhooks" in page.content.decode()


@pytest.mark.parametrize("role", [Role.OFFICER, Role.AUDITOR])
def test_only_developers_add_and_edit(acme: Tenant, role: Role) -> None:
    webhook = make_webhook(acme)

    client = console_of(make_member(acme, role))
    answers = [
        client.post(reverse("admin:webhooks_webhook_add"), {"tenant": acme.pk, **NEW}),
        client.post(reverse("admin:webhooks_webhook_change", args=[webhook.pk]), NEW),
    ]

    webhook.refresh_from_db()
    assert [answer.status_code for answer in answers] == [403, 403]
    assert webhook.url != NEW["url"]
    assert Webhook.objects.filter(tenant=acme).count() == 1


def test_nobody_adds_a_webhook_for_a_tenant_of_others(acme: Tenant) -> None:
    rival = make_tenant("Rival")

    add(Role.DEVELOPER, acme, tenant=rival.pk)

    assert not Webhook.objects.filter(tenant=rival).exists()


def test_developer_edits_what_is_sent_where_and_nothing_else(acme: Tenant) -> None:
    webhook = make_webhook(acme)
    client = console_of(make_member(acme, Role.DEVELOPER))
    forged = {"active": "", "tenant": make_tenant("Rival").pk, "failed_deliveries": 7, "secret_hint": "x"}

    client.post(reverse("admin:webhooks_webhook_change", args=[webhook.pk]), NEW | forged)

    changed = Webhook.objects.get(pk=webhook.pk)
    assert {name: getattr(changed, name) for name in NEW} == NEW
    kept = ("active", "tenant_id", "failed_deliveries", "secret_hint", "secret")
    assert [getattr(changed, name) for name in kept] == [getattr(webhook, name) for name in kept]
    (entry,) = AuditEntry.objects.for_tenant(acme.id).of_type("webhook.updated")
    assert (entry.metadata or {})["changed"] == ["description", "events", "format", "url"]


def test_list_shows_success_and_the_last_delivery_in_one_query(acme: Tenant) -> None:
    for webhook in (make_webhook(acme), make_webhook(acme)):
        for status in ("succeeded", "succeeded", "succeeded", "failed"):
            make_finished_delivery(webhook, status)
    client = console_of(make_member(acme, Role.DEVELOPER))

    with CaptureQueriesContext(connections["default"]) as queries:
        html = client.get(reverse("admin:webhooks_webhook_changelist")).content.decode()

    # What still waits does not count.
    assert html.count("75 % of 4") == 2
    assert len([one for one in queries.captured_queries if "webhooks_delivery" in one["sql"]]) == 1


def test_a_delivery_shows_what_was_sent_and_each_attempt(acme: Tenant) -> None:
    delivery = make_finished_delivery(make_webhook(acme), DeliveryStatus.FAILED, completed_at=now())
    url, error = "https://a.example/", "Connection refused"
    Attempt.objects.create(tenant=acme, delivery=delivery, number=1, url=url, started_at=now(), error=error)
    client = console_of(make_member(acme, Role.DEVELOPER))

    html = client.get(reverse("admin:webhooks_delivery_change", args=[delivery.pk])).content.decode()

    for shown in (str(delivery.message_id), "serial_number", error):
        assert shown in html


@pytest.mark.parametrize(
    ("text", "seen"), [("A.example", {"a"}), ("c.example", set()), ("example", {"a", "b"})]
)
def test_deliveries_are_found_by_their_webhooks_url(acme: Tenant, text: str, seen: set[str]) -> None:
    made = {}
    for name, tenant in {"a": acme, "b": acme, "c": make_tenant("Other")}.items():
        made[name] = make_webhook(tenant, url=f"https://{name}.example/hook")
        make_finished_delivery(made[name], DeliveryStatus.FAILED, completed_at=now())
    client = console_of(make_member(acme, Role.DEVELOPER))

    answer: Any = client.get(reverse("admin:webhooks_delivery_changelist"), {"q": text})

    assert {row.webhook_id for row in answer.context["cl"].result_list} == {made[name].pk for name in seen}


# --- `webhook_list` and `webhook_resend` -----------------------------------------------------------


def run(name: str, *arguments: object) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command(name, *map(str, arguments), "--json", stdout=out)
    found: list[dict[str, Any]] = json.loads(out.getvalue())
    return found


def test_list_tells_how_each_webhook_stands() -> None:
    tenant = make_tenant()
    webhook, secret = make_webhook_with_secret(tenant)
    make_webhook(make_tenant())
    make_delivery(webhook)
    make_finished_delivery(webhook, "failed")

    (row,) = run("webhook_list", "--tenant", tenant.id)

    assert (row["id"], row["tenant"]) == (str(webhook.id), str(tenant.id))
    assert (row["pending"], row["failed"]) == (1, 1)
    assert secret not in json.dumps(row)


def test_list_shows_every_tenants_webhooks_of_one_environment() -> None:
    webhooks = {str(make_webhook(make_tenant()).id) for _ in range(2)}

    assert webhooks <= {row["id"] for row in run("webhook_list")}
    assert not webhooks & {row["id"] for row in run("webhook_list", "--environment", "test")}


def test_resend_sends_one_delivery_again() -> None:
    tenant = make_tenant()
    delivery = make_finished_delivery(make_webhook(tenant), "failed")

    (row,) = run("webhook_resend", delivery.webhook_id, "--delivery", delivery.id)

    assert row["event_id"] == str(delivery.message_id)
    assert Delivery.objects.get(id=row["id"]).trigger == "redelivery"
    assert AuditEntry.objects.for_tenant(tenant.id).of_type("webhook.redelivered").count() == 1


@pytest.mark.parametrize("naive", [True, False])
def test_resend_recovers_all_that_failed_since(naive: bool) -> None:
    webhook = make_webhook(make_tenant())
    failed = {str(make_finished_delivery(webhook, "failed").message_id) for _ in range(2)}
    since = now() - timedelta(hours=1)

    rows = run("webhook_resend", webhook.id, "--failed-since", since.replace(tzinfo=None) if naive else since)

    assert {row["event_id"] for row in rows} == failed


def test_unknown_webhook_exits_3() -> None:
    with pytest.raises(SystemExit) as left:
        run("webhook_resend", "00000000-0000-0000-0000-000000000000", "--failed-since", "2026-01-01")

    assert left.value.code == 3
