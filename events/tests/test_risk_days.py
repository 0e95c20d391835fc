"""The 30-day risk, the worst of late, fading; its daily sums: each event once, whatever is late or lost."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.conf import settings
from pytest_django.fixtures import Settings

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import first_id_at, new_id_at
from compliance.stores import sql
from compliance.tests.threads import at_once, in_thread
from events.ingest import standing, storage
from events.ingest.storage import ScoredEvent
from events.models import RiskDay, RiskWatermark
from events.risk import rolling
from events.risk.rolling import HALF_LIFE, LAG, fade_risk, sum_up
from events.tests.conftest import World
from events.tests.factories import make_event, make_high_event, store_event
from tenancy.tests.factories import make_tenant

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


def raise_risks(scores: dict[UUID, float], *, now: datetime) -> int:
    """Raise the risks of agents of one tenant."""
    (tenant,) = set(Agent.objects.filter(id__in=scores).values_list("tenant_id", flat=True))
    risks = {"risen": list(map(str, scores)), "risks": list(scores.values())}
    return sql.prepared_write(rolling.RAISE_RISKS_OF_TENANT, {**risks, "tenant": tenant, "now": now})


def watermark(at: datetime) -> None:
    RiskWatermark.objects.update_or_create(id=1, defaults={"upto": first_id_at(at)})


def days_of(agent: Agent) -> list[tuple[int, int, int]]:
    return [(row.events, row.medium, row.high) for row in RiskDay.objects.filter(agent=agent).order_by("day")]


def risk_of(agent: Agent) -> float:
    return Agent.objects.get(id=agent.id).risk_score


def test_events_are_summed_by_agent_and_day(world: World) -> None:
    for score, hours in ((0.1, 0), (0.5, 1), (0.9, 2), (0.2, 24)):
        store_event(world.agent, score, START + timedelta(hours=hours))

    sum_up(now=START + timedelta(days=2))

    first, second = RiskDay.objects.filter(agent=world.agent).order_by("day")
    assert (first.events, first.medium, first.high, first.max_score) == (3, 1, 1, 0.9)
    assert first.score_sum == pytest.approx(1.5)
    assert (first.peak_score, first.peak_at) == (0.9, START + timedelta(hours=2))
    assert (second.events, second.peak_score) == (1, 0.2)


def test_second_run_adds_nothing_and_later_events_are_added_to_their_day(world: World) -> None:
    store_event(world.agent, 0.1, START)
    sum_up(now=START + timedelta(minutes=5))
    sum_up(now=START + timedelta(minutes=5))
    store_event(world.agent, 0.5, START + timedelta(minutes=6))

    sum_up(now=START + timedelta(minutes=10))

    assert days_of(world.agent) == [(2, 1, 0)]
    assert RiskDay.objects.get(agent=world.agent).peak_score == 0.5


def test_run_without_time_left_is_continued_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rolling, "CHUNK", 3)
    for second in range(5):
        store_event(world.agent, 0.1, START + timedelta(seconds=second))

    sum_up(now=START + timedelta(hours=1), seconds=0.0)
    unfinished = days_of(world.agent)
    sum_up(now=START + timedelta(hours=1))

    assert unfinished != [(5, 0, 0)]
    assert days_of(world.agent) == [(5, 0, 0)]


def test_event_of_the_last_moments_waits(world: World) -> None:
    store_event(world.agent, 0.1, START)

    sum_up(now=START + LAG / 2)
    waiting = days_of(world.agent)
    sum_up(now=START + 2 * LAG)

    assert waiting == []
    assert days_of(world.agent) == [(1, 0, 0)]


def test_risk_is_that_of_the_days_and_leaves_the_window(world: World) -> None:
    store_event(world.agent, 0.9, START)
    store_event(world.agent, 0.8, START + HALF_LIFE)
    end = START + timedelta(days=31, hours=12)
    sum_up(now=START + timedelta(days=29))

    watermark(end)
    fade_risk(now=end)
    assert risk_of(world.agent) == pytest.approx(
        0.8 * 2 ** -((end - START - HALF_LIFE) / HALF_LIFE), abs=1e-6
    )

    for days in (60, 61):
        watermark(START + timedelta(days=days))
        fade_risk(now=START + timedelta(days=days))
    assert risk_of(world.agent) == 0


def test_risk_that_was_lost_is_found_again(world: World) -> None:
    store_event(world.agent, 0.9, START)
    sum_up(now=START + timedelta(minutes=5))
    Agent.objects.filter(id=world.agent.id).update(risk_score=0, risk_updated_at=None)

    fade_risk(now=START + timedelta(minutes=5))

    assert risk_of(world.agent) == pytest.approx(0.9, abs=0.001)


def test_raise_past_the_watermark_is_kept(world: World) -> None:
    store_event(world.agent, 0.4, START)
    sum_up(now=START + timedelta(minutes=5))
    raise_risks({world.agent.id: 0.7}, now=START + timedelta(minutes=5))

    fade_risk(now=START + timedelta(minutes=6))

    assert risk_of(world.agent) == 0.7


def test_many_agents_rise_in_one_statement_where_they_are_worse(world: World) -> None:
    other, calm = make_certified_agent(world.tenant), make_certified_agent(world.tenant)
    Agent.objects.filter(id=other.id).update(risk_score=0.8, risk_updated_at=START - 2 * HALF_LIFE)
    Agent.objects.filter(id=calm.id).update(risk_score=0.8, risk_updated_at=START)

    raised = raise_risks({world.agent.id: 0.1, other.id: 0.5, calm.id: 0.5}, now=START)

    assert raised == 2
    assert (risk_of(world.agent), risk_of(other), risk_of(calm)) == (0.1, 0.5, 0.8)


def test_days_past_the_retention_are_forgotten(world: World) -> None:
    store_event(world.agent, 0.1, START)
    sum_up(now=START + timedelta(hours=1))

    rolling.forget(now=START + timedelta(days=settings.EVENT_RETENTION_DAYS))
    kept = days_of(world.agent)
    rolling.forget(now=START + timedelta(days=settings.EVENT_RETENTION_DAYS + 2))

    assert kept == [(1, 0, 0)]
    assert days_of(world.agent) == []


def test_event_that_commits_late_is_counted(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    began, go = threading.Event(), threading.Event()
    before = now() - LAG / 2
    watermark(before - LAG)

    def late() -> None:
        with environments.atomic():
            store_event(agent, 0.1, before)
            began.set()
            go.wait(10)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(in_thread, late)
        began.wait(10)
        sum_up(now=now() + timedelta(hours=1))
        go.set()
    sum_up(now=now() + timedelta(hours=1))

    assert days_of(agent) == [(1, 0, 0)]


def test_two_at_once_count_each_event_once(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    watermark(now() - LAG)
    for _ in range(50):
        store_event(agent, 0.1, now())

    at_once(lambda: sum_up(now=now() + timedelta(hours=1)))
    sum_up(now=now() + timedelta(hours=1))

    assert sum(events for events, _, _ in days_of(agent)) == 50


def present_risk(agent: Agent, moment: datetime) -> float:
    return standing.of_agents([(agent.tenant_id, str(agent.id))], now=moment)[str(agent.id)].present_risk


def test_risk_halves_in_a_half_life_and_is_not_raised_by_a_clock_that_is_behind(world: World) -> None:
    Agent.objects.filter(id=world.agent.id).update(risk_score=0.8, risk_updated_at=START)

    ages = (timedelta(0), HALF_LIFE, 2 * HALF_LIFE, timedelta(days=30), timedelta(seconds=-5))
    found = [present_risk(world.agent, START + age) for age in ages]

    assert found == pytest.approx([0.8, 0.4, 0.2, 0.05, 0.8])


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
