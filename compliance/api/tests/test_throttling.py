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
from compliance.tenancy.tests.factories import make_key, make_tenant
from compliance.tests.client import ApiClient
from compliance.tests.waiting import eventually


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


def test_window_slides(store: str, settings: Settings) -> None:
    settings.RATE_LIMIT_WINDOW_SECONDS = 1
    settings.RATE_LIMITS = {"t2": 2}

    def is_closed_and_opens_again() -> bool:
        """On a busy machine the window may pass between two of the first."""
        caller = f"{store}-{new_id()}"
        first = [hit("t2", caller).allowed for _ in range(3)]
        time.sleep(1.1)
        return [*first, hit("t2", caller).allowed] == [True, True, False, True]

    assert eventually(is_closed_and_opens_again)


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
