"""`webhook_list` and `webhook_resend`."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from auditlog.models import AuditEntry
from compliance.core.clock import now
from tenancy.tests.factories import make_tenant
from webhooks.models import Delivery
from webhooks.tests.factories import (
    make_delivery,
    make_finished_delivery,
    make_webhook,
    make_webhook_with_secret,
)


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
