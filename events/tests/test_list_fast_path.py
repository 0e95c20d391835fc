"""The fast path lists events as the view does, to the letter, and leaves to it what is not plain."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from agents.tests.factories import make_agent
from compliance.api.answers import Answer, Headers
from compliance.api.pagination import FULL_PAGE
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.serving import executors
from compliance.serving.executors import SHARE
from compliance.tenancy import keys
from compliance.tenancy.models import ApiKey
from compliance.tenancy.tests.factories import make_expired_key, make_key, make_tenant, make_test_key
from compliance.tests.owner import end_sessions, locked_table
from compliance.tests.web import Worker, shape
from events.endpoints import LIST_EVENTS
from events.models import ActionType
from events.tests.conftest import World
from events.tests.factories import store_event
from events.tests.web import seconds_let_in

pytestmark = pytest.mark.usefixtures("committed")

PATH = "/v1/events"
CHANGING = {"x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"}
START = datetime(2026, 3, 4, 5, 6, 7, 123456, tzinfo=UTC)
DETAILS: list[dict[str, Any]] = [
    {}, {"n": 10**30, "f": 0.1, "s": 'é\u2028"\\', "l": [1, None, {"a": True}]}, {"note": "x" * 20_000},
]  # fmt: skip


class Reader(Worker):
    """A worker that is asked for pages."""

    async def ask(
        self, key: str, query: str = "", *more: tuple[str, str], method: str = "GET", body: bytes = b""
    ) -> Answer:
        """What the server answers; a `more` header without a value takes the usual one away."""
        usual = {"host": "testserver", "authorization": f"Bearer {key}", **dict(more)}
        headers = [(name, value) for name, value in usual.items() if value]
        return await self.exchange(method, PATH + query, headers, body)

    def get(self, key: str, query: str = "", *more: tuple[str, str], **how: Any) -> Answer:
        answer: Answer = self.run(self.ask(key, query, *more, **how))
        return answer


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A worker in which a question gets a connection on a slow machine too."""
    monkeypatch.setattr(executors, "WAIT_SECONDS", 60.0)
    with closing(Reader()) as server:
        yield server


@pytest.fixture
def plain() -> Iterator[Reader]:
    """The same without the fast path."""
    with closing(Reader(with_fast_path=False)) as server:
        yield server


@pytest.fixture
def key(world: World) -> str:
    """A key of a tenant with some events, of which some share a moment."""
    other = make_agent(world.tenant)
    for number in range(12):
        store_event(
            (world.agent, other)[number % 2],
            (0.1, 1e-7, 0.3, 0.8499999999999999, 0.9)[number % 5],
            now(),
            occurred_at=START + timedelta(hours=number // 4, microseconds=number // 8),
            action_type=(ActionType.API_CALL, ActionType.DATA_ACCESS)[number % 3 == 0],
            details=DETAILS[number % 3],
        )
    return str(world.api.key)


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads(answer.body)["data"]
    return found


def lower(answer: Answer) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers}


def assert_the_same(web: Reader, plain: Reader, key: str, query: str, *more: tuple[str, str]) -> Answer:
    """The answer of both, one of which the view gave."""
    before = web.seen_by_view

    quick, slow = web.get(key, query, *more), plain.get(key, query, *more)

    assert web.seen_by_view == before, query
    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
    assert quick.body == slow.body
    return quick


MOMENT = quote((START + timedelta(hours=1)).isoformat())
QUERIES = {
    "": 12, "?limit=5": 5, "?limit=12": 12, "?limit=11": 11, "?limit=1000": 12,
    "?band=low": 6, "?band=medium": 4, "?band=high": 2, "?limit=3&limit=4": 4,
    "?action_type=data_access": 4, "?action_type=data_access&band=low": 2, "?action_type=message_signed": 0,
    f"?before={MOMENT}": 4, "?before=2026-03-04T05:06:07.123456Z": 0, "?before=2030-01-01": 12,
    f"?before={MOMENT}&band=low&limit=1": 1, "?before=2026-03-04 06:06:08 00:00": 8, "?before=": 12,
    "?nonsense=1&format=xml": 12, "?%6Cimit=2": 2, "?limit=%32": 2, "?&&limit=2&": 2, "?": 12,
}  # fmt: skip


