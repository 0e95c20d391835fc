"""Acts that are asked about before they are done, and the persons who decide."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
import time_machine
from django.db import connections

from agentid import (
    ApprovalExpired,
    ApprovalTimedOut,
    AsyncClient,
    Client,
    Denied,
    NotFound,
    Retries,
    Unavailable,
    asking,
)
from agents.models import Agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.owner import owning
from compliance.tests.waiting import eventually
from events.models import BehaviorEvent
from gateway.access.tests.factories import make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from gateway.tests.factories import make_permitted_agent
from tenancy.tests.factories import make_key, make_tenant
from tests.between import Canned, Fate, between
from tests.conftest import Reported
from tests.served import Service

INVOICE = {"type": "invoice", "id": "2026-0042"}
PAYMENT: dict[str, Any] = {
    "resource": INVOICE,
    "action_type": "transaction_initiated",
    "details": {"amount": 900, "payee": "Ωmega & Söhne"},
}


@pytest.fixture
def reported(service: Service, settings: Any) -> Reported:
    """An agent that may read and pay; a person is asked before it pays, and signs as the service does."""
    settings.TOKEN_ISSUER = service.address
    with environments.use(Environment.LIVE):
        tenant = make_tenant()
        make_policy(tenant, always_ask=["pay"])
        return Reported(make_permitted_agent(tenant), make_key(tenant))


def approvals_of(agent: Agent) -> list[Approval]:
    with environments.use(Environment.LIVE):
        return list(Approval.objects.for_tenant(agent.tenant_id).order_by("requested_at"))


@contextmanager
def person(agent: Agent, act: Callable[[Approval], Any]) -> Iterator[None]:
    """Someone who acts on the first approval that waits, meanwhile."""

    def answer() -> None:
        with environments.use(Environment.LIVE):
            assert eventually(lambda: approvals_of(agent) != [], seconds=20)
            act(approvals_of(agent)[0])
        connections.close_all()

    thread = Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def deny(approval: Approval) -> None:
    decide(approval, approved=False, note="not this payee")


def expire(approval: Approval) -> None:
    with owning():  # the service itself moves no end
        Approval.objects.filter(id=approval.id).update(expires_at=now())


def test_permitted_act_is_allowed(client: Client, reported: Reported) -> None:
    agent_id = str(reported.agent.id)

    found = client.decide(agent_id, "read", resource=INVOICE)
    with asking(client, agent_id, "read", resource=INVOICE) as decision:
        client.events.record(
            agent_id=agent_id, action_type="api_call", details={"n": 1}, decision_id=decision.decision_id
        )

    assert (found.decision, found.outcome, found.risk_band, found.approval) == (True, "allow", "low", None)
    assert found.reasons
    assert found.risk_score is not None
    assert decision.decision
    assert str(BehaviorEvent.objects.get(agent_id=agent_id).decision_id) == decision.decision_id


def test_act_outside_the_scope_is_denied(client: Client, reported: Reported) -> None:
    agent_id = str(reported.agent.id)

    found = client.decide(agent_id, "delete", resource=INVOICE)
    with pytest.raises(Denied) as denied, asking(client, agent_id, "delete", resource=INVOICE):
        raise AssertionError("entered")

    assert (found.decision, found.outcome) == (False, "deny")
    assert (denied.value.reasons[0], denied.value.approval_id) == ("scope_violation", None)
    assert str(denied.value) == found.reasons[0].text


def test_approved_act_is_allowed_once(client: Client, reported: Reported) -> None:
    agent_id = str(reported.agent.id)

    with (
        person(reported.agent, decide),
        asking(client, agent_id, "pay", wait_seconds=60, **PAYMENT) as decision,
    ):
        (used,) = approvals_of(reported.agent)
    assert used.receipt is not None
    again = client.decide(agent_id, "pay", approval=used.receipt, **PAYMENT)

    assert used.status == "used"
    assert (decision.outcome, decision.reasons[0].name) == ("allow", "approved")
    assert (again.outcome, again.reasons[0].name) == ("deny", "approval_already_used")
    assert used.receipt not in repr((client.approvals.get(str(used.id)), decision))


def test_async_client_waits_too(service: Service, reported: Reported) -> None:
    agent_id = str(reported.agent.id)

    async def play() -> str:
        async with (
            AsyncClient(service.address, reported.api_key) as client,
            asking(client, agent_id, "pay", wait_seconds=60, **PAYMENT) as decision,
        ):
            return decision.outcome

    async def wait_for(approval_id: str) -> str:
        async with AsyncClient(service.address, reported.api_key) as client:
            return (await client.wait_for_approval(approval_id)).status

    with person(reported.agent, decide):
        assert asyncio.run(play()) == "allow"
    (used,) = approvals_of(reported.agent)
    assert asyncio.run(wait_for(str(used.id))) == "used"


def test_denied_act_is_not_done(client: Client, reported: Reported) -> None:
    agent_id = str(reported.agent.id)

    with (
        person(reported.agent, deny),
        pytest.raises(Denied) as refused,
        asking(client, agent_id, "pay", wait_seconds=60, **PAYMENT),
    ):
        raise AssertionError("entered")

    asked = approvals_of(reported.agent)
    assert str(refused.value) == "the approval is denied: not this payee"
    assert [str(each.id) for each in asked] == [refused.value.approval_id]
    assert refused.value.decision_id == str(asked[0].decision_id)
    assert asked[0].used_at is None


def test_wait_ends_when_the_approval_expires(service: Service, reported: Reported) -> None:
    with (
        Client(service.address, reported.api_key, timeout=3.0) as client,  # which asks again each two seconds
        person(reported.agent, expire),
        pytest.raises(ApprovalExpired) as late,
        asking(client, str(reported.agent.id), "pay", wait_seconds=60, **PAYMENT),
    ):
        raise AssertionError("entered")

    assert late.value.approval_id == str(approvals_of(reported.agent)[0].id)


@pytest.mark.parametrize("timeout", [1.5, 10.0])  # the first is too short for a long poll
def test_wait_ends_when_the_caller_says(service: Service, reported: Reported, timeout: float) -> None:
    agent_id = str(reported.agent.id)
    with Client(service.address, reported.api_key, timeout=timeout) as client:
        with (
            pytest.raises(ApprovalTimedOut) as late,
            asking(client, agent_id, "pay", wait_seconds=1.2, **PAYMENT),
        ):
            raise AssertionError("entered")
        assert late.value.approval_id is not None

        with environments.use(Environment.LIVE):
            decide(approvals_of(reported.agent)[0])
        approval = client.wait_for_approval(late.value.approval_id)
        found = client.decide(agent_id, "pay", approval=approval.receipt, **PAYMENT)

    assert (approval.status, found.decision) == ("approved", True)


def test_busy_service_is_asked_again(service: Service, reported: Reported) -> None:
    busy = Canned(503, headers={"Retry-After": "0"})
    fates: list[Fate | Canned] = [
        Fate.PASSED,
        Fate.PASSED,
        busy,
        busy,
        Fate.ANSWER_LOST,
        Fate.ANSWER_LOST,
        Fate.PASSED,
    ]
    twice = Retries(tries=2, first_wait=0.01)
    with between(service.address, *fates) as bad:

        def decide_late(approval: Approval) -> None:
            assert eventually(lambda: bad.fates == [Fate.PASSED], seconds=30)
            decide(approval)

        with (
            Client(bad.address, reported.api_key, timeout=2.5, retries=twice) as client,
            person(reported.agent, decide_late),
            asking(client, str(reported.agent.id), "pay", wait_seconds=60, **PAYMENT) as decision,
        ):
            assert decision.decision


def test_service_that_is_away_ends_the_wait_once_the_approval_has_expired(
    service: Service, reported: Reported
) -> None:
    busy = Canned(503, headers={"Retry-After": "0"})
    with (
        time_machine.travel(now() + timedelta(days=30)),  # for the client: the service has its own clock
        between(service.address, Fate.PASSED, Fate.PASSED, busy) as bad,
        Client(bad.address, reported.api_key, retries=Retries(tries=2, first_wait=0.01)) as client,
        pytest.raises(Unavailable),
        asking(client, str(reported.agent.id), "pay", wait_seconds=60, **PAYMENT),
    ):
        raise AssertionError("entered")


def test_unknown_approval_and_failing_block_are_told(client: Client, reported: Reported) -> None:
    with pytest.raises(NotFound):
        client.wait_for_approval(str(reported.agent.id))
    with pytest.raises(ZeroDivisionError), asking(client, str(reported.agent.id), "read", resource=INVOICE):
        raise ZeroDivisionError
