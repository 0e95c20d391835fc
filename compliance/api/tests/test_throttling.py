"""The sliding window, in Redis and without it."""

import time
from ipaddress import ip_network

import pytest
from django.test import RequestFactory
from pytest_django.fixtures import Settings
from rest_framework.request import Request

from compliance.api import gate
from compliance.api.gate import GateRequest
from compliance.api.rate_limits import hit
from compliance.core.identifiers import new_id
from compliance.stores import redis
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture(params=["redis", "memory"])
def store(request: pytest.FixtureRequest) -> str:
    if request.param == "memory":
        request.getfixturevalue("redis_is_down")
    return str(request.param)


def test_exactly_the_limit_is_let_through(store: str, settings: Settings) -> None:
    settings.RATE_LIMITS = {"t1": 3}
    verdicts = [hit("t1", store) for _ in range(5)]

    assert [verdict.allowed for verdict in verdicts] == [True, True, True, False, False]
    assert [verdict.remaining for verdict in verdicts] == [2, 1, 0, 0, 0]


def test_refusal_carries_the_four_headers(api: ApiClient, settings: Settings) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "key": 2}
    client = api.as_key(make_key(make_tenant()))
    began = time.time()
    answers = [client.get("/v1/agents") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    refused = answers[-1]
    assert refused.json()["error"].startswith("Rate limit exceeded")
    assert refused["X-RateLimit-Limit"] == "2"
    assert refused["X-RateLimit-Remaining"] == "0"
    assert began < float(refused["X-RateLimit-Reset"]) <= time.time() + 61
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert list(refused.json()) == ["error"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "address"),
    [
        ("9.9.9.9", "1.1.1.1", [], "9.9.9.9"),
        ("10.0.0.1", "1.1.1.1", ["10.0.0.0/8"], "1.1.1.1"),
        ("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2", ["10.0.0.0/8"], "1.1.1.1"),
        ("10.0.0.1", "1.1.1.1:5678, 10.0.0.2:443", ["10.0.0.0/8"], "1.1.1.1"),
        ("10.0.0.1", "[2001:db8:1:2:3::4]:5678", ["10.0.0.0/8"], "2001:db8:1:2::/64"),
        ("10.0.0.1", "[2001:db8:1:2:3::4]", ["10.0.0.0/8"], "2001:db8:1:2::/64"),
        ("10.0.0.1", "nonsense", ["10.0.0.0/8"], "unknown"),
        ("::ffff:9.9.9.9", "", [], "9.9.9.9"),
        ("::ffff:10.0.0.1", "1.1.1.1", ["10.0.0.0/8"], "1.1.1.1"),
        ("2001:db8:1:2:3::4", "", [], "2001:db8:1:2::/64"),
    ],
)
def test_client_address_believes_only_trusted_proxies(
    settings: Settings, peer: str, forwarded: str, proxies: list[str], address: str
) -> None:
    settings.TRUSTED_PROXIES = [ip_network(proxy) for proxy in proxies]
    request = RequestFactory().get("/", REMOTE_ADDR=peer, headers={"X-Forwarded-For": forwarded})

    assert gate.client_address(GateRequest.of(Request(request))) == address


@pytest.mark.parametrize("octets", [100, 4_097, 900_000])
@pytest.mark.parametrize("path", ["/v1/verify/message", "/v1/events/batch", "/v1/agents"])
def test_large_body_counts_as_so_many_requests(api: ApiClient, path: str, octets: int) -> None:
    client = api if path == "/v1/verify/message" else api.as_key(make_key(make_tenant()))
    body = {"payload": "x" * (octets - len('{"payload": ""}'))}

    before, after = (int(client.post(path, body)["X-RateLimit-Remaining"]) for _ in range(2))

    assert before - after == -(-octets // 4_096)


def test_tenant_has_a_quota_of_octets_a_day(api: ApiClient, store: str, settings: Settings) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "octets": 20_000}
    tenant, other = make_tenant(), make_tenant()
    keys = [make_key(tenant) for _ in range(2)]
    body = {"name": "bot", "model_hash": "sha256:ab", "metadata": {"x": "y" * 8_000}}

    statuses = [api.as_key(keys[n % 2]).post("/v1/agents", body).status_code for n in range(3)]
    refused = api.as_key(keys[0]).post("/v1/agents", body)

    assert statuses == [201, 201, 429]
    assert refused["X-RateLimit-Limit"] == "20000"
    assert 23 * 3600 < int(refused["Retry-After"]) <= 24 * 3600 + 600
    assert api.as_key(keys[0]).get("/v1/agents").status_code == 200
    assert api.as_key(make_key(other)).post("/v1/agents", body).status_code == 201


def test_log_of_a_day_stays_short(settings: Settings) -> None:
    tenant = f"live:{new_id()}"
    for _ in range(50):
        assert hit("octets", tenant, cost=1_000_000).allowed

    (name,) = redis.client().keys(f"*octets:{tenant}*:log")

    assert redis.client().llen(name) <= 2
    assert hit("octets", tenant).remaining == settings.RATE_LIMITS["octets"] - 50_000_001
