"""GET /v1/events and /v1/events/{id}: order, filters, a cursor that loses nothing, borders."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from certificates.tests.factories import make_certified_agent
from compliance.api.pagination import FULL_PAGE
from compliance.core.identifiers import new_id
from events.tests.conftest import World, shared_world
from events.tests.factories import make_event, make_high_event

PATH = "/v1/events"
START = datetime(2026, 3, 4, 5, 6, 7, 123456, tzinfo=UTC)


world = shared_world


def ids(answer: object) -> list[str]:
    return [row["id"] for row in answer.json()["data"]]  # type: ignore[attr-defined]


def test_list_is_newest_first_by_occurrence(world: World) -> None:
    old = make_event(world.agent, occurred_at=START)
    new = make_event(world.agent, occurred_at=START + timedelta(days=1))
    backdated = make_event(world.agent, occurred_at=START - timedelta(days=1))

    answer = world.api.get(PATH)

    assert answer.status_code == 200
    assert ids(answer) == [str(new.id), str(old.id), str(backdated.id)]
    assert answer.json()["has_next_page"] is False
    assert answer.json()["next_cursor"] is None


def test_page_that_is_full_ends_before_its_limit_and_the_walk_loses_nothing(world: World) -> None:
    # Long as text, short as PostgreSQL keeps it.
    details = {f"key-{number}": "x" * 100 for number in range(10_000)}
    made = {str(make_event(world.agent, details=details).id) for _ in range(6)}
    small = str(make_event(world.agent, occurred_at=START, details={"n": 10**30, "s": 'é\u2028"\\'}).id)
    found: list[str] = []
    counts, query = [], "?limit=100"

    while query:
        answer = world.api.get(PATH + query)
        body = answer.json()
        found += ids(answer)
        counts.append(len(body["data"]))
        assert len(answer.content) < FULL_PAGE + 2_000_000
        query = f"?limit=100&before={quote(body['next_cursor'])}" if body["has_next_page"] else ""

    assert counts == [4, 3]
    assert sorted(found) == sorted({*made, small})
    assert body["data"][-1]["details"] == {"n": 10**30, "s": 'é\u2028"\\'}


def test_filters(world: World) -> None:
    other = make_certified_agent(world.tenant)
    call = make_event(world.agent)
    theirs = make_event(other, "data_access")
    high = make_high_event(other)

    def found(query: str) -> list[str]:
        return ids(world.api.get(f"{PATH}?{query}"))

    assert found(f"agent_id={world.agent.id}") == [str(call.id)]
    assert found("band=high") == [str(high.id)]
    assert found("action_type=data_access") == [str(theirs.id)]
    assert found(f"agent_id={other.id}&band=low") == [str(theirs.id)]
    assert found(f"agent_id={new_id()}") == []
    assert found("band=medium") == []


def test_one_event_tells_why(world: World) -> None:
    event = make_high_event(world.agent, session_id="s-1")

    data = world.api.get(f"{PATH}/{event.id}").json()["data"]

    assert data["risk_band"] == "high"
    assert data["session_id"] == "s-1"
    assert data["model_version"] == event.model_version
    assert 1 <= len(data["reasons"]) <= 3
    assert set(data["reasons"][0]) == {"name", "observed", "expected", "weight"}
