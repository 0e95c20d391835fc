"""The scorer's state cache: kept in Redis, rebuilt from PostgreSQL, shared by processes, never in the way."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.stores import redis
from compliance.tests.threads import in_thread
from events.ingest import ingestion
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent
from events.risk import snapshots, state_cache
from events.risk.scoring.model import fold
from events.risk.state_cache import TAG
from events.tests.factories import make_event
from events.tests.states import IMPOSSIBLE_NUMBERS, lose, plant, recalled, stored, tripped_circuit
from tenancy.tests.factories import make_tenant

SCOPE = {
    "max_single_trade_usd": 1000,
    "daily_limit_usd": 1_000_000,
    "permitted_instruments": [],
    "permitted_venues": [],
    "leverage_permitted": False,
}


@pytest.fixture
def agent(committed: None) -> Agent:
    return make_certified_agent(make_tenant())


def submission(agent: Agent) -> Submission:
    event = EventInput(str(agent.id), "api_call", {"tool": "a"})
    return Submission(agent.tenant_id, event, now())


def test_state_is_stored_after_the_commit(agent: Agent) -> None:
    event = make_event(agent, details={"tool": "a"})

    held = stored(agent)

    assert held is not None
    assert held[:16] == UUID(event.id).bytes
    assert recalled(agent).learned == pytest.approx(1)


def test_rolled_back_event_leaves_no_memory(agent: Agent) -> None:
    with environments.atomic():
        make_event(agent)
        connections[environments.current().alias].set_rollback(True)

    assert stored(agent) is None
    assert not BehaviorEvent.objects.of_agent(agent.id).exists()


@pytest.mark.parametrize("junk", [b"", b"short", b"x" * 200])
def test_unreadable_memory_is_rebuilt_and_replaced(agent: Agent, junk: bytes) -> None:
    make_event(agent, details={"tool": "a"})
    redis.client().set(redis.key("risk", agent.id), junk)

    make_event(agent, details={"tool": "a"})

    assert recalled(agent).learned == pytest.approx(2)


@pytest.mark.parametrize("numbers", IMPOSSIBLE_NUMBERS, ids=str)
def test_impossible_state_is_rebuilt_and_costs_no_other_agent_its_events(
    agent: Agent, numbers: dict[str, float]
) -> None:
    other = make_certified_agent(agent.tenant)
    for one in (agent, other):
        make_event(one, details={"tool": "a"})
    snapshots.put(state_cache.stored([str(agent.id)]), now=now())
    plant(agent, **numbers)

    outcomes = ingest_all([submission(one) for one in (agent, other, agent, other)])

    assert [type(outcome) for outcome in outcomes] == [ScoredEvent] * 4
    for one in (agent, other):
        assert BehaviorEvent.objects.of_agent(one.id).count() == 3
        assert recalled(one).learned == pytest.approx(3)


def test_state_that_turns_out_impossible_in_a_batch_loses_none_of_its_events(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_event(agent, details={"tool": "a"})
    folded = iter([True, False])

    def fold_once(*given: Any) -> Any:
        if next(folded, True):
            return fold(*given)
        raise OverflowError

    monkeypatch.setattr(ingestion, "fold", fold_once)

    outcomes = ingest_all([submission(agent) for _ in range(3)])

    assert [type(outcome) for outcome in outcomes] == [ScoredEvent] * 3
    assert BehaviorEvent.objects.of_agent(agent.id).count() == 4
    assert recalled(agent).learned == pytest.approx(4)


def test_snapshot_is_taken_of_readable_states_only(agent: Agent) -> None:
    make_event(agent, details={"tool": "a"})
    held = state_cache.stored([str(agent.id)])

    plant(agent, learned=math.nan)

    assert [*held] == [str(agent.id)]
    assert state_cache.stored([str(agent.id)]) == {}


def test_impossible_snapshot_is_left_out_of_a_rebuild(agent: Agent) -> None:
    make_event(agent, details={"tool": "a"})
    plant(agent, learned=-15.0, landmark=1e12)
    snapshots.put(state_cache.stored([str(agent.id)]), now=now())
    make_event(agent, details={"tool": "a"})

    lose(agent)

    assert recalled(agent).learned == pytest.approx(1)


def test_long_history_is_rebuilt_from_its_end_with_the_whole_day(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "REPLAYED_EVENTS", 5)
    Agent.objects.filter(id=agent.id).update(financial_scope=SCOPE, updated_at=now())
    agent.refresh_from_db()
    for _ in range(12):
        make_event(agent, "transaction_initiated", details={"amount_usd": 10})

    lose(agent)

    state = recalled(agent)
    assert state.day_usd == pytest.approx(120)
    assert state.learned == pytest.approx(5)


def test_ingest_goes_on_without_redis(agent: Agent, redis_is_down: None) -> None:
    for _ in range(3):
        make_event(agent, details={"tool": "a"})

    assert BehaviorEvent.objects.of_agent(agent.id).count() == 3
    assert recalled(agent).learned == pytest.approx(3)


def test_state_that_missed_events_is_rebuilt_when_redis_is_back(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_event(agent, details={"tool": "a"})
    with monkeypatch.context() as patch:
        patch.setattr(state_cache, "_circuit", tripped_circuit())
        make_event(agent, details={"tool": "a"})
    missed = stored(agent)

    state_cache.load([])

    assert len(missed or b"") > TAG
    assert len(stored(agent) or b"") == TAG
    assert recalled(agent).learned == pytest.approx(2)


def test_processes_whose_redis_is_emptied_now_and_then_learn_each_event_once(agent: Agent) -> None:
    def send(number: int) -> None:
        if number % 10 == 5:
            lose(agent)
        else:
            make_event(agent, details={"tool": "a"})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(in_thread, [partial(send, number) for number in range(30)]))

    assert recalled(agent).learned == pytest.approx(27)
    assert BehaviorEvent.objects.of_agent(agent.id).count() == 27
