"""Evaluations of which a person is asked: what is approved, and what the receipt then allows."""

from typing import Any

import pytest
from django.urls import reverse

from agents.models import Agent
from compliance.tests.client import ApiClient
from compliance.tests.console import console_of, make_member
from gateway.access.tests.factories import ONE, RECORD, UNUSUAL, ask, decided, make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_key


def receipt_for(client: ApiClient, body: Any) -> str:
    found = client.post(ONE, body).json()["context"]["approval"]
    approved = decide(Approval.objects.get(id=found["id"]))
    return approved.receipt or ""


def with_receipt(body: dict[str, Any], receipt: str) -> dict[str, Any]:
    return {**body, "context": {**body.get("context", {}), "approval": receipt}}


def test_receipt_allows_the_act_once(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    make_policy(tenant, ask_from="medium")
    body = ask(agent, "pay", context=UNUSUAL)
    receipt = receipt_for(asker, body)

    assert decided(asker, with_receipt(body, receipt)) == (True, "allow", "approved")
    assert decided(asker, with_receipt(body, receipt)) == (False, "deny", "approval_already_used")
    assert decided(asker, body)[1] == "ask"


def test_receipt_is_for_that_act_only(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    make_policy(tenant, always_ask=["pay", "read"])
    body = ask(agent, "pay", context={"details": {"amount": 5}})
    receipt = receipt_for(asker, body)
    dearer = {**body, "context": {"details": {"amount": 6}, "approval": receipt}}
    elsewhere = with_receipt({**body, "resource": {"type": "record", "id": "2"}}, receipt)
    other = with_receipt({**body, "action": {"name": "read"}}, receipt)
    of_other = with_receipt({**body, **ask(make_permitted_agent(tenant), "pay")}, receipt)

    refused = (False, "deny", "approval_wrong_action")
    assert [decided(asker, one) for one in (dearer, elsewhere, other)] == [refused] * 3
    assert decided(asker, of_other) == (False, "deny", "approval_wrong_agent")
    assert decided(asker, with_receipt(body, "nonsense")) == (False, "deny", "approval_malformed")
    assert decided(asker, with_receipt(body, receipt))[0] is True


def test_resource_of_the_details_is_approved_beside_the_entity(
    asker: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    make_policy(tenant, always_ask=["pay"])
    body = ask(agent, "pay", context={"details": {"resource": "a/1"}})
    receipt = receipt_for(asker, body)
    elsewhere = {**body, "context": {"details": {"resource": "elsewhere/9"}}}
    nowhere = {**body, "context": {"details": {}}}

    shown = Approval.objects.get(agent_id=agent.id).details

    assert shown == {"resource": {**RECORD, "in_details": "a/1"}}
    for other in (elsewhere, nowhere):
        assert decided(asker, with_receipt(other, receipt)) == (False, "deny", "approval_wrong_action")
    assert decided(asker, with_receipt(body, receipt))[0] is True


@pytest.mark.parametrize("spelling", ["decision_id", "decisionId"])
def test_event_names_its_decision(agent: Agent, tenant: Tenant, spelling: str) -> None:
    api = ApiClient(make_key(tenant))
    decision = api.post(ONE, ask(agent)).json()["context"]["decision_id"]
    body = {"agent_id": str(agent.id), "action_type": "transaction_anomaly", spelling: decision}

    single = api.post("/v1/events", body).json()["data"]["id"]
    batch = api.post("/v1/events/batch", {"events": [body]}).json()["data"][0]["data"]["id"]

    assert {api.get(f"/v1/events/{one}").json()["data"]["decision_id"] for one in (single, batch)} == {
        decision
    }
    console = console_of(make_member(tenant, Role.OFFICER, f"officer-{spelling}"))
    pages = [
        console.get(reverse("admin:events_behaviorevent_change", args=[single])),
        console.get(reverse("admin:inbox_openevent_changelist"), {"event": single}),
    ]
    assert [decision in page.content.decode() for page in pages] == [True, True]


def test_event_of_no_decision_says_so(agent: Agent, tenant: Tenant) -> None:
    api = ApiClient(make_key(tenant))
    made = api.post("/v1/events", {"agent_id": str(agent.id), "action_type": "api_call"}).json()["data"]["id"]

    assert api.get(f"/v1/events/{made}").json()["data"]["decision_id"] is None
