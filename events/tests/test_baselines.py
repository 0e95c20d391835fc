"""A tenant's baseline: pooled from the events table an hour behind, lent to young agents, read seldom."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from events import tasks
from events.models import ReviewVerdict, ScorerProgress, TenantBaseline
from events.risk import baselines, state_cache
from events.risk.scoring.contract import Event
from events.risk.scoring.model import teach
from events.risk.scoring.state import (
    MOST_COUNTED,
    SURPRISES,
    AgentState,
    Baseline,
    decode_baseline,
    encode_baseline,
    encode_state,
)
from events.risk.scoring.tables import digest
from events.risk.state_cache import NOTHING, StateUpdate
from events.tests.conftest import World
from events.tests.factories import judge, make_event, store_event
from tenancy.tests.factories import make_tenant

AGO = baselines.DELAY + timedelta(minutes=1)
DAYS = timedelta(days=4)
DETAILS = {"tool": "send_email", "to": "partner@known.example"}


def stored(world: World) -> Baseline | None:
    row = TenantBaseline.objects.filter(tenant=world.tenant).first()
    return decode_baseline(bytes(row.baseline)) if row else None


def learned(world: World) -> float:
    baseline = stored(world)
    return baseline.learned if baseline else 0.0


def knows(world: World, target: str) -> bool:
    baseline = stored(world)
    return baseline is not None and baseline.destinations.knows(
        digest(target), baseline.fading(now().timestamp())
    )


def colleague(world: World) -> Agent:
    """The tenant's other agent, which is made at the first call."""
    found = Agent.objects.filter(tenant=world.tenant, name="colleague").first()
    return found or make_certified_agent(world.tenant, name="colleague")


def past_event(world: World, score: float = 0.1, **details: Any) -> Any:
    """The same of two agents, days apart, as what a tenant is to know for good."""
    store_event(colleague(world), score, now() - AGO - DAYS, details=DETAILS | details)
    return store_event(world.agent, score, now() - AGO, details=DETAILS | details)


@pytest.fixture(autouse=True)
def far_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "FARTHEST_BACK", timedelta(days=10))


def settled_tenant(world: World) -> None:
    """A tenant whose agents write to one place all the time, as its baseline says."""
    for _ in range(70):
        past_event(world)
    baselines.pool_new(now=now())
    baselines._kept.clear()


def test_how_surprising_agents_events_are_is_summed_up_from_their_states(world: World) -> None:
    busy, past = AgentState(), now() - AGO
    for number in range(2 * int(MOST_COUNTED)):
        teach(busy, Event("data_access", past.timestamp() + number, {"tool": "read_mail"}))
    held = {str(world.agent.id): busy, str(colleague(world).id): AgentState()}
    state_cache.save(
        StateUpdate(agent_id, NOTHING.tag, encode_state(state), (), (), (), world.agent.id.bytes)
        for agent_id, state in held.items()
    )
    past_event(world)

    baselines.pool_new(now=now())

    baseline = stored(world)
    assert baseline is not None
    assert baseline.surprises_from(0) == pytest.approx(MOST_COUNTED)
    assert baseline.surprises_from(SURPRISES - 1) == 0.0


def test_low_events_are_pooled_once_by_tenant(world: World) -> None:
    past_event(world)
    past_event(world, to="x@evil.example", score=0.5)

    assert baselines.pool_new(now=now()) >= 1
    assert baselines.pool_new(now=now()) == 0

    assert learned(world) == pytest.approx(2, abs=0.2)
    assert knows(world, "partner@known.example")
    assert not knows(world, "x@evil.example")
    assert not TenantBaseline.objects.filter(tenant=make_tenant("Other")).exists()


def test_what_one_agent_repeats_is_pooled_without_its_place(world: World) -> None:
    for at in (now() - AGO - DAYS, now() - AGO):
        store_event(world.agent, 0.1, at, details=DETAILS)

    baselines.pool_new(now=now())

    assert learned(world) == pytest.approx(2, abs=0.2)
    assert not knows(world, "partner@known.example")


def test_later_events_are_added(world: World) -> None:
    past_event(world)
    baselines.pool_new(now=now())
    make_event(world.agent, details=DETAILS)

    baselines.pool_new(now=now() + AGO)

    assert learned(world) == pytest.approx(3, abs=0.3)


def test_steps_go_on_where_the_last_one_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "CHUNK", 2)
    for number in range(5):
        past_event(world, to=f"{number}@known.example")

    assert baselines.pool_new(now=now()) >= 5

    assert all(knows(world, f"{number}@known.example") for number in range(5))


def test_tenant_that_cannot_be_pooled_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = make_tenant("Broken")
    store_event(make_certified_agent(broken), 0.1, now() - AGO, details=DETAILS)
    past_event(world)
    TenantBaseline.objects.create(tenant=broken, version=7, baseline=encode_baseline(Baseline())[:-1])
    monkeypatch.setattr(baselines, "_decoded", lambda packed: decode_baseline(bytes(packed)))

    baselines.pool_new(now=now())

    assert knows(world, "partner@known.example")
    assert TenantBaseline.objects.get(tenant=broken).version == 7
    assert str(broken.id) in caplog.text


