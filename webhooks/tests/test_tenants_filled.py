"""Deliveries and attempts have their tenant, whichever version of the service inserted them."""

from importlib import import_module
from typing import Any

import pytest
from django.db import IntegrityError, connections

from compliance.core import environments
from compliance.core.clock import now
from compliance.stores import sql
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.citus import not_on_citus
from webhooks.models import Attempt, Delivery, Webhook
from webhooks.tests.factories import make_delivery, make_webhook

filling: Any = import_module("webhooks.migrations.0007_fill_tenants")

pytestmark = not_on_citus("there the column has a value in each row from the start")

OLD_DELIVERY = """
INSERT INTO webhooks_delivery (id, webhook_id, message_id, status, trigger, attempt_count, max_attempts,
    next_attempt_at, created_at)
SELECT gen_random_uuid(), webhook_id, message_id, 'pending', 'redelivery', 0, 4, created_at, created_at
FROM webhooks_delivery WHERE id = %s RETURNING id, tenant_id
"""
OLD_ATTEMPT = """
INSERT INTO webhooks_attempt (id, delivery_id, number, url, started_at)
VALUES (gen_random_uuid(), %s, 1, 'https://a.example/', now()) RETURNING tenant_id
"""
FORGET = """
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE webhooks_delivery DROP CONSTRAINT webhooks_delivery_has_tenant;
ALTER TABLE webhooks_attempt DROP CONSTRAINT webhooks_attempt_has_tenant;
UPDATE webhooks_delivery SET tenant_id = NULL;
UPDATE webhooks_attempt SET tenant_id = NULL;
"""


def attempted(webhook: Webhook) -> Delivery:
    delivery = make_delivery(webhook)
    Attempt.objects.create(
        tenant_id=webhook.tenant_id, delivery=delivery, number=1, url=webhook.url, started_at=now()
    )
    return delivery


def test_rows_of_the_version_before_are_given_their_tenant() -> None:
    delivery = make_delivery(make_webhook(make_tenant()))

    ((again, of_delivery),) = sql.query(OLD_DELIVERY, [delivery.id])
    ((of_attempt,),) = sql.query(OLD_ATTEMPT, [again])

    assert of_delivery == of_attempt == delivery.tenant_id


@pytest.mark.parametrize("model", [Delivery, Attempt])
def test_row_without_a_tenant_is_refused(model: Any) -> None:
    attempted(make_webhook(make_tenant()))

    with pytest.raises(IntegrityError, match="has_tenant"), environments.atomic():
        model.objects.update(tenant=None)


def test_rows_from_before_are_filled_in_parts(owned: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "ROWS", 2)
    webhooks = [make_webhook(make_tenant()) for _ in range(2)]
    deliveries = [attempted(webhook) for webhook in webhooks for _ in range(3)]
    connection = connections["default"]
    with connection.cursor() as cursor:
        cursor.execute(FORGET)

    with connection.schema_editor(atomic=False) as editor:
        filling.fill(None, editor)

    wanted = sorted((one.id, one.tenant_id) for one in deliveries)
    assert sorted(Delivery.objects.values_list("id", "tenant_id")) == wanted
    assert sorted(Attempt.objects.values_list("delivery_id", "tenant_id")) == wanted