def test_page_is_the_views_byte_for_byte(web: Reader, plain: Reader, world: World, key: str) -> None:
    agent = world.agent.id
    of_agent = {
        f"?agent_id={agent}": 6, f"?agent_id={str(agent).upper()}&limit=2": 2, f"?agent_id={new_id()}": 0,
        f"?agent_id={agent}&band=low": 3, f"?agent_id={agent}&action_type=data_access&before={MOMENT}": 1,
        f"?agent_id={agent}&action_type=data_access&band=medium": 0,
    }  # fmt: skip

    for query, count in {**QUERIES, **of_agent}.items():
        answer = assert_the_same(web, plain, key, query)
        assert (answer.status, len(rows_of(answer))) == (200, count), query
        assert lower(answer)["x-ratelimit-limit"] == "6000"


def test_walk_through_pages_is_the_views_and_loses_and_repeats_nothing(
    web: Reader, plain: Reader, key: str
) -> None:
    found: list[str] = []
    query = "?limit=3"

    while True:
        body = orjson.loads(assert_the_same(web, plain, key, query).body)
        found += [row["id"] for row in body["data"]]
        if not body["has_next_page"]:
            break
        query = f"?limit=3&before={quote(body['next_cursor'])}"

    assert len(found) == len(set(found)) == 12
    assert body["next_cursor"] is None


def test_page_that_is_full_ends_before_its_limit_and_the_walk_loses_nothing(
    web: Reader, plain: Reader, world: World, key: str
) -> None:
    # Long as text, short as PostgreSQL keeps it.
    details = {f"key-{number}": "x" * 100 for number in range(10_000)}
    for _ in range(6):
        store_event(world.agent, 0.1, now(), details=details)
    found: list[str] = []
    counts, query = [], "?limit=100"

    while True:
        answer = assert_the_same(web, plain, key, query)
        body = orjson.loads(answer.body)
        found += [row["id"] for row in body["data"]]
        counts.append(len(body["data"]))
        assert len(answer.body) < FULL_PAGE + 2_000_000
        if not body["has_next_page"]:
            break
        query = f"?limit=100&before={quote(body['next_cursor'])}"

    assert counts == [4, 14]
    assert len(set(found)) == 18


MALFORMED = [
    "?limit=0", "?limit=abc", "?limit=-1", "?limit=1.5", "?band=HIGH", "?action_type=nonsense",
    "?agent_id=nonsense", "?before=yesterday", "?before=2026-13-01T00:00:00Z", "?before=5", "?limit=%00",
    "?limit=é", "?limit=", "?band=", "?agent_id=", "?" + "&".join(f"a{number}=1" for number in range(1500)),
]  # fmt: skip


def test_malformed_query_is_refused_as_the_view_does_and_counted_once(
    web: Reader, plain: Reader, key: str
) -> None:
    for query in MALFORMED:
        before = int(lower(web.get(key))["x-ratelimit-remaining"])

        quick, slow = web.get(key, query), plain.get(key, query)

        after = int(lower(web.get(key))["x-ratelimit-remaining"])
        assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
        assert (quick.status, quick.body) == (400, slow.body)
        assert before - after == 3


