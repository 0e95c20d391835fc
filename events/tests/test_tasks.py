"""The events' tasks run in the environment that their message names."""

from celery import Task

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from events import tasks
from events.models import BehaviorEvent
from events.tests.conftest import World


def run(task: Task, environment: Environment) -> None:
    """As a worker does with beat's message."""
    task.apply(headers={ENVIRONMENT_HEADER: environment.value}, throw=True)


def over_the_threshold(agent: Agent) -> Agent:
    """Three high events put into the table past `ingest()`."""
    BehaviorEvent.objects.bulk_create(
        [
            BehaviorEvent(
                tenant_id=agent.tenant_id,
                agent=agent,
                action_type="unauthorized_access_attempt",
                risk_score=0.9,
                risk_band="high",
                occurred_at=now(),
                received_at=now(),
            )
            for _ in range(3)
        ]
    )
    return agent


def test_sweep_stops_agents_of_its_environment_only(world: World) -> None:
    over_the_threshold(world.agent)
    with environments.use(Environment.TEST):
        sandboxed = over_the_threshold(
            make_certified_agent(type(world.tenant).objects.get(id=world.tenant.id))
        )

        run(tasks.sweep_high_risk, Environment.TEST)

        assert Agent.objects.get(id=sandboxed.id).status == "suspended"
    assert Agent.objects.get(id=world.agent.id).status == "active"

    run(tasks.sweep_high_risk, Environment.LIVE)
    assert Agent.objects.get(id=world.agent.id).status == "suspended"
