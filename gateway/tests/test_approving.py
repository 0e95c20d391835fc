"""A person is asked before a request passes the gateway; the receipt lets it pass once."""

from typing import Any

import pytest

from agents.models import Agent
from auditlog.models import AuditEntry
from compliance.core.clock import now
from gateway.access.tests.factories import make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from gateway.tests.factories import Gateway, forwarded, make_permitted_agent, make_route, refusal
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

ASKED = (403, "A person must approve this request", "approval_required")


def asked(answer: Any) -> Approval:
    """The approval that a refusal names."""
    assert refusal(answer) == ASKED
    return Approval.objects.get(id=answer["X-Service-Approval"])


def approved(answer: Any) -> str:
    return decide(asked(answer)).receipt or ""


@pytest.fixture
def careful(tenant: Tenant) -> Gateway:
    """A gateway at a route whose policy asks before every `pay`."""
    route = make_route(tenant, name="payments")
    make_policy(tenant, f"route:{route.id}", always_ask=["pay"], ttl_seconds=120)
    return Gateway(tenant, route="payments", action="pay")


def test_request_is_put_to_a_person_once(careful: Gateway, agent: Agent, tenant: Tenant) -> None:
    first, second = (asked(careful.ask_serial(agent, **forwarded())) for _ in range(2))

    assert first.id == second.id
    assert (first.agent_id, first.action_name, first.risk_band) == (agent.id, "pay", "low")
    assert first.details == {"resource": {"type": "http", "id": "GET https://api.example/orders/7?x=1"}}
    assert (first.expires_at - first.requested_at).total_seconds() == 120
    (entry,) = AuditEntry.objects.for_tenant(tenant.id).of_type("decision.asked")
    assert (entry.metadata or {})["approval_id"] == str(first.id)
    assert (entry.metadata or {})["decision_id"] == str(first.decision_id)


def test_receipt_lets_the_request_pass_once(careful: Gateway, agent: Agent) -> None:
    receipt = approved(careful.ask_serial(agent, **forwarded()))
    headers = {"X-Service-Approval": receipt, **forwarded()}

    assert careful.ask_serial(agent, **headers).status_code == 200
    assert refusal(careful.ask_serial(agent, **headers)) == (
        403, "The approval is used", "approval_already_used",
    )  # fmt: skip
    assert refusal(careful.ask_serial(agent, **forwarded())) == ASKED


@pytest.mark.parametrize(
    "changed",
    [{"method": "POST"}, {"uri": "/orders/8"}, {"uri": "/orders/7?x=2"}],
    ids=["method", "path", "query"],
)
def test_receipt_is_for_that_request_only(
    careful: Gateway, agent: Agent, tenant: Tenant, changed: dict[str, str]
) -> None:
    receipt = approved(careful.ask_serial(agent, **forwarded()))
    other = {"X-Service-Approval": receipt, **forwarded(**changed)}

    assert refusal(careful.ask_serial(agent, **other))[2] == "approval_wrong_action"
    of_other = {"X-Service-Approval": receipt, **forwarded()}
    assert refusal(careful.ask_serial(make_permitted_agent(tenant), **of_other))[2] == "approval_wrong_agent"
    assert (
        refusal(careful.ask_serial(agent, **{**of_other, "X-Service-Approval": "x"}))[2]
        == "approval_malformed"
    )
    # Anybody who was shown a receipt could fill the log with refused ones.
    assert not AuditEntry.objects.for_tenant(tenant.id).of_type("decision.denied").exists()
    assert careful.ask_serial(agent, **of_other).status_code == 200


def test_route_stands_for_a_request_that_is_not_forwarded(careful: Gateway, agent: Agent) -> None:
    assert asked(careful.ask_serial(agent)).details == {"resource": {"type": "route", "id": "payments"}}


def test_policy_of_the_route_counts_before_others(tenant: Tenant, agent: Agent) -> None:
    make_policy(tenant, always_ask=["read", "pay"])
    make_policy(tenant, f"route:{make_route(tenant, name='open').id}")

    assert Gateway(tenant, route="open").ask_serial(agent).status_code == 200
    assert refusal(Gateway(tenant).ask_serial(agent)) == ASKED


def test_policy_asks_from_the_band_of_the_agents_risk(tenant: Tenant, agent: Agent) -> None:
    make_policy(tenant, ask_from="medium")
    gateway = Gateway(tenant)
    assert gateway.ask_serial(agent).status_code == 200

    Agent.objects.filter(id=agent.id).update(risk_score=0.5)

    assert refusal(gateway.ask_serial(agent)) == ASKED


def test_receipt_is_for_the_risk_that_the_officer_saw(tenant: Tenant, agent: Agent) -> None:
    make_policy(tenant, ask_from="medium")
    Agent.objects.filter(id=agent.id).update(risk_score=0.5)
    gateway = Gateway(tenant)
    receipt = approved(gateway.ask_serial(agent))
    Agent.objects.filter(id=agent.id).update(risk_score=0.9)

    answer = gateway.ask_serial(agent, **{"X-Service-Approval": receipt})

    assert refusal(answer)[2] == "approval_not_shown"
    Agent.objects.filter(id=agent.id).update(risk_score=0.5)
    assert gateway.ask_serial(agent, **{"X-Service-Approval": receipt}).status_code == 200


def test_other_tenants_agent_is_refused_without_an_approval(tenant: Tenant) -> None:
    foreign = make_permitted_agent(make_tenant("Rival"))
    route = make_route(tenant, name="any", agents="any")
    make_policy(tenant, f"route:{route.id}", always_ask=["read"])

    answer = Gateway(tenant, route="any").ask_serial(foreign)

    assert refusal(answer) == ASKED
    assert "X-Service-Approval" not in answer
    assert not Approval.objects.exists()


def test_requests_without_the_agents_key_leave_it_places(careful: Gateway, agent: Agent) -> None:
    answers = [careful.ask_serial(agent, **forwarded(uri=f"/orders/{number}")) for number in range(6)]

    assert [refusal(one)[2] for one in answers] == ["approval_required"] * 5 + ["too_many_pending"]
    assert Approval.objects.pending(now()).count() == 5
