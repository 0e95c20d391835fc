"""A kept answer is for the API key that it was given to alone, and no longer than promised."""

from datetime import timedelta
from typing import Any

import pytest

from compliance.api.idempotency import forget
from compliance.api.models import RETENTION, IdempotencyRecord
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from tenancy import services as tenancy
from tenancy.models import ApiKey
from tenancy.tests.factories import ACTOR, make_key, make_tenant
from webhooks.tests.factories import make_webhook

HEADERS = {"Idempotency_Key": "one"}
HOOK = {"url": "https://example.com/hook", "events": ["agent.created"]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/webhooks", HOOK),
        ("/v1/webhooks/{webhook}/rotate-secret", {}),
        ("/v1/agents", {"name": "a", "model_hash": "h"}),
    ],
)
def test_another_key_of_the_tenant_is_not_shown_what_one_was(
    api: ApiClient, path: str, body: dict[str, Any]
) -> None:
    tenant = make_tenant()
    one, other = api.as_key(make_key(tenant)), api.as_key(make_key(tenant))
    path = path.format(webhook=make_webhook(tenant).id)

    first = one.post(path, body, **HEADERS)
    second = other.post(path, body, **HEADERS)
    again = one.post(path, body, **HEADERS)

    assert first.status_code == second.status_code == again.status_code < 300
    assert "Idempotent-Replayed" not in second
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    assert second.json() != first.json()
    secrets = {answer.json()["data"].get("secret") for answer in (first, second)}
    assert len(secrets) == 2 or secrets == {None}


def test_another_key_may_use_the_same_value_for_something_else(api: ApiClient) -> None:
    tenant = make_tenant()
    api.as_key(make_key(tenant)).post("/v1/webhooks", HOOK, **HEADERS)

    answer = api.as_key(make_key(tenant)).post("/v1/agents", {"name": "a", "model_hash": "h"}, **HEADERS)

    assert answer.status_code == 201


def test_the_successor_of_a_rolled_key_is_another_key(api: ApiClient) -> None:
    tenant = make_tenant()
    secret = make_key(tenant)
    first = api.as_key(secret).post("/v1/webhooks", HOOK, **HEADERS)
    key = ApiKey.objects.get(tenant=tenant)
    rolled = tenancy.roll_key(key_id=key.id, overlap=timedelta(hours=1), actor=ACTOR, now=now())

    second = api.as_key(rolled.secret).post("/v1/webhooks", HOOK, **HEADERS)

    assert second.status_code == 201
    assert second.json()["data"]["secret"] != first.json()["data"]["secret"]


def test_a_row_from_before_answers_nobody(api: ApiClient) -> None:
    tenant = make_tenant()
    IdempotencyRecord.objects.create(
        tenant_id=tenant.id, key="one", fingerprint="f", status=201, created_at=now()
    )

    answer = api.as_key(make_key(tenant)).post("/v1/webhooks", HOOK, **HEADERS)

    assert answer.status_code == 201
    assert "Idempotent-Replayed" not in answer


def make_record(age: timedelta) -> IdempotencyRecord:
    return IdempotencyRecord.objects.create(
        tenant_id=new_id(), key="key", fingerprint="f", created_at=now() - age
    )


def test_answers_are_forgotten_after_their_retention() -> None:
    make_record(RETENTION + timedelta(minutes=1))
    kept = make_record(RETENTION - timedelta(minutes=1))

    forget(now=now())

    assert list(IdempotencyRecord.objects.all()) == [kept]
