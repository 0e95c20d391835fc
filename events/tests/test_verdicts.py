"""What a verdict does: the agent's state takes it in, the tenant's agents are warned, nothing gets lost."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from redis.exceptions import ConnectionError as Unreachable

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.stores import redis
from compliance.tests.threads import all_at_once, at_once
from events import tasks
from events.inbox import reviewing
from events.ingest.storage import ScoredEvent
from events.models import (
    MarkedPlace,
    PendingReview,
    ReviewVerdict,
    ScorerSnapshot,
    TenantBaseline,
)
from events.risk import snapshots, state_cache
from events.risk.scoring.contract import Event
from events.risk.scoring.state import AgentState, Baseline, encode_baseline, encode_state, pool
from events.risk.scoring.tables import digest
from events.tests.factories import judge, make_event
from events.tests.states import lose, recalled
from tenancy.tests.factories import make_tenant

CONFIRMED, DISMISSED = ReviewVerdict.CONFIRMED, ReviewVerdict.DISMISSED
EVIL = {"tool": "pay", "to": "mule-7", "amount_usd": 5}


@pytest.fixture
def agent(committed: None) -> Agent:
    return make_certified_agent(make_tenant())


@pytest.fixture
def redis_fails(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Saving to Redis fails until this is undone."""

    def fail(_: Any) -> Any:
        raise Unreachable

    with monkeypatch.context() as patch:
        patch.setattr(state_cache, "_save", fail)
        patch.setattr(state_cache, "_circuit", redis.make_circuit())
        yield patch


def medium(agent: Agent, **fields: Any) -> ScoredEvent:
    event = make_event(agent, "transaction_anomaly", details=EVIL, **fields)
    assert event.risk_band == "medium"
    return event


def on_days(agent: Agent, *days_ago: int) -> list[ScoredEvent]:
    """Low events at one place, so many days ago; on three days over three, its probation is over."""
    moment = now()
    events = [
        make_event(agent, "transaction_initiated", details=EVIL, received_at=moment - timedelta(days=days))
        for days in days_ago
    ]
    assert {event.risk_band for event in events} == {"low"}
    return events


def rebuilt(agent: Agent) -> AgentState:
    return snapshots.rebuild(agent_id=str(agent.id), has_limits=False, now=now())


def test_dismissed_event_is_learned_once_in_memory_and_in_a_rebuild(agent: Agent) -> None:
    make_event(agent, details={"tool": "a"})
    event = medium(agent)
    before = recalled(agent).learned

    judge(event, DISMISSED)
    judge(event, DISMISSED, "asked the customer")

    assert recalled(agent).learned == pytest.approx(before + 1, abs=0.01)
    assert rebuilt(agent).learned == pytest.approx(before + 1, abs=0.01)
    ScorerSnapshot.objects.filter(agent_id=agent.id).delete()
    assert rebuilt(agent).learned == pytest.approx(before + 1, abs=0.01)
    assert not PendingReview.objects.filter(agent_id=agent.id).exists()


def test_verdict_and_events_that_arrive_meanwhile_lose_nothing_of_each_other(agent: Agent) -> None:
    event = medium(agent)

    ordinary = [lambda: make_event(agent, details={"tool": "a"})] * 15
    all_at_once([*ordinary[:5], lambda: judge(event, DISMISSED), *ordinary[5:]])

    reviewing.take_in(agent_id=agent.id, now=now())
    assert recalled(agent).learned == pytest.approx(16, abs=0.01)


def test_confirmed_place_is_medium_for_every_agent_of_the_tenant_and_no_other(agent: Agent) -> None:
    sibling, stranger = make_certified_agent(agent.tenant), make_certified_agent(make_tenant("Other"))
    make_event(sibling, details={"tool": "a"})

    made = judge(medium(agent))
    again = make_event(sibling, "transaction_initiated", details=EVIL)
    theirs = make_event(stranger, "transaction_initiated", details=EVIL)

    assert made.marked == ["mule-7"]
    assert again.risk_band == "medium"
    assert again.reasons[0].name == "confirmed_destination"
    assert again.reasons[0].observed == "mule-7"
    assert theirs.risk_band == "low"


def test_mark_of_live_is_none_of_the_sandbox(agent: Agent) -> None:
    with environments.use(Environment.TEST):
        sandboxed = make_certified_agent(type(agent.tenant).objects.get(id=agent.tenant_id))

    judge(medium(agent))

    with environments.use(Environment.TEST):
        assert make_event(sandboxed, "transaction_initiated", details=EVIL).risk_band == "low"


