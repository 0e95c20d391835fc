"""POST /v1/events/batch: a result for each event in its place, as if they had come one by one."""

import json
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from agents.models import Agent, AgentStatus
from certificates.tests.factories import make_certified_agent
from compliance.core.identifiers import new_id
from compliance.stores import redis
from compliance.tests.client import ApiClient
from compliance.tests.owner import execute_as_owner
from compliance.tests.threads import at_once
from events import services
from events.models import BehaviorEvent
from events.tests.conftest import World
from events.tests.web import report
from tenancy.models import Enforcement
from tenancy.tests.factories import make_key, make_tenant, make_test_key

PATH = "/v1/events/batch"
HIGH = "unauthorized_access_attempt"
SCOPE = {
    "max_single_trade_usd": 1000,
    "daily_limit_usd": 2500,
    "permitted_instruments": ["BTC-USD"],
    "permitted_venues": ["kraken"],
    "leverage_permitted": False,
}


def of(agent: Agent, action_type: str = "api_call", **more: Any) -> dict[str, Any]:
    return {"agent_id": str(agent.id), "action_type": action_type, **more}


def trade(agent: Agent, amount: int) -> dict[str, Any]:
    details = {"amount_usd": amount, "instrument": "BTC-USD", "venue": "kraken"}
    return of(agent, "transaction_initiated", details=details)


def results_of(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def statuses_of(answer: Any) -> list[int]:
    return [result["status"] for result in results_of(answer)]


def send(world: World, *events: Any, **headers: str) -> Any:
    return world.api.post(PATH, {"events": events}, **headers)


def send_lines(world: World, body: bytes) -> Any:
    return world.api.raw("POST", PATH, body, "application/x-ndjson")


def test_events_are_stored_and_answered_in_their_order(world: World) -> None:
    answer = send(world, *(world.report(details={"number": number}) for number in range(50)))

    results = results_of(answer)
    ids = [result["data"]["id"] for result in results]
    assert [result["data"]["details"]["number"] for result in results] == list(range(50))
    assert ids == sorted(ids)
    stored = {str(event.id): event for event in world.events()}
    for result in results:
        assert result["data"]["risk_score"] == stored[result["data"]["id"]].risk_score
        assert list(result) == ["status", "data"]


def test_answer_of_an_event_is_that_of_a_single_one(world: World) -> None:
    body = world.report(occurred_at="2026-01-02T03:04:05.678+02:00", payload={"a": 1})

    single = world.api.post("/v1/events", body).json()["data"]
    (result,) = results_of(send(world, body))

    assert list(result["data"]) == list(single)
    for name in ("agent_id", "action_type", "occurred_at", "details"):
        assert result["data"][name] == single[name]


def test_lines_are_read_as_events(world: World) -> None:
    lines = [json.dumps(world.report(details={"number": number})).encode() for number in range(3)]

    answer = send_lines(world, b"\n\n" + b"\r\n".join(lines) + b"\n \n")

    assert [result["data"]["details"]["number"] for result in results_of(answer)] == [0, 1, 2]


def test_line_that_is_no_json_is_refused_in_its_place(world: World) -> None:
    good = json.dumps(world.report()).encode()
    bad = [b"{", b'{"a": 1, "a": 2}', b'"\\ud800"', b"NaN", b"\xff", b"[" * 50, b"1e400"]

    answer = send_lines(world, b"\n".join([good, *bad, good]))

    assert statuses_of(answer) == [201, *[400] * len(bad), 201]
    assert world.events().count() == 2


def test_bad_events_are_refused_in_their_places_and_sink_no_other(world: World) -> None:
    suspended = make_certified_agent(world.tenant)
    Agent.objects.filter(id=suspended.id).update(status=AgentStatus.SUSPENDED)
    foreign = make_certified_agent(make_tenant("Other"))
    mixed: list[tuple[Any, int, str | None]] = [
        (world.report(), 201, None),
        (None, 400, "An event must be a JSON object"),
        ([], 400, "An event must be a JSON object"),
        (world.report("nonsense"), 400, "Invalid action_type"),
        (world.report() | {"agent_id": "nonsense"}, 400, "agent_id: Must be a valid UUID."),
        (
            world.report(agentId=str(new_id())),
            400,
            "agent_id is given in two spellings with different values",
        ),
        (world.report() | {"agent_id": str(new_id())}, 404, "Agent not found"),
        (of(foreign), 404, "Agent not found"),
        (of(suspended), 422, "Agent is not active"),
        (world.report(), 201, None),
    ]

    results = results_of(send(world, *(item for item, _, _ in mixed)))

    assert [(result["status"], result.get("error")) for result in results] == [
        (status, error) for _, status, error in mixed
    ]
    assert BehaviorEvent.objects.filter(agent_id__in=[foreign.id, suspended.id]).count() == 0
    assert world.events().count() == 2


def test_a_thousand_events_are_taken_and_one_more_is_not(world: World) -> None:
    most = send(world, *[world.report()] * 1000)
    stored = world.events().count()

    too_many = send(world, *[world.report()] * 1001)

    assert statuses_of(most) == [201] * 1000
    assert (stored, too_many.status_code) == (1000, 400)
    assert world.events().count() == 1000


@pytest.mark.parametrize("lines", [1001, 300_000])
def test_lines_beyond_the_limits_are_refused_without_being_read(world: World, lines: int) -> None:
    answer = send_lines(world, b"{}\n" * lines)

    assert answer.status_code == 400
    assert answer.json() == {"error": "events: Must hold 1 to 1000 events."}


def test_third_high_event_refuses_what_follows_it(world: World) -> None:
    other = make_certified_agent(world.tenant)
    events = [world.report(HIGH), world.report(), of(other), world.report(HIGH)]
    events += [of(other), world.report(HIGH), world.report(), of(other), world.report(HIGH)]

    results = results_of(send(world, *events))

    assert [result["status"] for result in results] == [201, 201, 201, 201, 201, 201, 422, 201, 422]
    assert Agent.objects.get(id=world.agent.id).status == AgentStatus.SUSPENDED
    assert Agent.objects.get(id=other.id).status == AgentStatus.ACTIVE
    assert world.events().filter(risk_band="high").count() == 3


@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "k"}], ids=["plain", "idempotent"])
def test_scores_are_those_of_events_sent_one_by_one(
    committed: None, world: World, headers: dict[str, str]
) -> None:
    one, two = (make_certified_agent(world.tenant, financial_scope=SCOPE) for _ in range(2))
    for agent in (one, two):
        assert statuses_of(send(world, of(agent))) == [201]
    amounts = [900, 900, 900, 100, 900, 5]

    together = results_of(send(world, *(trade(one, amount) for amount in amounts), **headers))
    singly = [world.api.post("/v1/events", trade(two, amount)) for amount in amounts]

    assert [result["status"] for result in together] == [answer.status_code for answer in singly]
    scores = [result["data"]["risk_score"] for result in together if "data" in result]
    expected = [answer.json()["data"]["risk_score"] for answer in singly if answer.status_code == 201]
    assert scores == pytest.approx(expected, abs=0.01)
    assert max(expected) >= 0.85


