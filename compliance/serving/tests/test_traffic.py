"""Counts of requests: what counts as what, how long it took, and what Redis adds up."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django.fixtures import Settings

from compliance.core.identifiers import new_id
from compliance.serving.traffic import KEPT_SECONDS, Kind, KindTraffic, Traffic, kind_of, last_hour
from compliance.stores import redis
from compliance.tests.redis_servers import NOWHERE, redis_at

NOON = datetime(2026, 11, 23, 12, 0, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _own_counts(settings: Settings) -> None:
    settings.SERVICE_NAME = f"traffic-{new_id()}"


def note(
    traffic: Traffic, *, path: str = "/v1/agents", ms: float = 3, status: int = 200, ago: int = 0
) -> None:
    at = (NOON - timedelta(minutes=ago)).timestamp()
    traffic.note(method="POST", path=path, status=status, seconds=ms / 1000, at=at)


def flush(traffic: Traffic) -> None:
    asyncio.run(traffic.flush())


def found(kind: Kind) -> KindTraffic:
    return next(each for each in last_hour(now=NOON) if each.kind is kind)


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/v1/events", Kind.EVENTS),
        ("POST", "/v1/events/batch", Kind.EVENTS),
        ("GET", "/v1/events", Kind.API),
        ("POST", "/v1/events/x/review", Kind.API),
        ("GET", "/v1/verify/abc", Kind.VERIFY),
        ("GET", "/.well-known/jwks.json", Kind.API),
        ("GET", "/admin/live/", Kind.CONSOLE),
        ("GET", "/health/ready", None),
        ("GET", "/static/x.css", None),
        ("GET", "/wp-login.php", None),
    ],
)
def test_kinds_of_requests(method: str, path: str, kind: Kind | None) -> None:
    assert kind_of(method, path) is kind


def test_workers_counts_add_up_over_the_hour() -> None:
    first, second = Traffic(), Traffic()
    for traffic, ago in ((first, 0), (first, 59), (first, 60), (second, 0)):
        note(traffic, ago=ago)
    note(second, status=503)

    flush(first)
    flush(second)
    flush(second)

    hour = found(Kind.API)
    assert (hour.requests, hour.errors) == (4, 1)
    assert (hour.by_minute[0], hour.by_minute[-1]) == (1, 3)
    assert found(Kind.CONSOLE).requests == 0


def test_quantiles_are_the_bounds_that_were_kept() -> None:
    traffic = Traffic()
    for ms in (0.5, 1, 15, 20, 9_999):
        note(traffic, ms=ms)

    flush(traffic)

    hour = found(Kind.API)
    assert [hour.quantile_ms(share) for share in (0.4, 0.5, 0.8, 0.99)] == [1, 20, 20, None]


def test_counts_wait_for_redis_and_end_with_their_time(settings: Settings) -> None:
    traffic = Traffic()
    note(traffic)
    with redis_at(NOWHERE, settings):
        flush(traffic)

    note(traffic)
    flush(traffic)

    assert found(Kind.API).requests == 2
    (key,) = redis.client().scan_iter(f"{settings.SERVICE_NAME}:{{traffic}}:*")
    assert 0 < int(redis.client().ttl(key)) <= KEPT_SECONDS
