"""The examples of AuthZEN Authorization API 1.0, and the core of its certification scenario, as written.

The scenario's subjects are agents here: `alice` may read and write, `bob` may read.
"""

from typing import Any

import pytest
from django.conf import settings

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.tests.client import ApiClient
from gateway.access.tests.factories import ALL, ONE
from tenancy.models import Tenant

ALICE = {"type": "user", "id": "alice@acmecorp.com"}
CAN_READ = {"name": "can_read"}
NOON = {"time": "2024-05-31T15:22-07:00"}
DOCUMENTS = [
    {"resource": {"type": "document", "id": name}}
    for name in ("boxcarring.md", "subject-search.md", "resource-search.md")
]
RECORDS = [{"type": "record", "id": name} for name in ("record-1", "record-2")]

ACCOUNT = {
    "subject": ALICE,
    "resource": {"type": "account", "id": "123"},
    "action": {"name": "can_read", "properties": {"method": "GET"}},
    "context": {"time": "1985-10-26T01:22-07:00"},
}
STRUCTURED = {
    **ACCOUNT,
    "subject": {**ALICE, "properties": {"department": "Sales", "ip_address": "172.217.22.14"}},
    "resource": {
        "type": "book",
        "id": "123",
        "properties": {"library_record": {"title": "AuthZEN in Action", "isbn": "978-0593383322"}},
    },
}
BOXCARRED = [
    {"evaluations": [{"subject": ALICE, "action": CAN_READ, "context": NOON, **one} for one in DOCUMENTS]},
    {"subject": ALICE, "context": NOON, "evaluations": [{"action": CAN_READ, **one} for one in DOCUMENTS]},
    {
        "subject": ALICE,
        "context": NOON,
        "action": CAN_READ,
        "evaluations": [*DOCUMENTS[:2], {"action": {"name": "can_edit"}, **DOCUMENTS[2]}],
    },
]


@pytest.mark.parametrize("body", [ACCOUNT, STRUCTURED])
def test_example_of_one_evaluation_is_answered(asker: ApiClient, body: dict[str, Any]) -> None:
    answer = asker.post(ONE, body)

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json()["decision"] is False
    assert isinstance(answer.json()["context"], dict)


@pytest.mark.parametrize("body", BOXCARRED)
def test_example_of_three_evaluations_is_answered(asker: ApiClient, body: dict[str, Any]) -> None:
    answer = asker.post(ALL, body)

    assert answer.status_code == 200
    assert [one["decision"] for one in answer.json()["evaluations"]] == [False] * 3


@pytest.mark.parametrize(
    ("semantic", "count"), [("execute_all", 3), ("deny_on_first_deny", 1), ("permit_on_first_permit", 3)]
)
def test_example_of_a_semantic_is_answered(asker: ApiClient, semantic: str, count: int) -> None:
    items = [{"resource": {"type": "document", "id": name}} for name in "123"]
    options = {"evaluations_semantic": semantic, "another_option": "value"}
    body = {"subject": ALICE, "action": {"name": "read"}, "options": options, "evaluations": items}

    assert len(asker.post(ALL, body).json()["evaluations"]) == count


@pytest.fixture
def subjects(tenant: Tenant) -> dict[str, dict[str, str]]:
    scopes = {"alice": ["read", "write"], "bob": ["read"]}
    made: dict[str, Agent] = {
        name: make_certified_agent(tenant, name=name, metadata={"permitted_actions": scope})
        for name, scope in scopes.items()
    }
    return {name: {"type": "agent", "id": str(agent.id)} for name, agent in made.items()}


@pytest.mark.parametrize(
    ("who", "action", "decision"),
    [("alice", "read", True), ("alice", "write", True), ("bob", "read", True), ("bob", "write", False)],
)
def test_certified_decisions_are_made_each_time(
    asker: ApiClient, subjects: dict[str, dict[str, str]], who: str, action: str, decision: bool
) -> None:
    body = {"subject": subjects[who], "action": {"name": action}, "resource": RECORDS[0]}

    assert [asker.post(ONE, body).json()["decision"] for _ in range(3)] == [decision] * 3


def test_certified_batches_keep_their_order(asker: ApiClient, subjects: dict[str, dict[str, str]]) -> None:
    of_bob = {"subject": subjects["bob"], "resource": RECORDS[0]}
    actions = [{"action": {"name": name}} for name in ("read", "write")]
    full = [
        {"subject": subjects["alice"], "action": {"name": "read"}, "resource": RECORDS[0]},
        {"subject": subjects["bob"], "action": {"name": "write"}, "resource": RECORDS[0]},
    ]

    for body in ({**of_bob, "evaluations": actions}, {"evaluations": full}):
        answer = asker.post(ALL, body).json()
        assert [one["decision"] for one in answer["evaluations"]] == [True, False]
        assert "decision" not in answer


def test_certified_evaluation_that_fails_stands_in_its_place(
    asker: ApiClient, subjects: dict[str, dict[str, str]]
) -> None:
    items = [{"resource": RECORDS[0]}, {}]
    body = {"subject": subjects["alice"], "action": {"name": "read"}, "evaluations": items}

    answer = asker.post(ALL, body)

    assert answer.status_code == 200
    assert [one["decision"] for one in answer.json()["evaluations"]] == [True, False]


def test_metadata_names_the_endpoints_to_anyone() -> None:
    answer = ApiClient().get("/.well-known/authzen-configuration")

    assert answer.status_code == 200
    assert answer.json() == {
        "policy_decision_point": settings.BASE_URL,
        "access_evaluation_endpoint": f"{settings.BASE_URL}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{settings.BASE_URL}/access/v1/evaluations",
    }
    assert answer["Cache-Control"] == "public, max-age=3600"