def test_idempotency_key_repeats_the_answer_and_stores_nothing_twice(world: World) -> None:
    events = [world.report(), None, world.report(HIGH), world.report()]

    first = send(world, *events, Idempotency_Key="k")
    second = send(world, *events, Idempotency_Key="k")

    assert statuses_of(first) == [201, 400, 201, 201]
    assert first.json() == second.json()
    assert second["Idempotent-Replayed"] == "true"
    assert world.events().count() == 3


def test_agents_of_others_are_not_found(world: World, api: ApiClient) -> None:
    body = {"events": [world.report()]}

    for key in (make_key(make_tenant("Other")), make_test_key(world.tenant)):
        assert statuses_of(api.as_key(key).post(PATH, body)) == [404]
    assert not world.events().exists()


def test_rate_limit_counts_events_and_stores_nothing_of_a_batch_over_it(
    world: World, settings: Settings
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "events": 10}

    first = send(world, *[world.report()] * 6)
    refused = send(world, *[world.report()] * 6)

    assert statuses_of(first) == [201] * 6
    assert first["X-RateLimit-Remaining"] == "4"
    assert refused.status_code == 429
    assert list(refused.json()) == ["error"]
    for name in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"):
        assert refused[name].isdecimal()
    assert world.events().count() == 6


@pytest.mark.parametrize("content_type", ["application/json", "application/x-ndjson"])
def test_body_over_a_mebibyte_is_413(world: World, content_type: str) -> None:
    answer = world.api.raw("POST", PATH, b"{}\n" * 400_000, content_type)

    assert answer.status_code == 413
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/ndjson", "text/csv", ""])
def test_other_media_type_is_415(world: World, content_type: str) -> None:
    answer = world.api.raw("POST", PATH, b'{"events": []}', content_type)

    assert answer.status_code == 415
    assert list(answer.json()) == ["error"]


def test_single_events_are_no_lines(world: World) -> None:
    answer = world.api.raw("POST", "/v1/events", json.dumps(world.report()).encode(), "application/x-ndjson")

    assert answer.status_code == 415


