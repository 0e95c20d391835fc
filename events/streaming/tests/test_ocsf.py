"""Events in the form of OCSF, as the released schema has it."""

from typing import Any

import pytest

from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.ocsf import problems
from events.models import ActionType, BehaviorEvent
from events.streaming.ocsf import ocsf_of_event
from events.tests.conftest import World, shared_world
from events.tests.factories import make_event, make_high_event

world = shared_world
ODD: list[dict[str, Any]] = [
    {},
    {"host": "a.example", "tool": "search", "outcome": "failed", "service": "ldap"},
    {"host": 7, "tool": None, "method": ["GET"], "outcome": {"a": 1}},
    {"host": "", "tool": "", "big": 10**30, "deep": [[{"ü": None}]]},
]


def event(action: str, details: dict[str, Any], score: float = 0.1, **more: Any) -> BehaviorEvent:
    band = "low" if score < 0.3 else "medium" if score < 0.85 else "high"
    return BehaviorEvent(
        tenant_id=new_id(), agent_id=new_id(), action_type=action, risk_score=score, risk_band=band,
        occurred_at=now(), received_at=now(), details=details, **more,
    )  # fmt: skip


@pytest.mark.parametrize("details", ODD)
@pytest.mark.parametrize("action", ActionType.values)
def test_every_action_meets_the_schema_whatever_its_details(action: str, details: dict[str, Any]) -> None:
    reasons = [{"name": "new_place", "observed": "x", "expected": "", "weight": 1.5}]
    links = {"chain_id": new_id(), "decision_id": new_id(), "session_id": "s", "reasons": reasons}

    for score in (0.0, 0.5, 1.0):
        assert problems(ocsf_of_event(event(action, details, score, **links))) == []
        assert problems(ocsf_of_event(event(action, details, score))) == []


@pytest.mark.parametrize(
    ("action", "kind", "activity", "status"),
    [
        ("api_call", 6003, 99, None), ("data_access", 6003, 2, None), ("data_mutation", 6003, 3, None),
        ("transaction_initiated", 6003, 1, None), ("unauthorized_access_attempt", 6003, 99, 2),
        ("authentication_attempt", 3002, 1, None), ("authentication_failure", 3002, 1, 2),
    ],
)  # fmt: skip
def test_actions_have_their_class_activity_and_status(
    action: str, kind: int, activity: int, status: int | None
) -> None:
    shown = ocsf_of_event(event(action, {}))

    assert (shown["class_uid"], shown["activity_id"], shown.get("status_id")) == (kind, activity, status)


def test_risk_is_a_score_a_level_and_a_severity() -> None:
    found = [ocsf_of_event(event("api_call", {}, score)) for score in (0.1, 0.5, 0.9)]

    assert [one["risk_score"] for one in found] == [10, 50, 90]
    assert [one["risk_level_id"] for one in found] == [1, 2, 3]
    assert [one["severity_id"] for one in found] == [1, 3, 4]
    assert [one["is_alert"] for one in found] == [False, False, True]


def test_list_answers_in_the_form_with_all_that_an_event_says(world: World) -> None:
    details = {"tool": "search", "host": "a.example", "outcome": "succeeded"}
    make_event(world.agent, details=details, session_id="s1")
    make_high_event(world.agent)

    answer = world.api.get("/v1/events?format=ocsf")
    high, plain = answer.json()["data"]

    assert problems(high) == problems(plain) == []
    assert (plain["api"]["operation"], plain["dst_endpoint"], plain["status_id"]) == (
        "search",
        {"name": "a.example"},
        1,
    )
    assert plain["api"]["request"]["data"] == details
    assert plain["actor"] == {"app_uid": str(world.agent.id), "session": {"uid": "s1"}}
    assert plain["metadata"]["tenant_uid"] == str(world.tenant.id)
    assert (high["is_alert"], high["severity_id"], bool(high["unmapped"]["reasons"])) == (True, 4, True)
