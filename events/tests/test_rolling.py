"""The 30-day rolling risk: the worst of late, fading."""

from datetime import UTC, datetime, timedelta

import pytest
from pytest_django.fixtures import Settings

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core.identifiers import new_id_at
from events.ingest import standing, storage
from events.ingest.storage import ScoredEvent
from events.risk.rolling import HALF_LIFE
from events.tests.conftest import World
from events.tests.factories import make_event, make_high_event
from tenancy.tests.factories import make_tenant

START = datetime(2026, 5, 1, tzinfo=UTC)


def present_risk(agent: Agent, moment: datetime) -> float:
    return standing.of_agents([(agent.tenant_id, str(agent.id))], now=moment)[str(agent.id)].present_risk


@pytest.mark.parametrize(
    ("score", "age", "expected"),
    [
        (0.9, timedelta(0), 0.9),
        (0.9, HALF_LIFE, 0.45),
        (0.8, 2 * HALF_LIFE, 0.2),
        (1.0, timedelta(days=30), 0.0625),
        (0.5, timedelta(seconds=-5), 0.5),
    ],
)
def test_risk_fades(world: World, score: float, age: timedelta, expected: float) -> None:
    Agent.objects.filter(id=world.agent.id).update(risk_score=score, risk_updated_at=START)

    assert present_risk(world.agent, START + age) == pytest.approx(expected)


def test_flood_of_ordinary_events_does_not_dilute(world: World) -> None:
    make_high_event(world.agent, received_at=START)
    for second in range(50):
        make_event(world.agent, received_at=START + timedelta(seconds=second))

    assert Agent.objects.get(id=world.agent.id).risk_score >= 0.85


def test_newer_risk_wins_although_the_written_one_looks_higher(world: World) -> None:
    make_high_event(world.agent, received_at=START)

    make_event(world.agent, "transaction_anomaly", received_at=START + 2 * HALF_LIFE)

    assert Agent.objects.get(id=world.agent.id).risk_score == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize(("on_citus", "tenants"), [(False, 1), (False, 5), (True, 1), (True, 5)])
def test_risks_of_several_tenants_rise_with_their_group(
    on_citus: bool, tenants: int, settings: Settings
) -> None:
    if settings.DATABASE_CITUS and not on_citus:
        pytest.skip("the tables are distributed")
    settings.DATABASE_CITUS = on_citus
    agents = [make_certified_agent(make_tenant()) for _ in range(tenants)]

    storage.insert([scored(one) for one in agents], risks={str(one.id): 0.25 for one in agents})

    assert [present_risk(one, START) for one in agents] == [0.25] * tenants
    assert all(one.events.count() == 1 for one in agents)


def scored(agent: Agent) -> ScoredEvent:
    return ScoredEvent(
        id=str(new_id_at(START)),
        tenant_id=str(agent.tenant_id),
        agent_id=str(agent.id),
        action_type="api_call",
        risk_score=0.25,
        risk_band="low",
        occurred_at=START,
        received_at=START,
        details={},
        session_id=None,
        chain_id=None,
        reasons=(),
        model_version="of-the-test",
    )
