"""GET /v1/events over many partitions: one index range scan in each, and a cursor that loses nothing."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from events.models import BehaviorEvent
from events.partitions import maintain
from events.tests.conftest import World, make_world
from events.tests.factories import store_event

PATH = "/v1/events"
FILTERS: list[dict[str, Any]] = [
    {},
    {"agent_id": True},
    {"action_type": "data_access"},
    {"band": "high"},
    {"band": "low"},
    {"agent_id": True, "action_type": "data_access"},
    {"agent_id": True, "band": "medium"},
    {"band": "high", "action_type": "data_access"},
]


@pytest.fixture
def months() -> list[Any]:
    """Moments of receipt in four partitions that are there, and one in the default."""
    maintain(actor=Actor.system("tests"), now=now() + timedelta(days=62))
    return [now() + timedelta(days=days) for days in (0, 32, 64, 96, 3000)]


@pytest.fixture(scope="module")
def filled(owned_world_transaction: None) -> World:
    """Enough rows that the planner chooses as it would for many, of all bands and several types."""
    maintain(actor=Actor.system("tests"), now=now() + timedelta(days=62))
    world = make_world()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO events_behaviorevent (id, tenant_id, agent_id, action_type, risk_score, risk_band,"
            " occurred_at, received_at, details, reasons, model_version)"
            " SELECT (lpad(to_hex((extract(epoch FROM now() + days[1 + n %% 5] * interval '1 day')"
            " * 1000)::bigint), 12, '0') || '7000a' || substr(md5(n::text), 1, 15))::uuid, %s, %s,"
            " (ARRAY['api_call', 'data_access'])[1 + n %% 2],"
            " (ARRAY[0.1, 0.5, 0.9])[band], (ARRAY['low', 'medium', 'high'])[band],"
            " now() - n * interval '1 second', now(), '{}', '[]', 'm'"
            " FROM (SELECT n, CASE WHEN n %% 50 = 0 THEN 2 WHEN n %% 75 = 0 THEN 3 ELSE 1 END AS band"
            " FROM generate_series(1, 8000) n) x,"
            " (SELECT ARRAY[0, 32, 64, 96, 3000] AS days) m",
            [world.tenant.id, world.agent.id],
        )
        cursor.execute("ANALYZE events_behaviorevent")
    return world


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]


def plans_of(queries: CaptureQueriesContext) -> Iterator[list[dict[str, Any]]]:
    """The nodes of each page's plan, with what they did."""
    for query in queries:
        if "ORDER BY" in query["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query['sql'].replace('%', '%%')}")
                answer: Any = cursor.fetchone()[0]
            yield nodes((json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"])


@pytest.mark.parametrize("is_deep", [False, True])
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_page_is_an_index_range_scan(filled: World, filters: dict[str, Any], is_deep: bool) -> None:
    if "agent_id" in filters:
        filters = {**filters, "agent_id": filled.agent.id}
    if is_deep:
        filters = {**filters, "before": filled.api.get(f"{PATH}?limit=100").json()["next_cursor"]}

    with CaptureQueriesContext(connection) as queries:
        answer = filled.api.get(f"{PATH}?{urlencode({'limit': 10, **filters})}")

    plans = list(plans_of(queries))
    assert (answer.status_code, len(plans)) == (200, 2)
    for found in plans:
        on_events = [node for node in found if str(node.get("Relation Name", "")).startswith("events_")]
        assert {node["Node Type"] for node in on_events} <= {"Index Scan", "Index Only Scan"}
        assert not {"Sort", "Incremental Sort"} & {node["Node Type"] for node in found}
        assert sum(node.get("Rows Removed by Filter", 0) for node in on_events) == 0
        assert sum(node["Actual Rows"] for node in on_events) <= 11 + len(on_events)


def test_walk_over_partitions_loses_and_repeats_nothing_of_one_timestamp(
    world: World, months: list[Any]
) -> None:
    shared = now() - timedelta(days=1)
    made = {
        str(store_event(world.agent, 0.1, moment, occurred_at=shared).id)
        for moment in months
        for _ in range(5)
    }
    found: list[str] = []
    cursor = ""

    while True:
        answer = world.api.get(f"{PATH}?limit=3{cursor}").json()
        found += [row["id"] for row in answer["data"]]
        if not answer["has_next_page"]:
            break
        cursor = f"&before={quote(answer['next_cursor'])}"

    assert sorted(found, reverse=True) == found
    assert len(found) == len(made)
    assert set(found) == made


def test_one_event_is_looked_for_in_one_partition(world: World, months: list[Any]) -> None:
    event = store_event(world.agent, 0.1, months[1])

    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) SELECT * FROM events_behaviorevent WHERE id = %s", [event.id])
        answer = cursor.fetchone()[0]
    told = answer if isinstance(answer, str) else json.dumps(answer)

    assert told.count("Relation Name") == 1
    assert world.api.get(f"{PATH}/{event.id}").json()["data"]["id"] == str(event.id)


def test_reads_by_receipt_name_only_the_partitions_of_their_time(world: World, months: list[Any]) -> None:
    old = store_event(world.agent, 0.9, months[0])
    new = store_event(world.agent, 0.9, months[2])

    events = BehaviorEvent.objects.of_agent(world.agent.id)

    assert list(events.since(months[1])) == [new]
    assert list(events.received_before(months[1])) == [old]
    assert list(events.latest_received(1)) == [new]
    assert events.since(months[2] - timedelta(hours=1)).explain().count("Scan") < (
        events.since(months[0] - timedelta(days=1)).explain().count("Scan")
    )
