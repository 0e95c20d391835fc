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
from delegation import services as delegation
from delegation.jose.tokens import Chain
from delegation.tests.factories import CHAIN, as_chain
from events.models import BehaviorEvent
from gateway.deciding import violations
from gateway.deciding.refusals import ScopeViolated
from gateway.deciding.requests import DecisionRequest
from gateway.models import GatewayCredential, GatewayViolation
from gateway.tests.factories import (
    Bound,
    Gateway,
    forwarded,
    make_permitted_agent,
    make_route,
    refusal,
    token_of,
)
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


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

    @pytest.mark.parametrize("scope", ["", "read", "read pay"])
    @pytest.mark.parametrize("is_bound", [False, True], ids=["bearer", "dpop"])
    @pytest.mark.parametrize(
        ("last", "is_agents"),
        [
            ({"sub": "OWN", "type": "agent"}, True),
            ({"sub": "OWN", "type": "sub_agent"}, True),
            ({"sub": "NAME", "type": "agent"}, True),
            ({"sub": "NAME", "type": "service"}, False),
            ({"sub": "helper", "type": "agent"}, False),
            ({"sub": "helper", "type": "sub_agent"}, False),
            ({"sub": "ledger", "type": "service"}, False),
            ({"sub": "alice", "type": "human"}, False),
        ],
    )
    def test_only_the_agent_itself_can_stop_itself(
        self,
        gateway: Gateway,
        agent: Agent,
        last: dict[str, str],
        is_agents: bool,
        is_bound: bool,
        scope: str,
    ) -> None:
        """Three actions and three routes, all outside the certificate, by whoever holds the token."""
        sub = last["sub"].replace("OWN", agent.did).replace("NAME", agent.name)
        chain = as_chain([CHAIN[0], {**last, "sub": sub}])
        bound = Bound(agent, {"chain": chain, "scope": scope})
        bearer = token_of(agent, chain=chain, scope=scope)

        for number in range(3):
            gateway.route = make_route(gateway.tenant).name
            shown = bound.headers() if is_bound else {"Authorization": f"Bearer {bearer}"}
            answer = gateway.ask(**shown, X_Service_Action=f"forbidden-{number}")
            assert refusal(answer)[:2] in {(403, "Scope violation"), (403, "Agent is suspended")}

        agent.refresh_from_db()
        stopped = is_bound and is_agents
        assert (agent.status, len(events_of(agent))) == (
            (AgentStatus.SUSPENDED, 3) if stopped else (AgentStatus.ACTIVE, 0)
        )

    def test_action_that_certificate_and_token_lack_is_the_tokens_fault(
        self, gateway: Gateway, agent: Agent
    ) -> None:
        answer = gateway.ask_bearer(token_of(agent), X_Service_Action="wire_money")

        assert refusal(answer) == (403, "Scope violation", "insufficient_scope")
        assert 'error="insufficient_scope"' in answer["WWW-Authenticate"]

    def test_gateway_of_another_tenant_writes_no_event_of_the_agent(
        self, gateway: Gateway, agent: Agent
    ) -> None:
        beside = Gateway(make_tenant("Beside"), action="delete")
        beside.route = make_route(beside.tenant, agents="any").name
        bound = Bound(agent, {"chain": chain_of(agent)})

        assert refusal(beside.ask(**bound.headers()))[0] == 403
        assert refusal(beside.ask_serial(agent))[0] == 403

        assert (events_of(agent), len(entries_of(beside.tenant))) == ([], 2)
        assert entries_of(gateway.tenant) == []

    @pytest.mark.parametrize("is_bound", [False, True], ids=["serial", "dpop"])
    def test_gateway_of_another_tenant_keeps_nothing_from_the_records(
        self, is_bound: bool, gateway: Gateway, agent: Agent
    ) -> None:
        beside = Gateway(make_tenant("Beside"), action="delete")
        beside.route = make_route(beside.tenant, agents="any").name
        gateway.action = "delete"
        bound = Bound(agent, {"chain": chain_of(agent)})

        for asked in (beside, gateway):
            answer = asked.ask(**bound.headers()) if is_bound else asked.ask_serial(agent)
            assert refusal(answer)[1] == "Scope violation"

        assert (len(events_of(agent)), len(entries_of(gateway.tenant))) == (1, 1)

    def test_path_that_is_hostile_is_stored_as_plain_text(self, gateway: Gateway, agent: Agent) -> None:
        gateway.action = "delete"
        gateway.ask_serial(agent, **forwarded("GET", "/\x01\xff<script>" + "x" * 2_000))

        (event,) = events_of(agent)
        assert event.details["path"].startswith("/%01%FF%3Cscript%3E")
        assert len(event.details["path"]) == 512


@pytest.mark.django_db(databases="__all__")
@pytest.mark.parametrize(
    ("is_proven", "pause"), [(True, timedelta(seconds=10)), (False, timedelta(minutes=15))]
)
def test_violation_is_recorded_again_after_a_pause_and_old_rows_go(
    agent: Agent, is_proven: bool, pause: timedelta
) -> None:
    start, second = now() - timedelta(days=2), timedelta(seconds=1)
    for at in (start, start + pause - second, start + pause + second):
        record(agent, at=at, is_proven=is_proven)
    assert len(events_of(agent)) == 2
    assert GatewayViolation.objects.count() == 1

    record(agent, action="other")

    assert GatewayViolation.objects.count() == 1


@pytest.mark.django_db(databases="__all__")
def test_insisting_agent_is_stopped(agent: Agent) -> None:
    start = now()
    for second in range(50):
        record(agent, at=start + timedelta(seconds=second), is_proven=True)

    agent.refresh_from_db()
    assert (agent.status, len(events_of(agent))) == (AgentStatus.SUSPENDED, 3)


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
@pytest.mark.parametrize("is_proven", [False, True])
def test_two_gateways_at_once_record_once(is_proven: bool) -> None:
    delegation.bootstrap(now=now())
    agent = make_permitted_agent(make_tenant())
    together = Barrier(4)

    def play(_: int) -> None:
        together.wait()
        with environments.use(Environment.LIVE):
            record(agent, is_proven=is_proven)
        connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(play, range(4)))

    assert len(events_of(agent)) == 1
    assert len(entries_of(agent.tenant)) == 1


def chain_of(agent: Agent) -> Chain:
    return as_chain([CHAIN[0], {"sub": agent.name, "type": "agent"}])


def record(agent: Agent, *, at: object = None, action: str = "delete", is_proven: bool = False) -> None:
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
    violated = ScopeViolated(agent.id, agent.tenant_id, is_proven=is_proven)
    violations.recorded(violated, request=request, kind=GatewayCredential.DPOP, route="", action=action)
