"""Scope violations on record: one event, however often and wherever the request is repeated."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.conf import settings
from django.db import connections

from agents.models import Agent, AgentStatus
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from certificates.tests.factories import suspend_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.gateway.deciding import violations
from compliance.gateway.deciding.refusals import ScopeViolated
from compliance.gateway.deciding.requests import DecisionRequest
from compliance.gateway.models import GatewayCredential, GatewayViolation
from compliance.gateway.tests.factories import (
    Gateway,
    forwarded,
    make_permitted_agent,
    make_route,
    refusal,
    token_of,
)
from compliance.tenancy.models import Tenant
from compliance.tenancy.tests.factories import make_tenant
from delegation import services as delegation
from events.models import BehaviorEvent

SERIAL, BEARER = GatewayCredential.SERIAL, GatewayCredential.BEARER


def events_of(agent: Agent) -> list[BehaviorEvent]:
    return list(BehaviorEvent.objects.filter(agent_id=agent.id).order_by("id"))


def entries_of(tenant: Tenant) -> list[AuditEntry]:
    found = AuditEntry.objects.for_tenant(tenant.id).of_type(AuditAction.GATEWAY_SCOPE_VIOLATION)
    return list(found.order_by("id"))


@pytest.mark.django_db(databases="__all__")
class TestThroughTheApi:
    """As gateways meet it."""

    def test_violation_is_a_high_risk_event_once_for_all_retries(
        self, gateway: Gateway, agent: Agent, tenant: Tenant
    ) -> None:
        gateway.action = "delete"
        for _ in range(4):
            answer = gateway.ask_serial(agent, **forwarded("POST", "/orders/7?secret=1"))
            assert refusal(answer)[1] == "Scope violation"

        (event,), (entry,) = events_of(agent), entries_of(tenant)
        assert (event.action_type, event.risk_band) == ("unauthorized_access_attempt", "high")
        assert event.details == {
            "source": "gateway", "action": "delete", "route": None, "credential": "serial",
            "identity": "asserted", "method": "POST", "path": "/orders/7",
        }  # fmt: skip
        assert entry.metadata is not None
        assert entry.metadata["event_id"] == str(event.id)

    def test_bare_serial_never_stops_an_agent(self, gateway: Gateway, agent: Agent) -> None:
        for number in range(settings.HIGH_RISK_STRIKES + 3):
            assert refusal(gateway.ask_serial(agent, X_Service_Action=f"forbidden-{number}"))[0] == 403

        agent.refresh_from_db()
        assert (agent.status, len(events_of(agent))) == (AgentStatus.ACTIVE, 1)

    def test_three_different_violations_with_tokens_stop_the_agent(
        self, gateway: Gateway, agent: Agent
    ) -> None:
        token = token_of(agent)
        for number in range(3):
            assert refusal(gateway.ask_bearer(token, X_Service_Action=f"forbidden-{number}"))[0] == 403

        agent.refresh_from_db()
        assert (agent.status, len(events_of(agent))) == (AgentStatus.SUSPENDED, 3)
        assert refusal(gateway.ask_bearer(token)) == (403, "Agent is suspended", "agent_suspended")

    def test_each_route_and_action_is_recorded_for_itself(self, gateway: Gateway, agent: Agent) -> None:
        token = token_of(agent)
        gateway.action = "delete"
        gateway.ask_bearer(token)
        gateway.route = make_route(gateway.tenant).name
        gateway.ask_bearer(token)
        gateway.ask_bearer(token)

        assert [event.details["route"] for event in events_of(agent)] == [None, gateway.route]

    def test_gateway_of_another_tenant_writes_no_event_of_the_agent(
        self, gateway: Gateway, agent: Agent
    ) -> None:
        beside = Gateway(make_tenant("Beside"), action="delete")
        beside.route = make_route(beside.tenant, agents="any").name

        assert refusal(beside.ask_bearer(token_of(agent)))[0] == 403
        assert refusal(beside.ask_serial(agent))[0] == 403

        assert (events_of(agent), len(entries_of(beside.tenant))) == ([], 2)
        assert entries_of(gateway.tenant) == []

    @pytest.mark.parametrize("kind", [SERIAL, BEARER])
    def test_gateway_of_another_tenant_keeps_nothing_from_the_records(
        self, kind: GatewayCredential, gateway: Gateway, agent: Agent
    ) -> None:
        beside = Gateway(make_tenant("Beside"), action="delete")
        beside.route = make_route(beside.tenant, agents="any").name
        gateway.action = "delete"

        for asked in (beside, gateway):
            answer = asked.ask_serial(agent) if kind is SERIAL else asked.ask_bearer(token_of(agent))
            assert refusal(answer)[1] == "Scope violation"

        assert (len(events_of(agent)), len(entries_of(gateway.tenant))) == (1, 1)

    def test_path_that_is_hostile_is_stored_as_plain_text(self, gateway: Gateway, agent: Agent) -> None:
        gateway.action = "delete"
        gateway.ask_serial(agent, **forwarded("GET", "/\x01\xff<script>" + "x" * 2_000))

        (event,) = events_of(agent)
        assert event.details["path"].startswith("/%01%FF%3Cscript%3E")
        assert len(event.details["path"]) == 512


@pytest.mark.django_db(databases="__all__")
def test_violation_after_the_window_is_recorded_again_and_old_rows_go(tenant: Tenant, agent: Agent) -> None:
    start = now() - timedelta(days=2)
    for at in (start, start + timedelta(minutes=14), start + timedelta(minutes=16)):
        record(agent, at=at)
    assert len(events_of(agent)) == 2
    assert GatewayViolation.objects.count() == 1

    record(agent, action="other")

    assert GatewayViolation.objects.count() == 1


@pytest.mark.django_db(databases="__all__")
def test_violation_of_an_agent_that_was_stopped_meanwhile_is_audited_only(
    tenant: Tenant, agent: Agent
) -> None:
    suspend_agent(agent)

    record(agent)

    (entry,) = entries_of(tenant)
    assert entry.metadata is not None
    assert (events_of(agent), entry.metadata["event_id"]) == ([], None)


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("kind", [SERIAL, BEARER])
def test_two_gateways_at_once_record_once(kind: GatewayCredential) -> None:
    delegation.bootstrap(now=now())
    agent = make_permitted_agent(make_tenant())
    together = Barrier(4)

    def play(_: int) -> None:
        together.wait()
        with environments.use(Environment.LIVE):
            record(agent, kind=kind)
        connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(play, range(4)))

    assert len(events_of(agent)) == 1
    assert len(entries_of(agent.tenant)) == 1


def record(
    agent: Agent, *, at: object = None, action: str = "delete", kind: GatewayCredential = BEARER
) -> None:
    """Record a violation of the agent as its own tenant's gateway would."""
    request = DecisionRequest(
        tenant_id=agent.tenant_id,
        key_id=new_id(),
        now=at or now(),  # type: ignore[arg-type]
        route=None,
        action=action,
        serial=None,
        authorization=None,
        proof=None,
        original=None,
    )
    violated = ScopeViolated(agent.id, agent.tenant_id)
    violations.recorded(violated, request=request, kind=kind, route="", action=action)
