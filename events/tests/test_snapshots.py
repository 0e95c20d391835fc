"""Snapshots of the scorer's states: taken in bulk of who was active; what a lost Redis is made up from."""

from datetime import timedelta
from uuid import UUID

import pytest
from redis.exceptions import ConnectionError as Unreachable

from agents.models import Agent, AgentStatus
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.identifiers import first_id_at, new_id
from compliance.stores import redis
from compliance.tests.owner import owning
from events.ingest.event_input import EventInput
from events.ingest.ingestion import DeferredEvent, Submission, ingest_together
from events.ingest.storage import ScoredEvent
from events.models import ScorerProgress, ScorerSnapshot
from events.risk import snapshots, state_cache
from events.risk.state_cache import CachedState
from events.tests.factories import make_event
from events.tests.states import habits, lose, recalled
from tenancy.tests.factories import make_tenant

LATER = snapshots.SETTLED + timedelta(seconds=1)


@pytest.fixture
def agent(committed: None) -> Agent:
    with owning():
        ScorerProgress.objects.filter(name=snapshots.NAME).delete()
    return make_certified_agent(make_tenant())


def live(agent: Agent, count: int, tool: str = "a") -> ScoredEvent:
    """So many ordinary events, the last one returned."""
    for _ in range(count):
        last = make_event(agent, details={"tool": tool, "to": "friend@known.example"})
    return last


def take(after: timedelta = LATER) -> None:
    snapshots.take(now=now() + after)


def snapshot_of(agent: Agent) -> ScorerSnapshot:
    return ScorerSnapshot.objects.get(agent_id=agent.id)


def test_active_agent_is_snapshotted_as_redis_has_it(agent: Agent) -> None:
    last = live(agent, 3)

    take()

    row = snapshot_of(agent)
    assert row.tag == UUID(last.id)
    assert row.tag.bytes + bytes(row.state) == redis.client().get(redis.key("risk", agent.id))


def test_taking_again_reads_nothing_again(agent: Agent) -> None:
    live(agent, 1)
    take()

    assert snapshots.take(now=now()) == 0


def test_agent_is_due_after_many_events_or_a_while(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MANY_EVENTS", 4)
    monkeypatch.setattr(snapshots, "SETTLED", -timedelta(seconds=1))
    first = live(agent, 1)
    take(timedelta(0))

    ScorerProgress.objects.update(upto=first_id_at(now()))
    live(agent, 2)
    take(timedelta(0))
    few = snapshot_of(agent).tag
    ScorerProgress.objects.update(upto=UUID(first.id))
    last = live(agent, 3)
    take(timedelta(0))
    many = snapshot_of(agent).tag

    assert few == UUID(first.id)
    assert many == UUID(last.id)

    ScorerProgress.objects.update(upto=UUID(last.id))
    last = live(agent, 1)
    take(snapshots.OLD + LATER)
    assert snapshot_of(agent).tag == UUID(last.id)


def test_lost_redis_is_made_up_from_snapshot_and_events_since(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "REPLAYED_EVENTS", 5)
    live(agent, 12)
    take()
    live(agent, 3, "b")
    kept = habits(recalled(agent))

    lose(agent)

    assert habits(recalled(agent)) == kept


def test_group_goes_on_from_snapshots_of_many_agents_at_once(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    sibling = make_certified_agent(agent.tenant)
    for one in (agent, sibling):
        live(one, 2)
    take()
    for one in (agent, sibling):
        live(one, 1)
        lose(one)
    monkeypatch.setattr(snapshots, "rebuild", None)

    outcomes = ingest_together(
        [Submission(one.tenant_id, EventInput(str(one.id), "api_call"), now()) for one in (agent, sibling)]
    )

    assert not any(isinstance(outcome, DeferredEvent) for outcome in outcomes)
    monkeypatch.undo()
    assert [recalled(one).learned for one in (agent, sibling)] == [pytest.approx(4), pytest.approx(4)]


@pytest.mark.parametrize("damage", [{"state": b"junk"}, {"state": b""}, {"model_version": "0.1"}])
def test_snapshot_of_another_version_is_passed_over(agent: Agent, damage: dict[str, object]) -> None:
    live(agent, 3)
    take()
    kept = habits(recalled(agent))
    ScorerSnapshot.objects.filter(agent_id=agent.id).update(**damage)

    lose(agent)

    assert habits(recalled(agent)) == kept


def test_older_state_does_not_replace_a_newer_one(agent: Agent) -> None:
    agent_id, old, new = str(agent.id), new_id().bytes, new_id().bytes

    assert snapshots.put({agent_id: CachedState(b"new", new)}, now=now()) == 1
    assert snapshots.put({agent_id: CachedState(b"old", old)}, now=now()) == 0
    assert snapshots.put({agent_id: CachedState(b"old", old)}, now=now() + snapshots.OLD + LATER) == 1


def test_nothing_is_passed_by_while_redis_is_away(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise Unreachable

    live(agent, 1)
    with monkeypatch.context() as patch:
        patch.setattr(state_cache, "stored", fail)
        take()
    assert not ScorerSnapshot.objects.filter(agent_id=agent.id).exists()

    take()

    assert ScorerSnapshot.objects.filter(agent_id=agent.id).exists()


def test_snapshots_of_retired_and_silent_agents_go(agent: Agent) -> None:
    silent, retired = new_id(), agent.id
    state = {str(name): CachedState(b"s", new_id().bytes) for name in (silent, retired)}
    snapshots.put(state, now=now())

    snapshots.forget(now=now())
    assert ScorerSnapshot.objects.filter(agent_id__in=[silent, retired]).count() == 2

    Agent.objects.filter(id=agent.id).update(status=AgentStatus.RETIRED)
    snapshots.forget(now=now())
    assert not ScorerSnapshot.objects.filter(agent_id=retired).exists()

    snapshots.forget(now=now() + snapshots.KEPT + LATER)
    assert not ScorerSnapshot.objects.filter(agent_id=silent).exists()