def test_what_is_out_of_the_ordinary_is_left_to_the_view(web: Reader, plain: Reader, key: str) -> None:
    length = ("content-length", "2")
    asked: list[tuple[str, dict[str, Any], list[tuple[str, str]], int]] = [
        ("body", {"body": b"{}"}, [length], 200),
        ("method", {"method": "DELETE"}, [], 405), ("options", {"method": "OPTIONS"}, [], 405),
        ("host", {}, [("host", "evil.example")], 400),
        ("none", {}, [("authorization", "")], 401), ("basic", {}, [("authorization", "Basic eDp5")], 401),
        ("nonsense", {}, [("authorization", "Bearer nonsense")], 401),
        ("bytes", {}, [("authorization", f"Bearer {key}é")], 401),
    ]  # fmt: skip
    for count, (what, how, more, status) in enumerate(asked, 1):
        quick, slow = web.get(key, "", *more, **how), plain.get(key, "", *more, **how)

        assert (web.seen_by_view, quick.status) == (count, status), what
        assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
        assert quick.body == slow.body


def test_headers_that_mean_nothing_here_change_nothing(web: Reader, plain: Reader, key: str) -> None:
    headers = {
        "accept": "text/html", "if-none-match": "*", "range": "bytes=0-1", "origin": "https://x.example",
        "content-type": "nonsense", "authorization": f"bearer  {key}", "x-http-method-override": "DELETE",
        "idempotency-key": "k", "cookie": "sessionid=x; csrftoken=x",
    }  # fmt: skip
    for header in headers.items():
        assert assert_the_same(web, plain, key, "?limit=2", header).status == 200


def test_header_that_is_there_twice_is_left_to_the_view(web: Reader, key: str) -> None:
    twice: Headers = [("host", "testserver"), ("authorization", f"Bearer {key}"), ("x-a", "1"), ("x-a", "2")]

    answer: Answer = web.run(web.exchange("GET", PATH, twice))

    assert (answer.status, web.seen_by_view) == (200, 1)


def test_another_tenant_sees_nothing(web: Reader, plain: Reader, world: World, key: str) -> None:
    stranger = make_key(make_tenant("Other"))

    for query in ("", f"?agent_id={world.agent.id}", "?band=high"):
        assert rows_of(web.get(key, query)) != []
        assert rows_of(assert_the_same(web, plain, stranger, query)) == []


def test_each_environment_shows_its_own_events(web: Reader, plain: Reader, world: World, key: str) -> None:
    sandbox = make_test_key(world.tenant)
    with environments.use(Environment.TEST):
        event = store_event(make_agent(world.tenant), 0.5, now())

    (row,) = rows_of(assert_the_same(web, plain, sandbox, ""))

    assert row["id"] == str(event.id)
    assert rows_of(assert_the_same(web, plain, sandbox, f"?agent_id={world.agent.id}")) == []
    assert str(event.id) not in {row["id"] for row in rows_of(assert_the_same(web, plain, key, ""))}


def test_tenants_and_environments_asked_together_get_their_own(web: Reader, world: World, key: str) -> None:
    stranger, sandbox = make_key(make_tenant("Other")), make_test_key(world.tenant)
    asked = [key, stranger, sandbox] * 20

    async def play() -> list[Answer]:
        return await asyncio.gather(*(web.ask(one) for one in asked))

    answers: list[Answer] = web.run(play())

    assert [len(rows_of(answer)) for answer in answers] == [12, 0, 0] * 20
    remaining = sorted(int(lower(answer)["x-ratelimit-remaining"]) for answer in answers)
    assert remaining == sorted(list(range(5980, 6000)) * 3)
    assert web.seen_by_view == 0


def test_key_that_does_not_count_is_refused_as_the_view_does(
    web: Reader, plain: Reader, world: World
) -> None:
    for key, status in (
        (make_key(world.tenant, ["events:write"]), 403), (make_expired_key(world.tenant), 401),
        (keys.new_secret(Environment.LIVE), 401), (keys.new_secret(Environment.TEST), 401),
    ):  # fmt: skip
        quick, slow = web.get(key), plain.get(key)

        assert quick.status == status
        assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
        assert quick.body == slow.body


