"""What the gateway is told while a part of the service is away, and how much a decision asks."""

from contextlib import closing
from typing import Any

import pytest
from django.db import OperationalError, connections

from agents.models import Agent
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.owner import end_sessions
from compliance.tests.web import Worker
from delegation import services as delegation
from delegation.token_keys import keyring
from gateway.deciding.decisions import Passage
from gateway.deciding.requests import DecisionRequest
from gateway.endpoints import AUTHORIZE
from gateway.tests.factories import (
    PATH,
    Bound,
    Gateway,
    is_fault_of_gateway,
    make_permitted_agent,
    make_route,
    serial_of,
    token_of,
)
from tenancy import recent_keys
from tenancy.keys import digest
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


@pytest.mark.django_db(databases="__all__")
def test_proof_counts_not_while_redis_is_away_but_serials_and_bearers_do(
    gateway: Gateway, agent: Agent, redis_is_down: None
) -> None:
    assert is_fault_of_gateway(gateway.ask(**Bound(agent).headers()), 503)
    assert gateway.ask_serial(agent).status_code == 200
    assert gateway.ask_bearer(token_of(agent)).status_code == 200


@pytest.mark.django_db(databases="__all__")
def test_violation_is_recorded_without_redis(gateway: Gateway, agent: Agent, redis_is_down: None) -> None:
    assert gateway.ask_serial(agent, X_Service_Action="delete").status_code == 403
    assert agent.events.count() == 1


@pytest.mark.django_db(databases="__all__")
def test_decision_without_the_database_is_a_503(
    gateway: Gateway, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"X-Service-Cert-Serial": serial_of(agent)}
    assert gateway.ask(**headers).status_code == 200

    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is closed")

    with connections["default"].execute_wrapper(refuse):
        monkeypatch.setattr(connections["default"], "ensure_connection", refuse)

        assert is_fault_of_gateway(gateway.ask(**headers), 503)


@pytest.mark.usefixtures("committed")
def test_sessions_that_died_are_replaced_on_the_fast_path() -> None:
    delegation.bootstrap(now=now())
    gateway = Gateway(make_tenant())
    serial = serial_of(make_permitted_agent(gateway.tenant))
    headers = [
        ("host", "testserver"), ("x-service-gateway-key", gateway.key), ("x-service-action", "read"),
        ("x-service-cert-serial", serial),
    ]  # fmt: skip
    with closing(Worker()) as worker:
        for _ in range(3):
            # A renewal of the key beside the request would end with the sessions: the view answers then.
            recent_keys.drop(Environment.LIVE, digest(gateway.key))
            answer = worker.run(worker.exchange("GET", PATH, headers))
            assert (answer.status, worker.seen_by_view) == (200, 0)
            end_sessions()


@pytest.mark.usefixtures("committed")
def test_reading_token_keys_in_a_thread_uses_up_no_proof() -> None:
    delegation.bootstrap(now=now())
    gateway = Gateway(make_tenant())
    agent = make_permitted_agent(gateway.tenant)
    route = make_route(gateway.tenant)
    proof = [(name.lower().replace("_", "-"), text) for name, text in Bound(agent).headers().items()]
    headers = [
        ("host", "testserver"), ("x-service-gateway-key", gateway.key), ("x-service-action", "read"),
        ("x-service-gateway-route", route.name), *proof,
    ]  # fmt: skip
    keyring.forget()
    with closing(Worker()) as worker:
        answers = [worker.run(worker.exchange("GET", PATH, headers)).status for _ in range(2)]
        assert (answers, worker.seen_by_view) == ([200, 401], 0)


@pytest.mark.django_db(databases="__all__")
def test_questions_that_arrive_together_share_their_statements(
    tenant: Tenant, django_assert_num_queries: Any
) -> None:
    agents = [make_permitted_agent(tenant) for _ in range(3)]
    route = make_route(tenant)
    serials = [asked(tenant, route.name, serial=serial_of(one)) for one in agents]
    tokens = [asked(tenant, route.name, authorization=f"Bearer {token_of(one)}") for one in agents]
    AUTHORIZE.work(tokens[:1])

    with django_assert_num_queries(2):
        found = AUTHORIZE.work([*serials, *tokens])

    passed = [one.agent_id for one in found if isinstance(one, Passage)]
    assert passed == [one.id for one in agents] * 2


def asked(
    tenant: Tenant, route: str, *, serial: str | None = None, authorization: str | None = None
) -> DecisionRequest:
    return DecisionRequest(
        tenant_id=tenant.id,
        key_id=new_id(),
        now=now(),
        route=route,
        action="read",
        serial=serial,
        authorization=authorization,
        proof=None,
        original=None,
    )
