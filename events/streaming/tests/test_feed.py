"""GET /v1/events?order=asc: a feed that loses and repeats nothing, whenever a transaction commits."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from django.db import connections

from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import first_id_at
from compliance.tests.client import ApiClient
from events.models import BehaviorEvent
from events.risk.rolling import LAG
from events.streaming import feed
from events.streaming.feed import events_from
from events.tests.conftest import World
from events.tests.factories import make_event, store_event
from tenancy.tests.factories import make_key, make_tenant

PATH = "/v1/events?order=asc"
START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def walked(api: ApiClient, query: str) -> Iterator[list[dict[str, object]]]:
    """The pages of a feed up to its present end."""
    cursor = ""
    while True:
        body = api.get(f"{PATH}{query}{cursor}").json()
        yield body["data"]
        if not body["has_next_page"]:
            return
        cursor = f"&after={quote(body['next_cursor'])}"


def test_feed_is_in_order_of_receipt_and_goes_on_where_it_ended(world: World) -> None:
    made = [
        str(store_event(world.agent, 0.1, START + timedelta(seconds=n), occurred_at=START - timedelta(n)).id)
        for n in range(5)
    ]

    first = world.api.get(f"{PATH}&limit=2").json()
    rest = world.api.get(f"{PATH}&after={quote(first['next_cursor'])}").json()
    end = world.api.get(f"{PATH}&after={quote(rest['next_cursor'])}").json()

    assert [row["id"] for row in first["data"] + rest["data"]] == made
    assert (first["has_next_page"], rest["has_next_page"]) == (True, False)
    assert (end["data"], end["has_next_page"]) == ([], False)


def test_what_an_open_transaction_may_still_precede_waits(world: World) -> None:
    make_event(world.agent)

    assert world.api.get(PATH).json()["data"] == []


def test_event_that_commits_late_is_not_skipped(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    began, go = threading.Event(), threading.Event()
    before = now() - LAG / 2
    mine = BehaviorEvent.objects.filter(agent=agent)

    def late() -> None:
        with environments.use(Environment.LIVE):
            with environments.atomic():
                store_event(agent, 0.1, before)
                began.set()
                go.wait(10)
            connections.close_all()

    thread = threading.Thread(target=late)
    thread.start()
    began.wait(10)
    later = store_event(agent, 0.1, now())
    first = events_from(first_id_at(before - LAG), mine, limit=10, now=now() + timedelta(hours=1))
    go.set()
    thread.join()
    second = events_from(first.position, mine, limit=10, now=now() + timedelta(hours=1))

    assert first.rows == []
    assert [event.received_at for event in second.rows] == [before, later.received_at]
    assert events_from(second.position, mine, limit=10, now=now() + timedelta(hours=1)).rows == []


def test_page_reads_so_many_events_at_most_and_may_be_empty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "WINDOW", 3)
    other = make_certified_agent(make_tenant())
    for n in range(10):
        store_event(other, 0.1, START + timedelta(seconds=n))
    mine = str(store_event(world.agent, 0.1, START + timedelta(seconds=20)).id)

    pages = list(walked(world.api, f"&agent_id={world.agent.id}"))

    assert [[row["id"] for row in page] for page in pages if page] == [[mine]]
    assert len(pages) >= 4


def test_full_page_ends_before_its_limit(world: World) -> None:
    details = {f"key-{number}": "x" * 100 for number in range(10_000)}
    for n in range(6):
        store_event(world.agent, 0.1, START + timedelta(seconds=n), details=details)

    assert [len(page) for page in walked(world.api, "&limit=100")] == [4, 2]


def test_filters_and_form_apply(world: World) -> None:
    store_event(world.agent, 0.1, START)
    high = str(store_event(world.agent, 0.9, START + timedelta(seconds=1)).id)

    (row,) = world.api.get(f"{PATH}&band=high&format=ocsf").json()["data"]

    assert row["metadata"]["uid"] == high


def test_plain_date_time_begins_with_what_was_received_from_then_on(world: World) -> None:
    store_event(world.agent, 0.1, START)
    later = str(store_event(world.agent, 0.1, START + timedelta(hours=1)).id)

    found = world.api.get(f"{PATH}&after=2026-03-04T06:00:00Z").json()["data"]

    assert [row["id"] for row in found] == [later]


def test_position_of_the_future_is_kept(world: World) -> None:
    store_event(world.agent, 0.1, START)
    ahead = f"9999-01-01T00:00:00.000000{2**128 - 1:039d}Z"

    body = world.api.get(f"{PATH}&after={ahead}").json()

    assert (body["data"], body["has_next_page"]) == ([], False)
    assert body["next_cursor"].endswith(f"{2**128 - 1:039d}Z")


def test_others_events_are_not_in_it(world: World) -> None:
    store_event(world.agent, 0.1, START)
    stranger = ApiClient().as_key(make_key(make_tenant()))

    assert list(walked(stranger, "")) == [[]]
    assert list(walked(stranger, f"&agent_id={world.agent.id}")) == [[]]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("after=2026-01-01", "after needs order=asc"),
        ("order=desc&after=2026-01-01", "after needs order=asc"),
        ("order=asc&before=2026-01-01", "before belongs to order=desc; with order=asc give after"),
    ],
)
def test_wrong_combinations_are_400(world: World, query: str, error: str) -> None:
    answer = world.api.get(f"/v1/events?{query}")

    assert (answer.status_code, answer.json()) == (400, {"error": error})
