"""Who gets in: 401, 403, and which environment a key opens."""

import pytest

from agents.tests.factories import make_agent
from compliance.api.gate import Scope
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from tenancy import keys
from tenancy.models import ApiKey
from tenancy.tests.factories import make_key, make_tenant, make_test_key


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "Missing Authorization header"),
        ("Basic dXNlcjpwYXNz", "Missing Authorization header"),
        ("Bearer", "Missing Authorization header"),
        ("Bearer nonsense", "Invalid API key"),
        ("Bearer service_live_wrong", "Invalid API key"),
        ("Bearer service_test_wrong", "Invalid API key"),
        ("Bearer service_live_\xff\xfe", "Invalid API key"),
    ],
)
def test_bad_credentials_are_401(api: ApiClient, header: str | None, message: str) -> None:
    answer = api.get("/v1/agents", **({"Authorization": header} if header else {}))

    assert answer.status_code == 401
    assert answer.json()["error"].startswith(message)
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_live_secret_under_the_test_prefix_is_401(api: ApiClient) -> None:
    secret = make_key(make_tenant())

    answer = api.as_key(secret.replace("_live_", "_test_")).get("/v1/agents")

    assert answer.status_code == 401


def test_key_without_the_scope_is_403(api: ApiClient) -> None:
    key = make_key(make_tenant(), scopes=[Scope.AGENTS_READ])

    answer = api.as_key(key).post("/v1/agents", {"name": "a", "model_hash": "h"})

    assert answer.status_code == 403
    assert answer.json() == {"error": "This API key lacks the scope agents:write"}


def test_live_key_cannot_fetch_a_test_agent(api: ApiClient) -> None:
    tenant = make_tenant()
    with environments.use(Environment.TEST):
        agent = make_agent(tenant)

    assert api.as_key(make_key(tenant)).get(f"/v1/agents/{agent.id}").status_code == 404
    assert api.as_key(make_test_key(tenant)).get(f"/v1/agents/{agent.id}").status_code == 200


def test_use_is_noted(api: ApiClient) -> None:
    secret = make_key(make_tenant())

    api.as_key(secret).get("/v1/agents")

    used_at = ApiKey.objects.get(digest=keys.digest(secret)).last_used_at
    assert used_at is not None
    assert (now() - used_at).total_seconds() < 60


def test_secret_is_stored_only_as_a_digest() -> None:
    secret = make_key(make_tenant())

    row = ApiKey.objects.values().get(digest=keys.digest(secret))

    assert secret not in repr(row)
    assert len(secret.removeprefix("service_live_")) >= 43
