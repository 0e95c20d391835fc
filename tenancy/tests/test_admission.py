"""Whoever shows no valid credential is counted by address, before anything is looked up for them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from compliance.api import unauthenticated
from compliance.api.gate import Scope
from compliance.api.rest.views import ApiViewSet
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import redis
from compliance.tests.client import ApiClient
from compliance.tests.console import console_of, make_operator
from compliance.tests.url_table import api_routes
from tenancy import keys, services
from tenancy.models import ApiKey
from tenancy.tests.factories import (
    ACTOR,
    make_expired_key,
    make_key,
    make_revoked_key,
    make_tenant,
    make_test_key,
)

LIMIT = 3
FOUR = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After")
Headers = dict[str, str]


@pytest.fixture(autouse=True)
def limit(settings: Any) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": LIMIT}


def bearing(secret: str) -> Headers:
    return {"Authorization": f"Bearer {secret}"}


STRANGERS: dict[str, tuple[str, Callable[[], Headers], int]] = {
    "no key": ("/v1/agents", dict, 401),
    "another scheme": ("/v1/agents", lambda: {"Authorization": "Basic eDp5"}, 401),
    "nonsense": ("/v1/agents", lambda: bearing("nonsense"), 401),
    "made-up live key": ("/v1/events", lambda: bearing(keys.new_secret(Environment.LIVE)), 401),
    "made-up test key": ("/v1/events", lambda: bearing(keys.new_secret(Environment.TEST)), 401),
    "revoked key": ("/v1/webhooks", lambda: bearing(make_revoked_key(make_tenant())), 401),
    "expired key": ("/v1/webhooks", lambda: bearing(make_expired_key(make_tenant())), 401),
    "unknown path": ("/v1/nothing", dict, 404),
    "unknown path with a made-up key": ("/.env", lambda: bearing(keys.new_secret(Environment.LIVE)), 404),
    "client without a key": ("/oauth/nothing", dict, 404),
    "unknown host": ("/v1/agents", lambda: {"Host": "evil.example"}, 400),
    "unknown host of a public endpoint": ("/v1/crl", lambda: {"Host": "evil.example"}, 400),
    "console": ("/admin/live/agents/agent/", dict, 302),
    "sign-in page": ("/admin/live/login/", dict, 200),
    "console in no environment": ("/admin/agents/agent/", dict, 302),
    "console with a made-up session": ("/admin/test/", lambda: {"Cookie": "sessionid=" + "a" * 32}, 302),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_are_limited_by_address(api: ApiClient, kind: str) -> None:
    path, headers_of, status = STRANGERS[kind]

    answers = [api.get(path, **headers_of()) for _ in range(LIMIT + 2)]

    assert [answer.status_code for answer in answers] == [status] * LIMIT + [429] * 2
    assert [answer["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0", "0"]
    refused = answers[-1]
    if path.startswith("/admin/"):
        assert b"Rate limit exceeded" in refused.content
        assert refused["Retry-After"]
    else:
        form = ["error", "error_description"] if path.startswith("/oauth/") else ["error"]
        assert list(refused.json()) == form
        assert all(name in refused.headers for name in FOUR)
        assert refused["X-Frame-Options"] == "DENY"
    elsewhere = Client().get(path, headers=headers_of(), REMOTE_ADDR="192.0.2.1")
    assert elsewhere.status_code == status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (method.upper(), "/" + route.replace("<str:", "{").replace(">", "}"))
        for route, view in api_routes()
        if issubclass(getattr(view, "cls", object), ApiViewSet)
        for method in view.actions
    ],
)
def test_no_endpoint_is_without_a_limit(api: ApiClient, settings: Any, method: str, path: str) -> None:
    """By address without a valid key, by key with one, whatever the key may do."""
    allowed, narrow = make_key(make_tenant()), make_key(make_tenant(), scopes=[Scope.AUDIT_READ])

    nobody, wrong = api._send(method, path, {}, {}), api.as_key("x")._send(method, path, {}, {})
    answers = [api.as_key(key)._send(method, path, {}, {}) for key in (allowed, narrow)]

    assert (nobody.status_code, nobody["X-RateLimit-Limit"]) == (401, str(LIMIT))
    assert (wrong.status_code, wrong["X-RateLimit-Remaining"]) == (401, str(LIMIT - 2))
    for answer in answers:
        assert int(answer["X-RateLimit-Limit"]) in (
            settings.RATE_LIMITS["key"],
            settings.RATE_LIMITS["events"],
        )


@pytest.mark.parametrize("kind", [kind for kind in STRANGERS if "console" not in kind])
def test_nothing_is_looked_up_for_an_address_that_has_tried_too_many(api: ApiClient, kind: str) -> None:
    path, headers_of, _ = STRANGERS[kind]
    headers = headers_of()
    for _ in range(LIMIT + 1):
        api.get(path, **headers)
    commands = redis.client().info("commandstats")

    with (
        CaptureQueriesContext(connections["default"]) as live,
        CaptureQueriesContext(connections["test"]) as test,
    ):
        assert api.get(path, **headers).status_code == 429

    assert (len(live), len(test)) == (0, 0)
    asked = {"cmdstat_info", "cmdstat_client|setinfo", "cmdstat_hello"}
    after = redis.client().info("commandstats")
    assert {name for name in after if after[name] != commands.get(name)} <= asked


def test_known_key_is_not_locked_out_by_its_neighbours(api: ApiClient) -> None:
    tenant = make_tenant()
    live, sandbox, fresh = make_key(tenant), make_test_key(tenant), make_key(tenant)
    assert [api.as_key(key).get("/v1/agents").status_code for key in (live, sandbox)] == [200, 200]
    for _ in range(LIMIT + 1):
        api.get("/v1/agents")

    known = [api.as_key(key).get("/v1/agents").status_code for key in (live, sandbox)]

    assert known == [200, 200]
    assert api.as_key(fresh).get("/v1/agents").status_code == 429
    unauthenticated.refused.clear()
    assert api.as_key(fresh).get("/v1/agents").status_code == 200


def test_known_key_stays_known_while_it_is_idle(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key(make_tenant())
    assert api.as_key(key).get("/v1/agents").status_code == 200
    for _ in range(LIMIT + 1):
        api.get("/v1/agents")

    monkeypatch.setattr("tenancy.recent_keys.FRESH_SECONDS", 0.0)

    assert api.as_key(key).get("/v1/agents").status_code == 200


def test_revoked_key_is_a_stranger_again(api: ApiClient) -> None:
    key = make_key(make_tenant())
    assert api.as_key(key).get("/v1/agents").status_code == 200
    row = ApiKey.objects.get(digest=keys.digest(key))
    services.revoke_key(key_id=row.id, actor=ACTOR, now=now())

    statuses = [api.as_key(key).get("/v1/agents").status_code for _ in range(LIMIT + 1)]

    assert statuses == [401] * LIMIT + [429]


@pytest.mark.parametrize(
    "path", ["/health/live", "/health/ready", "/v1/crl", "/v1/ca", "/v1/schema", "/v1/docs"]
)
def test_public_endpoints_and_probes_go_on(api: ApiClient, path: str) -> None:
    before = api.get(path).status_code
    for _ in range(LIMIT + 1):
        api.get("/v1/agents")

    for secret in (None, "nonsense", keys.new_secret(Environment.TEST)):
        assert ApiClient(secret).get(path).status_code == before


def test_wrong_keys_do_not_close_the_console(api: ApiClient) -> None:
    for _ in range(LIMIT + 1):
        api.get("/v1/agents")

    assert api.get("/admin/live/login/").status_code == 200


def test_signed_in_users_are_not_locked_out_by_those_who_are_not(api: ApiClient) -> None:
    for _ in range(LIMIT + 1):
        api.get("/admin/live/")

    assert console_of(make_operator()).get("/admin/live/").status_code == 200


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_probes_are_never_refused_and_answer_in_the_envelope(api: ApiClient, path: str) -> None:
    assert {api.get(path).status_code for _ in range(LIMIT + 2)} == {200}
    refused = api.post(path)
    assert (refused.status_code, list(refused.json())) == (405, ["error"])


def test_readiness_is_asked_once_for_many(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compliance.api.health.OUTCOME_SECONDS", 60.0)
    api.get("/health/ready")

    with CaptureQueriesContext(connections["default"]) as queries:
        assert api.get("/health/ready").json()["status"] == "ok"

    assert len(queries) == 0