def test_key_revoked_elsewhere_is_refused_within_a_second(web: Reader, key: str) -> None:
    assert web.get(key).status == 200
    ApiKey.objects.filter(digest=keys.digest(key)).update(revoked_at=now())

    assert web.run(seconds_let_in(lambda: web.ask(key, "?limit=1"))) < 1
    assert web.get(key).status == 401


def test_exhausted_rate_limit_is_429_as_the_view_says_it(
    web: Reader, plain: Reader, key: str, settings: Settings
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "key": 5}

    answers = [web.get(key, "?limit=1") for _ in range(8)]
    late = web.get(key)
    theirs = plain.get(key)

    assert [answer.status for answer in answers] == [200] * 5 + [429] * 3
    assert [lower(answer)["x-ratelimit-remaining"] for answer in answers] == list("43210000")
    assert web.seen_by_view == 0
    assert shape(late, changing=CHANGING) == shape(theirs, changing=CHANGING)
    assert (
        late.body == b'{"error":"Rate limit exceeded; retry in %s s"}' % lower(late)["retry-after"].encode()
    )


def test_who_was_refused_is_let_in_again(web: Reader, key: str, settings: Settings) -> None:
    usual = settings.RATE_LIMITS
    settings.RATE_LIMITS = {**usual, "key": 1}
    assert [web.get(key).status for _ in range(3)] == [200, 429, 429]

    settings.RATE_LIMITS = usual

    assert [len(rows_of(web.get(key))) for _ in range(2)] == [12, 12]


def test_without_redis_pages_go_on_and_are_counted_in_memory(
    web: Reader, plain: Reader, key: str, redis_is_down: None
) -> None:
    before = lower(assert_the_same(web, plain, key, ""))["x-ratelimit-remaining"]
    after = lower(web.get(key))["x-ratelimit-remaining"]

    assert int(before) - int(after) == 2


def test_client_that_goes_away_leaves_its_neighbours_alone(web: Reader, key: str) -> None:
    async def play() -> list[Answer | BaseException]:
        tasks = [asyncio.ensure_future(web.ask(key)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert web.get(key).status == 200
    found = web.run(play())

    assert all(isinstance(gone, asyncio.CancelledError) for gone in found[::2])
    assert [len(rows_of(answer)) for answer in found[1::2]] == [12] * 10
    assert len(rows_of(web.get(key))) == 12


def test_killed_session_is_replaced_and_nobody_notices(web: Reader, key: str) -> None:
    async def play() -> list[Answer]:
        return await asyncio.gather(*(web.ask(key) for _ in range(5)))

    assert web.get(key).status == 200
    for _ in range(3):
        end_sessions()

        assert {answer.status for answer in web.run(play())} == {200}


def test_absent_database_is_503_as_the_view_says_it_and_heals(
    web: Reader, plain: Reader, key: str, patient: None
) -> None:
    assert web.get(key).status == plain.get(key).status == 200

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connections.settings["default"], "PORT", 1)
        end_sessions()
        down = assert_the_same(web, plain, key, "?limit=2")
    up = web.get(key)

    assert (down.status, lower(down)["retry-after"]) == (503, "1")
    assert "x-ratelimit-limit" in lower(down)
    assert (up.status, web.seen_by_view) == (200, 0)


def test_more_than_the_queue_holds_is_turned_away_at_once_and_others_have_their_turn(
    web: Reader, world: World, key: str, patient: None
) -> None:
    stranger = make_key(make_tenant("Other"))
    begun, waiting = SHARE, LIST_EVENTS.longest_queue
    assert web.get(key).status == web.get(stranger).status == 200

    turned_away, answers = web.crowd(
        [web.ask(key, "?limit=1") for _ in range(begun + waiting + 7)],
        held_up=locked_table("events_behaviorevent IN ACCESS EXCLUSIVE MODE"),
    )

    assert len(turned_away) == 7
    for answer in turned_away:
        assert (answer.status, lower(answer)["retry-after"]) == (503, "1")
    assert sum(answer.status == 200 for answer in answers) == begun + waiting
    assert web.seen_by_view == 0