def test_postgresql_dying_before_anything_is_stored_is_503(
    committed: None, world: World, backend_dies_at: str
) -> None:
    send(world, world.report())
    before = world.events().count()

    answer = send(world, world.report(), world.report(session_id=backend_dies_at))

    connection.close()
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) >= 1
    assert world.events().count() == before


def test_postgresql_dying_in_between_leaves_the_rest_503_and_tells_the_truth(
    committed: None, world: World, backend_dies_at: str
) -> None:
    send(world, world.report())

    # The high event is taken alone, after those before it were stored and before those behind it.
    answer = send(
        world,
        world.report(),
        world.report(HIGH, session_id=backend_dies_at),
        world.report(),
    )

    connection.close()
    results = results_of(answer)
    assert [result["status"] for result in results] == [201, 503, 503]
    stored = {str(found) for found in world.events().values_list("id", flat=True)}
    assert results[0]["data"]["id"] in stored
    assert len(stored) == 2
    assert statuses_of(send(world, world.report())) == [201]


@pytest.fixture
def portions(committed: None, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each high event of a batch with a key is a portion, and none stops the agent."""
    Agent.objects.filter(id=world.agent.id).update(enforcement=Enforcement.OBSERVE)
    monkeypatch.setattr(services, "PORTION_SECONDS", 0.0)


def test_batch_that_broke_off_goes_on_behind_its_last_portion(
    portions: None, world: World, backend_dies_at: str
) -> None:
    sessions = ["a", "b", "c", backend_dies_at, "d"]
    events = [world.report(HIGH, session_id=name, details={"name": name}) for name in sessions]

    broken = send(world, *events, Idempotency_Key="k")
    connection.close()
    kept = {str(found) for found in world.events().values_list("id", flat=True)}
    execute_as_owner("ALTER TABLE events_behaviorevent DISABLE TRIGGER die")
    whole, again = (send(world, *events, Idempotency_Key="k") for _ in range(2))

    assert (broken.status_code, len(kept)) == (503, 3)
    assert [result["data"]["details"]["name"] for result in results_of(whole)] == sessions
    assert {result["data"]["id"] for result in results_of(whole)[:3]} == kept
    assert world.events().count() == len(sessions)
    assert again.json() == whole.json()
    assert again["Idempotent-Replayed"] == "true"


def test_same_batch_at_once_is_stored_once(portions: None, world: World) -> None:
    sessions = [str(number) for number in range(12)]
    events = [world.report(HIGH, session_id=name, details={"name": name}) for name in sessions]

    first, *others = at_once(lambda: send(world, *events, Idempotency_Key="k").json())

    assert world.events().count() == len(events)
    assert [result["data"]["details"]["name"] for result in first["data"]] == sessions
    assert all(other == first for other in others)


def test_scorer_remembers_a_whole_batch(committed: None, world: World) -> None:
    send(world, world.report(), world.report(HIGH), world.report(), Idempotency_Key="k")

    held = redis.client().get(redis.key("risk", world.agent.id))

    newest = world.events().order_by("-id").first()
    assert newest is not None
    assert isinstance(held, bytes)
    assert held[:16] == newest.id.bytes


@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "k"}], ids=["plain", "idempotent"])
def test_refused_row_fails_alone_in_a_batch(
    committed: None, world: World, refused_session: str, headers: dict[str, str]
) -> None:
    agents = [make_certified_agent(world.tenant) for _ in range(5)]
    events = [report(agents[number % 4]) for number in range(8)]
    events.insert(3, report(agents[4], session_id=refused_session))

    answer = world.api.post("/v1/events/batch", {"events": events}, **headers)

    assert [result["status"] for result in answer.json()["data"]] == [201, 201, 201, 400, *[201] * 5]
    assert world.events().filter(agent__in=agents).count() == 8


def test_rows_stored_before_postgresql_died_are_told(
    committed: None, world: World, refused_session: str, backend_dies_at: str
) -> None:
    """The refused row splits the group in halves; the connection dies with the second."""
    agents = sorted((make_certified_agent(world.tenant) for _ in range(4)), key=lambda agent: str(agent.id))
    sessions = [refused_session, "first", "second", backend_dies_at]
    events = [report(agent, session_id=name) for agent, name in zip(agents, sessions, strict=True)]

    answer = world.api.post("/v1/events/batch", {"events": events})

    connection.close()
    refused, *others = [result["status"] for result in answer.json()["data"]]
    assert refused in (400, 503)
    assert others == [201, 503, 503]
    assert [event.session_id for event in world.events().filter(agent__in=agents)] == ["first"]