def test_recent_and_confirmed_events_are_not_pooled(world: World) -> None:
    store_event(colleague(world), 0.1, now() - AGO - DAYS, details=DETAILS | {"to": "now@new.example"})
    make_event(world.agent, details=DETAILS | {"to": "now@new.example"})
    past_event(world, to="x@evil.example")
    for missed in world.events().filter(details__to="x@evil.example"):
        judge(missed)

    baselines.pool_new(now=now())

    assert not knows(world, "now@new.example")
    assert not knows(world, "x@evil.example")


def test_dismissed_events_are_pooled_once_and_known_at_once(world: World) -> None:
    event = store_event(world.agent, 0.5, now() - AGO, details=DETAILS)
    taken_back = store_event(world.agent, 0.5, now() - AGO, details=DETAILS | {"to": "x@evil.example"})
    for one in (event, taken_back):
        judge(one.id, ReviewVerdict.DISMISSED)
    judge(event.id, ReviewVerdict.DISMISSED, "asked the customer")
    judge(taken_back.id, ReviewVerdict.CONFIRMED)
    baselines.pool_new(now=now())
    assert not knows(world, "partner@known.example")

    assert baselines.pool_new(now=now() + AGO) >= 1
    assert baselines.pool_new(now=now() + AGO) == 0

    assert learned(world) == pytest.approx(1, abs=0.1)
    assert knows(world, "partner@known.example")
    assert not knows(world, "x@evil.example")


def test_event_that_is_dismissed_again_after_a_change_of_mind_is_pooled(world: World) -> None:
    event = store_event(world.agent, 0.5, now() - AGO, details=DETAILS)
    for verdict in (ReviewVerdict.DISMISSED, ReviewVerdict.CONFIRMED, ReviewVerdict.DISMISSED):
        judge(event.id, verdict)

    baselines.pool_new(now=now() + AGO)

    assert learned(world) == pytest.approx(1, abs=0.1)


def test_dismissed_low_event_counts_once(world: World) -> None:
    event = store_event(world.agent, 0.1, now() - AGO, details=DETAILS)
    judge(event.id, ReviewVerdict.DISMISSED)

    baselines.pool_new(now=now() + AGO)

    assert learned(world) == pytest.approx(1, abs=0.1)


def test_task_that_was_away_for_long_goes_on_some_way_back(owned: None, world: World) -> None:
    ScorerProgress.objects.filter(name=baselines.NAME).delete()
    for _ in range(2):
        store_event(world.agent, 0.1, now() - timedelta(days=11), details=DETAILS)
    past_event(world)

    tasks.pool_baselines.apply(headers={ENVIRONMENT_HEADER: Environment.LIVE.value}, throw=True)

    assert learned(world) == pytest.approx(2, abs=0.2)


def test_young_agent_is_judged_beside_its_tenants_habits(world: World) -> None:
    alone = make_event(world.agent, details=DETAILS).risk_score
    newcomer = make_certified_agent(world.tenant)
    settled_tenant(world)

    together = make_event(newcomer, details=DETAILS).risk_score

    assert together < alone
    known = baselines.of_tenants([world.tenant.id], now=now())[world.tenant.id]
    assert known.is_enough(now().timestamp())


def test_process_asks_for_baselines_once_a_minute(world: World) -> None:
    settled_tenant(world)
    moment, asked = now(), [world.tenant.id]

    with CaptureQueriesContext(connections[environments.current().alias]) as queries:
        first = baselines.of_tenants(asked, now=moment)
        again = baselines.of_tenants(asked, now=moment + timedelta(seconds=59))
    later = baselines.of_tenants(asked, now=moment + timedelta(seconds=61))

    assert len(queries) == 1
    assert first[world.tenant.id] is again[world.tenant.id] is not later[world.tenant.id]


def test_baseline_of_another_layout_begins_anew(world: World) -> None:
    TenantBaseline.objects.create(tenant=world.tenant, version=1, baseline=b"junk")
    past_event(world)

    baselines.pool_new(now=now())

    assert learned(world) == pytest.approx(2, abs=0.2)


def test_baselines_of_live_are_none_of_the_sandbox(world: World) -> None:
    settled_tenant(world)
    assert baselines.of_tenants([world.tenant.id], now=now())

    with environments.use(Environment.TEST):
        assert not baselines.of_tenants([world.tenant.id], now=now())


def test_an_integer_that_no_float_holds_stops_no_pooling(world: World) -> None:
    for name in ("first", "second"):
        past_event(world, to=name, amount=10**400)

    assert baselines.pool_new(now=now()) >= 2
    assert baselines.pool_new(now=now()) == 0
