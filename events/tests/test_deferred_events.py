"""Events that leave their group: threads heal, tenants share them, and a stopped agent stays stopped."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents.models import Agent, AgentStatus
from certificates.tests.factories import make_certified_agent
from compliance.api.answers import Answer
from compliance.core import environments
from compliance.core.clock import now
from compliance.stores import redis
from compliance.tenancy.tests.factories import make_key, make_tenant
from compliance.tests.owner import end_sessions
from compliance.tests.threads import in_thread
from events.ingest import standing
from events.ingest.event_input import EventInput
from events.ingest.ingestion import DeferredEvent, Submission, ingest_deferred
from events.models import BehaviorEvent
from events.risk import state_cache
from events.tests.conftest import World
from events.tests.web import Web, report, warm

pytestmark = pytest.mark.usefixtures("committed")

HIGH = "unauthorized_access_attempt"


def test_threads_whose_sessions_died_serve_again(world: World, web: Web, key: str) -> None:
    agents = [make_certified_agent(world.tenant) for _ in range(8)]
    warm(web, key, agents)
    assert {answer.status for answer in web.post_all(key, [report(one) for one in agents])} == {201}

    for _ in range(3):
        end_sessions()
        for one in agents:
            # Its state has to be rebuilt, which a group leaves to another thread.
            redis.client().delete(redis.key("risk", one.id))
            state_cache._kept.drop(str(one.id))
        answers = web.post_all(key, [report(one) for one in agents])

        assert [answer.status for answer in answers] == [201] * 8


@contextmanager
def locked(agent: Agent) -> Iterator[None]:
    """The agent's row, locked by another transaction."""
    with environments.atomic():
        Agent.objects.for_tenant(agent.tenant_id).select_for_update().get(id=agent.id)
        yield


def test_locked_agent_of_one_tenant_holds_up_no_other(world: World, web: Web, key: str) -> None:
    stranger_tenant = make_tenant("Other")
    stranger, stranger_key = make_certified_agent(stranger_tenant), str(make_key(stranger_tenant))
    warm(web, key, [world.agent])
    warm(web, stranger_key, [stranger])

    async def play() -> list[Answer]:
        blocked = [
            asyncio.ensure_future(web.send(key, report(world.agent, action_type=HIGH))) for _ in range(9)
        ]
        await asyncio.sleep(0.2)
        medium = web.send(key, report(world.agent, action_type="authentication_failure"))
        free = await asyncio.gather(
            medium, *(web.send(stranger_key, report(stranger)) for _ in range(3)),
            web.send(stranger_key, report(stranger, action_type=HIGH)),
        )  # fmt: skip
        for task in blocked:
            task.cancel()
        return list(free)

    with locked(world.agent):
        answers = web.run(asyncio.wait_for(play(), 8))

    assert [answer.status for answer in answers[1:]] == [201] * 4
    assert answers[0].status in {201, 503}


@pytest.mark.parametrize("action_type", ["api_call", HIGH])
def test_event_of_an_agent_that_was_stopped_meanwhile_is_refused(world: World, action_type: str) -> None:
    moment = now()
    known = standing.of_agents([(world.tenant.id, str(world.agent.id))], now=moment)[str(world.agent.id)]
    event = EventInput(agent_id=str(world.agent.id), action_type=action_type)
    Agent.objects.filter(id=world.agent.id).update(status=AgentStatus.SUSPENDED)

    outcome = ingest_deferred(DeferredEvent(Submission(world.tenant.id, event, moment), known))

    assert getattr(outcome, "status", None) == 422
    assert not BehaviorEvent.objects.of_agent(world.agent.id).exists()


def test_key_stays_known_while_it_cannot_be_looked_up(world: World, web: Web, key: str) -> None:
    warm(web, key, [world.agent])
    in_thread(end_sessions)

    assert web.post(key, world.report()).status == 201