def test_mark_is_lifted_when_the_officer_changes_their_mind(agent: Agent) -> None:
    event = medium(agent)
    judge(event)

    judge(event, DISMISSED)

    assert not MarkedPlace.objects.filter(event_id=event.id).exists()
    assert make_event(agent, "transaction_initiated", details=EVIL).risk_band == "low"


def test_place_stays_marked_while_another_event_marks_it(agent: Agent) -> None:
    first, second = medium(agent), medium(agent)
    judge(first)
    judge(second)

    judge(first, DISMISSED)

    sibling = make_certified_agent(agent.tenant)
    assert make_event(sibling, "transaction_initiated", details=EVIL).risk_band == "medium"


def test_what_another_agent_knows_is_not_marked(agent: Agent) -> None:
    on_days(make_certified_agent(agent.tenant), 3, 1, 0)
    event = medium(agent)

    made = judge(event)

    assert made.marked == []
    assert not MarkedPlace.objects.filter(event_id=event.id).exists()


@pytest.mark.parametrize("days_ago", [(0, 0, 0), (2, 1, 0), (3, 0)])
def test_what_another_agent_has_on_probation_is_marked(agent: Agent, days_ago: tuple[int, ...]) -> None:
    on_days(make_certified_agent(agent.tenant), *days_ago)

    assert judge(medium(agent)).marked == ["mule-7"]


def test_what_an_agent_of_another_tenant_knows_is_marked(agent: Agent) -> None:
    on_days(make_certified_agent(make_tenant("Other")), 3, 1, 0)

    assert judge(medium(agent)).marked == ["mule-7"]


def test_what_another_agent_knew_by_its_snapshot_is_not_marked(agent: Agent) -> None:
    sibling = make_certified_agent(agent.tenant)
    on_days(sibling, 3, 1, 0)
    snapshots.put(state_cache.stored([str(sibling.id)]), now=now())
    lose(sibling)

    assert judge(medium(agent)).marked == []


@pytest.mark.parametrize(("first", "marked"), [("the agent", ["mule-7"]), ("another", [])])
def test_what_the_tenant_knows_from_two_agents_is_not_marked(
    agent: Agent, first: str, marked: list[str]
) -> None:
    baseline, moment = Baseline(), now().timestamp()
    name = str(agent.id) if first == "the agent" else first
    pool(baseline, Event("transaction_initiated", moment - 3 * 86_400, EVIL), agent=name)
    for _ in range(5):
        pool(baseline, Event("transaction_initiated", moment, EVIL), agent=str(agent.id))
    TenantBaseline.objects.create(tenant=agent.tenant, version=1, baseline=encode_baseline(baseline))
    on_days(agent, 0, 0, 0)

    assert judge(medium(agent)).marked == marked


def test_mark_fades(agent: Agent) -> None:
    judge(medium(agent), at=now() - timedelta(days=60))

    event = make_event(agent, "transaction_initiated", details=EVIL)

    assert event.risk_band == "low"
    assert event.reasons[0].name == "confirmed_destination"


def test_dismissing_a_later_event_at_the_place_takes_one_confirmation_away(agent: Agent) -> None:
    judge(medium(agent))
    later = make_event(agent, "transaction_initiated", details=EVIL)
    assert later.risk_band == "medium"

    made = judge(later, DISMISSED)

    assert made.marked == []
    sibling = make_certified_agent(agent.tenant)
    assert make_event(sibling, "transaction_initiated", details=EVIL).risk_band == "low"


def test_dismissal_taken_back_counts_no_more(agent: Agent) -> None:
    judge(medium(agent))
    later = make_event(agent, "transaction_initiated", details=EVIL)

    judge(later, DISMISSED)
    judge(later)

    sibling = make_certified_agent(agent.tenant)
    assert make_event(sibling, "transaction_initiated", details=EVIL).risk_band == "medium"


def test_dismissals_are_no_credit_for_later_attacks(agent: Agent) -> None:
    judge(medium(agent))
    for event in [make_event(agent, "transaction_initiated", details=EVIL) for _ in range(4)]:
        judge(event, DISMISSED)

    judge(medium(agent))

    sibling = make_certified_agent(agent.tenant)
    assert make_event(sibling, "transaction_initiated", details=EVIL).risk_band == "medium"


