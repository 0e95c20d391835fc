"""Exchanges that wait for a tenant's own server or for a locked agent hold up no other tenant."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import services as certificates
from certificates.tests.factories import make_certified_agent
from compliance.api.answers import Answer
from compliance.core import environments
from compliance.core.clock import now
from compliance.serving.executors import SHARE
from compliance.tenancy.tests.factories import make_key, make_tenant
from compliance.tests.web import Worker
from delegation import services
from delegation.issuers import fetching
from delegation.issuers.tests.conftest import held
from delegation.issuers.tests.factories import make_issuer
from delegation.issuers.tests.providers import Held, Provider
from delegation.oauth.tests.oauth_clients import FORM, with_id_token
from delegation.tests.factories import ACTOR, CHAIN

__all__ = ["held"]

pytestmark = pytest.mark.usefixtures("committed")

Asked = tuple[str, Any, str]


@pytest.fixture
def worker() -> Iterator[Worker]:
    services.bootstrap(now=now())
    with closing(Worker()) as found:
        yield found


async def ask(worker: Worker, asked: Asked) -> Answer:
    path, body, key = asked
    is_form = path == "/oauth/token"
    octets = (urlencode(body) if is_form else json.dumps(body)).encode()
    headers = {
        "host": "testserver",
        "content-type": FORM if is_form else "application/json",
        "content-length": str(len(octets)),
        "authorization": f"Bearer {key}",
    }
    return await worker.exchange("POST", path, list(headers.items()), octets)


async def begun(worker: Worker, asked: Sequence[Asked]) -> list["asyncio.Task[Answer]"]:
    """Tasks of requests that are on their way."""
    tasks = [asyncio.ensure_future(ask(worker, one)) for one in asked]
    await asyncio.sleep(0.5)
    return tasks


async def gathered(tasks: Sequence["asyncio.Task[Answer]"]) -> list[Answer]:
    return await asyncio.gather(*tasks)


def exchange(provider: Provider, agent: Agent, key: str, issuer: str) -> Asked:
    return "/oauth/token", with_id_token(provider.token(iss=issuer), agent), key


def strike(agent: Agent, key: str) -> Asked:
    """A high-risk event, which is worked on apart from its group."""
    details = {"severity": "critical"}
    body = {"agent_id": str(agent.id), "action_type": "unauthorized_access_attempt", "details": details}
    return "/v1/events", body, key


def test_slow_issuers_of_some_tenants_hold_up_nobody_else(
    worker: Worker, provider: Provider, held: Held
) -> None:
    tenants = [make_tenant() for _ in range(fetching.MOST_AT_ONCE // fetching.MOST_OF_A_TENANT)]
    slow = []
    for place, tenant in enumerate(tenants):
        agent, key = make_agent(tenant), make_key(tenant)
        for number in range(fetching.MOST_OF_A_TENANT):
            issuer = f"{held.url}/{place}/{number}"
            make_issuer(tenant, issuer)
            slow.append(exchange(provider, agent, key, issuer))
    other = make_tenant()
    agent, key = make_certified_agent(other), make_key(other)
    make_issuer(other, provider.issuer, jwks=provider.jwks)

    tasks = worker.run(begun(worker, slow))
    worker.run(asyncio.to_thread(held.accept, len(slow)))
    quick = [
        worker.run(ask(worker, one))
        for one in (strike(agent, key), exchange(provider, agent, key, provider.issuer))
    ]
    waiting = [task for task in tasks if not task.done()]
    held.release()
    answers = worker.run(gathered(tasks))

    assert [answer.status for answer in quick] == [201, 200]
    assert len(waiting) == len(slow)
    assert {answer.status for answer in answers} == {503}


def test_tenant_has_one_share_of_the_threads_whatever_it_asks(worker: Worker) -> None:
    tenant, other = make_tenant(), make_tenant()
    locked, key = [make_certified_agent(tenant) for _ in range(2 * SHARE)], make_key(tenant)
    free, key_of_other = make_certified_agent(other), make_key(other)
    asked = [(f"/v1/agents/{agent.id}/delegation", {"chain": CHAIN}, key) for agent in locked[:SHARE]]
    asked += [strike(agent, key) for agent in locked[SHARE:]]

    with environments.atomic():
        for agent in locked:
            certificates.suspend_agent(
                tenant_id=tenant.id, agent_id=agent.id, reason="test", actor=ACTOR, now=now()
            )
        tasks = worker.run(begun(worker, asked))
        found = worker.run(ask(worker, strike(free, key_of_other)))
    answers = worker.run(gathered(tasks))

    assert found.status == 201, found.body
    assert {answer.status for answer in answers} <= {422, 503}
