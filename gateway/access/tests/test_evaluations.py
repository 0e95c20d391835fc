"""`POST /access/v1/evaluations`: many acts in one request, and when it ends."""

from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from auditlog.models import AuditEntry
from compliance.tests.client import ApiClient
from events.tests.factories import make_event
from events.tests.states import lose
from gateway.access.tests.factories import ALL, RECORD, ask, make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Tenant

READ, PAY, DELETE = ({"action": {"name": name}} for name in ("read", "pay", "delete"))


def subject_of(agent: Agent) -> dict[str, str]:
    return {"type": "agent", "id": str(agent.id)}


def decisions(client: ApiClient, body: Any) -> list[bool]:
    answer = client.post(ALL, body)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert set(found) == {"evaluations"}
    return [one["decision"] for one in found["evaluations"]]


def shared(agent: Agent, *items: Any, semantic: str | None = None) -> dict[str, Any]:
    options = {} if semantic is None else {"options": {"evaluations_semantic": semantic}}
    return {"subject": subject_of(agent), "resource": RECORD, "evaluations": list(items), **options}


def test_members_at_the_top_are_defaults(asker: ApiClient, agent: Agent) -> None:
    of_one = {"subject": subject_of(agent), "action": {"name": "read"}}
    documents = [{"resource": {"type": "document", "id": name}} for name in ("1", "2")]
    overridden = {"resource": {"type": "document", "id": "3"}, "action": {"name": "delete"}}

    assert decisions(asker, {**of_one, "evaluations": [*documents, overridden]}) == [True, True, False]


def test_evaluations_may_stand_without_defaults(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    other = make_permitted_agent(tenant)

    assert decisions(asker, {"evaluations": [ask(agent), ask(other, "delete")]}) == [True, False]


def test_incomplete_entity_takes_what_it_lacks_from_the_default(asker: ApiClient, agent: Agent) -> None:
    items = [{"resource": {"id": "record-1"}}, {"resource": {"type": "other", "id": "record-2"}}]
    body = {**ask(agent), "resource": {"type": "record"}, "evaluations": items}

    assert decisions(asker, body) == [True, True]


def test_context_of_an_item_replaces_the_default(asker: ApiClient, agent: Agent) -> None:
    violent = {"action_type": "unauthorized_access_attempt"}
    items = [{}, {"context": {"time": "2025-06-27T19:00-07:00"}}]

    assert decisions(asker, {**ask(agent, context=violent), "evaluations": items}) == [False, True]


@pytest.mark.parametrize(
    ("semantic", "expected"),
    [
        (None, [True, False, True]),
        ("execute_all", [True, False, True]),
        ("deny_on_first_deny", [True, False]),
        ("permit_on_first_permit", [True]),
    ],
)
def test_semantic_says_when_the_request_ends(
    asker: ApiClient, agent: Agent, semantic: str | None, expected: list[bool]
) -> None:
    assert decisions(asker, shared(agent, READ, DELETE, PAY, semantic=semantic)) == expected


def test_permit_on_first_permit_goes_past_denials(asker: ApiClient, agent: Agent) -> None:
    body = shared(agent, DELETE, PAY, READ, semantic="permit_on_first_permit")

    assert decisions(asker, body) == [False, True]


def test_what_is_not_evaluated_leaves_nothing(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    make_policy(tenant, always_ask=["pay"])

    assert decisions(asker, shared(agent, READ, PAY, semantic="permit_on_first_permit")) == [True]
    assert decisions(asker, shared(agent, DELETE, PAY, semantic="deny_on_first_deny")) == [False]

    assert not Approval.objects.exists()
    assert AuditEntry.objects.for_tenant(tenant.id).of_type("decision.asked").count() == 0
    assert AuditEntry.objects.for_tenant(tenant.id).of_type("decision.denied").count() == 1


def test_receipt_is_good_for_one_of_two_equal_acts(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    make_policy(tenant, always_ask=["pay"])
    answer = asker.post(ALL, shared(agent, PAY, PAY)).json()["evaluations"]
    (waiting,) = {one["context"]["approval"]["id"] for one in answer}
    receipt = decide(Approval.objects.get(id=waiting)).receipt
    with_receipt = {**PAY, "context": {"approval": receipt}}

    assert decisions(asker, shared(agent, with_receipt, with_receipt)) == [True, False]


@pytest.mark.parametrize("items", [{}, {"evaluations": []}, {"evaluations": None}])
def test_without_evaluations_it_is_a_single_one(
    asker: ApiClient, agent: Agent, items: dict[str, Any]
) -> None:
    found = asker.post(ALL, {**ask(agent), **items}).json()

    assert (found["decision"], found["context"]["outcome"]) == (True, "allow")
    assert asker.post(ALL, items).status_code == 400


def test_malformed_item_is_denied_in_its_place(asker: ApiClient, agent: Agent) -> None:
    body = {"subject": subject_of(agent), "action": {"name": "read"}}
    items = [{"resource": RECORD}, {}, "x", {"resource": RECORD, "context": 1}]

    found = asker.post(ALL, {**body, "evaluations": items})

    assert found.status_code == 200
    first, *rest = found.json()["evaluations"]
    assert first["decision"] is True
    assert [one["decision"] for one in rest] == [False] * 3
    assert [one["context"]["error"]["status"] for one in rest] == [400] * 3
    assert rest[0]["context"]["error"]["message"] == "resource: This field is required."


def test_malformed_item_is_a_denial_to_the_semantic(asker: ApiClient, agent: Agent) -> None:
    body = {**shared(agent, {"context": 1}, {}, semantic="deny_on_first_deny"), "action": {"name": "read"}}

    assert decisions(asker, body) == [False]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"evaluations": [{}] * 101}, "at most 100"),
        ({"options": {"evaluations_semantic": "all"}}, "evaluations_semantic"),
    ],
)
def test_malformed_request_is_a_400(
    asker: ApiClient, agent: Agent, changed: dict[str, Any], told: str
) -> None:
    answer = asker.post(ALL, {**shared(agent, READ), **changed})

    assert answer.status_code == 400, answer.content
    assert told in answer.json()["error"]


def test_a_hundred_are_answered_in_order(asker: ApiClient, agent: Agent) -> None:
    items = [READ if number % 3 else DELETE for number in range(100)]

    assert decisions(asker, shared(agent, *items)) == [bool(number % 3) for number in range(100)]


def test_state_that_was_lost_is_rebuilt_once_and_not_changed(asker: ApiClient, agent: Agent) -> None:
    for _ in range(5):
        make_event(agent, details={"action": "read"})
    body = {**shared(agent, *[READ] * 4), "context": {"details": {"host": "unheard-of.example"}}}
    expected = [one["context"]["risk_score"] for one in asker.post(ALL, body).json()["evaluations"]]
    lose(agent)

    with CaptureQueriesContext(connections["default"]) as captured:
        found = asker.post(ALL, body).json()["evaluations"]

    assert len([one for one in captured if "CROSS JOIN LATERAL" in one["sql"]]) == 1
    assert [one["context"]["risk_score"] for one in found] == pytest.approx(expected, abs=0.002)
    assert len(set(expected)) == 1
