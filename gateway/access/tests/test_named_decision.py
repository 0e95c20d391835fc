"""An event names the decision by which its agent acted, and is shown with it."""

import pytest
from django.urls import reverse

from agents.models import Agent
from compliance.tests.client import ApiClient
from compliance.tests.console import console_of, make_member
from gateway.access.tests.factories import ONE, ask
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_key


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