def test_confirmed_low_event_marks_and_is_unlearned(agent: Agent) -> None:
    [missed] = on_days(agent, 0)
    for state in (recalled(agent), rebuilt(agent)):
        assert state.waiting.get(digest("mule-7"))

    judge(missed)

    for state in (recalled(agent), rebuilt(agent)):
        assert not state.waiting.get(digest("mule-7"))
    assert make_event(agent, "transaction_initiated", details=EVIL).risk_band == "medium"
    for state in (recalled(agent), rebuilt(agent)):
        assert not state.destinations.knows(digest("mule-7"), state.fading(now().timestamp()))


def test_dismissed_low_event_changes_nothing(agent: Agent) -> None:
    event = make_event(agent, details=EVIL)
    before = encode_state(recalled(agent))

    judge(event, DISMISSED)

    assert encode_state(recalled(agent)) == before


def test_verdict_waits_while_redis_is_away_and_is_taken_in_by_the_task(
    agent: Agent, redis_fails: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = medium(agent)

    judge(event, DISMISSED)

    assert PendingReview.objects.filter(agent_id=agent.id).count() == 1
    assert rebuilt(agent).learned == 0
    redis_fails.undo()
    monkeypatch.setattr(reviewing, "OVERDUE", -reviewing.OVERDUE)
    tasks.take_in_reviews.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)
    assert not PendingReview.objects.filter(agent_id=agent.id).exists()
    assert recalled(agent).learned == pytest.approx(1, abs=0.01)
    assert rebuilt(agent).learned == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("lost", ["nothing", "Redis", "Redis and the snapshot"])
def test_verdict_is_taught_once_though_a_process_died_before_it_was_off_the_list(
    agent: Agent, lost: str
) -> None:
    make_event(agent, details={"tool": "a"})
    event = medium(agent)
    made = judge(event, DISMISSED)
    assert recalled(agent).learned == pytest.approx(2, abs=0.01)

    PendingReview.objects.create(id=made.id, agent_id=agent.id, created_at=now())
    if lost != "nothing":
        lose(agent)
    if lost == "Redis and the snapshot":
        ScorerSnapshot.objects.filter(agent_id=agent.id).delete()
    assert reviewing.take_in(agent_id=agent.id, now=now())

    assert recalled(agent).learned == pytest.approx(2, abs=0.01)
    assert rebuilt(agent).learned == pytest.approx(2, abs=0.01)
    assert not PendingReview.objects.filter(agent_id=agent.id).exists()


def test_verdict_is_taken_in_once_by_processes_that_find_it_together(agent: Agent) -> None:
    event = medium(agent)
    made = judge(event, DISMISSED)
    PendingReview.objects.create(id=made.id, agent_id=agent.id, created_at=now())

    assert all(at_once(lambda: reviewing.take_in(agent_id=agent.id, now=now())))
    assert recalled(agent).learned == pytest.approx(1, abs=0.01)


def test_rolled_back_review_teaches_nothing(agent: Agent) -> None:
    event = medium(agent)
    before = encode_state(recalled(agent))

    with environments.atomic():
        judge(event, DISMISSED)
        connections[environments.current().alias].set_rollback(True)

    assert encode_state(recalled(agent)) == before
    assert not PendingReview.objects.filter(agent_id=agent.id).exists()


def test_event_confirmed_after_a_dismissal_marks_what_it_would_have(agent: Agent) -> None:
    event = make_event(agent, "transaction_anomaly", details={"url": "https://evil.example/drop"})
    first = judge(event)

    judge(event, DISMISSED)
    made = judge(event)

    assert first.marked == made.marked == ["evil.example"]
    assert MarkedPlace.objects.get(event_id=event.id).name == "evil.example"


@pytest.mark.parametrize("details", [{"to": "\u0390" * 256}, {"x": "a@" + "\u0390" * 250 + ".com"}])
def test_place_whose_letters_fold_into_several_can_be_marked(agent: Agent, details: dict[str, str]) -> None:
    event = make_event(agent, "transaction_anomaly", details=details)

    made = judge(event)

    assert made.marked == list(MarkedPlace.objects.filter(event_id=event.id).values_list("name", flat=True))


def test_state_is_rebuilt_from_an_integer_that_no_float_holds(agent: Agent) -> None:
    make_event(agent, "transaction_initiated", details={"to": "mule-7", "amount": 10**400, "n": [-(10**400)]})
    before = recalled(agent)
    lose(agent)

    assert rebuilt(agent).usual_amount == before.usual_amount > 0
    assert make_event(agent, details={"tool": "a"}).risk_band == "low"
