"""Four web nodes beside one another: an agent's events, and a revocation, may arrive at any of them."""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
import requests

from agents.models import Agent
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.browser.web_server import web_server
from events.models import BehaviorEvent
from events.risk import state_cache
from events.risk.scoring.model import relearn
from events.risk.snapshots import as_event
from tenancy.tests.factories import make_key, make_tenant

pytestmark = [pytest.mark.drill, pytest.mark.slow, pytest.mark.usefixtures("committed")]

NODES, AGENTS, EVENTS, AT_ONCE = 4, 24, 50, 8
REVOKED = 20
ACTIONS = ("api_call", "data_access", "data_mutation", "message_signed", "authentication_attempt")


@pytest.fixture(scope="module")
def addresses(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    with django_db_blocker.unblock(), ExitStack() as stack, ThreadPoolExecutor(NODES) as pool:
        folders = [tmp_path_factory.mktemp(f"node-{number}") for number in range(NODES)]
        servers = [
            web_server(folder, lambda _: {"RATE_LIMIT_EVENTS": "1000000", "RATE_LIMIT_VERIFY": "1000000"})
            for folder in folders
        ]
        yield list(pool.map(stack.enter_context, servers))


def details_of(stream: random.Random) -> dict[str, Any]:
    kind = stream.randrange(10)
    host = "partner.example" if kind < 8 else f"host{stream.randrange(40)}.example"
    return {
        "tool": f"tool{stream.randrange(4 if kind < 9 else 30)}",
        "resource": f"/records/{stream.randrange(12)}",
        "to": f"clerk{stream.randrange(3)}@{host}",
        "records": stream.randrange(50),
    }


def send(addresses: Sequence[str], secret: str, agent: Agent, *, node_of: Any) -> None:
    """Send one agent's events one after the other, each to the node that `node_of` says."""
    stream, headers = random.Random(str(agent.name)), {"Authorization": f"Bearer {secret}"}
    with ExitStack() as stack:
        sessions = [stack.enter_context(requests.Session()) for _ in addresses]
        for number in range(EVENTS):
            node = node_of(number)
            body = {
                "agent_id": str(agent.id),
                "action_type": stream.choice(ACTIONS),
                "details": details_of(stream),
            }
            answer = sessions[node].post(
                f"{addresses[node]}/v1/events", json=body, headers=headers, timeout=60
            )
            assert answer.status_code == 201, answer.text


def made(name: str, count: int = AGENTS) -> tuple[list[Agent], str]:
    tenant = make_tenant(name)
    agents = [make_certified_agent(tenant, name=f"{name} {number}") for number in range(count)]
    return agents, str(make_key(tenant))


def rows_of(agent: Agent) -> list[BehaviorEvent]:
    return list(BehaviorEvent.objects.of_agent(agent.id).order_by("id"))


def test_revoked_certificate_is_revoked_on_every_node_at_once(addresses: list[str]) -> None:
    agents, secret = made("Revoked at once", REVOKED)
    certificates = [Certificate.objects.get(agent=agent) for agent in agents]

    with ExitStack() as stack, ThreadPoolExecutor(NODES) as pool:
        sessions = [stack.enter_context(requests.Session()) for _ in addresses]

        def ask(serial: str) -> list[str]:
            def status(node: int) -> str:
                answer = sessions[node].get(f"{addresses[node]}/v1/verify/{serial}", timeout=60)
                return str(answer.json()["data"]["status"])

            return list(pool.map(status, range(NODES)))

        before, after = [], []
        for number, certificate in enumerate(certificates):
            before += ask(certificate.serial_number)
            answer = sessions[number % NODES].post(
                f"{addresses[number % NODES]}/v1/certificates/{certificate.id}/revoke",
                json={"reason": "key compromised"},
                headers={"Authorization": f"Bearer {secret}"},
                timeout=60,
            )
            assert answer.status_code == 200, answer.text
            after += ask(certificate.serial_number)

    assert before == ["active"] * (REVOKED * NODES)
    assert after == ["revoked"] * (REVOKED * NODES)


def test_states_hold_every_event_that_came_at_the_same_time(addresses: list[str]) -> None:
    agents, secret = made("Same time")
    agents = agents[:6]

    def play(part: tuple[Agent, int]) -> None:
        agent, node = part
        send(addresses, secret, agent, node_of=lambda number: node)

    with ThreadPoolExecutor(NODES * 2) as pool:
        list(pool.map(play, [(agent, node) for agent in agents for node in range(NODES)]))

    ids = [str(agent.id) for agent in agents]
    # The next event rebuilds what is not there.
    for agent in agents:
        send_one(addresses[0], secret, agent)
    with environments.use(Environment.LIVE):
        held = state_cache.stored(ids)
    for agent in agents:
        rows = rows_of(agent)
        expected = relearn([(as_event(row), row.risk_band) for row in rows])
        state = held[str(agent.id)].state
        assert len({row.id for row in rows}) == len(rows) == NODES * EVENTS + 1
        assert state is not None
        assert state.learned == pytest.approx(expected.learned, abs=0.5)


def send_one(address: str, secret: str, agent: Agent) -> None:
    body = {"agent_id": str(agent.id), "action_type": "api_call", "details": {"tool": "last"}}
    headers = {"Authorization": f"Bearer {secret}"}
    assert requests.post(f"{address}/v1/events", json=body, headers=headers, timeout=60).status_code == 201
