"""Keys that were never valid, and cookies, at both entrances of `/v1/events`."""

import json
from collections.abc import Iterator
from threading import current_thread
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from compliance.api import unauthenticated
from compliance.api.answers import Answer
from compliance.core.environments import Environment
from compliance.tenancy import keys, services
from compliance.tests.web import Worker, shape
from events.tests.conftest import World
from events.tests.web import PATH, Web, headers_of, warm

pytestmark = pytest.mark.usefixtures("committed")

CHANGING = {"x-ratelimit-remaining", "x-ratelimit-reset"}
LIMIT = 3


@pytest.fixture
def fast() -> Iterator[Worker]:
    server = Worker()
    yield server
    server.close()


@pytest.fixture
def plain() -> Iterator[Worker]:
    """The same without the fast path."""
    server = Worker(with_fast_path=False)
    yield server
    server.close()


def ask(worker: Worker, method: str, key: str, *more: tuple[str, str], body: bytes = b"") -> Answer:
    answer: Answer = worker.run(worker.exchange(method, PATH, headers_of(key, body, *more), body))
    return answer


def by_fast_path(threads: list[str]) -> int:
    """How many of the looks at keys were made for the fast path."""
    return sum(name.startswith("key-lookup") for name in threads)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_wrong_keys_are_limited_by_address_and_then_not_looked_up(
    fast: Worker, plain: Worker, settings: Settings, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": LIMIT}
    looked_up: list[str] = []

    def check(**asked: Any) -> object:
        looked_up.append(current_thread().name)
        return services_check(**asked)

    services_check = services.check
    monkeypatch.setattr(services, "check", check)
    for _ in range(LIMIT + 1):
        ask(fast, method, keys.new_secret(Environment.LIVE))
    fast_looks, view_looks = by_fast_path(looked_up), len(looked_up) - by_fast_path(looked_up)

    key = keys.new_secret(Environment.TEST)
    quick, slow = ask(fast, method, key), ask(plain, method, key)

    assert (quick.status, slow.status) == (429, 429)
    assert (by_fast_path(looked_up), len(looked_up) - by_fast_path(looked_up)) == (fast_looks, view_looks)

    # The fast path lives in another process than the views, which alone remember whom they refused.
    unauthenticated.forget()
    ask(fast, method, keys.new_secret(Environment.TEST))
    assert by_fast_path(looked_up) == fast_looks == LIMIT
    assert shape(quick, changing={*CHANGING, "retry-after"}) == shape(
        slow, changing={*CHANGING, "retry-after"}
    )
    names = {name.lower() for name, _ in quick.headers}
    assert {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"} <= names


def test_key_in_use_goes_on_while_its_neighbours_are_refused(
    world: World, web: Web, key: str, settings: Settings
) -> None:
    warm(web, key, [world.agent])
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": LIMIT}
    strangers = [web.post(keys.new_secret(Environment.LIVE), world.report()) for _ in range(LIMIT + 1)]
    web.seen_by_view = 0

    answer = web.post(key, world.report())

    assert strangers[-1].status == 429
    assert (answer.status, web.seen_by_view) == (201, 0)


@pytest.mark.parametrize("cookie", ["sessionid=" + "a" * 32, "csrftoken=x", "messages=x", "sessionid=x; a=b"])
def test_cookies_change_nothing_at_either_entrance(
    world: World, web: Web, fast: Worker, plain: Worker, key: str, cookie: str
) -> None:
    warm(web, key, [world.agent])
    body = json.dumps(world.report()).encode()

    for method, sent in (("POST", body), ("GET", b"")):
        answers = [
            ask(worker, method, key, *more, body=sent)
            for worker in (fast, plain) for more in ([], [("cookie", cookie)])
        ]  # fmt: skip
        shapes = [shape(answer, changing=CHANGING) for answer in answers]
        assert shapes == [shapes[0]] * 4
        assert "set-cookie" not in dict(shapes[0][1])
        assert "cookie" not in dict(shapes[0][1]).get("vary", "").lower()
