"""Simulations as rows: worked on in steps, safe to run twice and to lose, and given up in the end."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import IntegrityError

from agents.models import Agent
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.tests.threads import at_once
from events import tasks
from events.models import Simulation, SimulationStatus
from events.querysets import LEASE
from events.risk.evaluation import replay, simulations
from events.risk.evaluation.simulations import AlreadySimulating
from events.tests.factories import OFFICER
from events.tests.simulated import LIVE, high_events
from tenancy.tests.factories import make_tenant

HEADERS = {ENVIRONMENT_HEADER: Environment.LIVE.value}


@pytest.fixture
def agent(committed: None) -> Agent:
    """One with strikes enough for several steps."""
    made = make_certified_agent(make_tenant())
    high_events(made, 0, 20, 40, 60, 62, 64)
    return made


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("events.risk.evaluation.stored.CHUNK", 2)
    monkeypatch.setattr(simulations, "STEP_EVENTS", 1)


def requested(agent: Agent, **changes: Any) -> Simulation:
    return simulations.request_simulation(
        tenant_id=agent.tenant_id, changes={**LIVE, "strikes": 2, **changes}, actor=OFFICER, now=now()
    )


def fresh(simulation: Simulation) -> Simulation:
    return Simulation.objects.get(id=simulation.id)


def finish(simulation: Simulation) -> Simulation:
    while simulations.step(simulation_id=simulation.id, now=now()):
        pass
    return fresh(simulation)


def test_steps_lead_to_findings(agent: Agent, small_steps: None) -> None:
    simulation = requested(agent)
    seen = []

    while simulations.step(simulation_id=simulation.id, now=now()):
        seen.append((fresh(simulation).status, fresh(simulation).events))

    done = fresh(simulation)
    assert seen == [("running", 2), ("running", 4), ("running", 6), ("ready", 6)]
    assert done.findings is not None
    assert (done.findings["reproduced"], done.findings["recorded"]) == (1, 1)
    assert done.findings["counts"]["earlier"]["unreviewed"] == 1
    assert (done.progress, bytes(done.checkpoint)) == (1.0, b"")


def test_the_result_is_that_of_a_single_step(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = finish(requested(agent, rescore=True))
    monkeypatch.setattr("events.risk.evaluation.stored.CHUNK_WITH_DETAILS", 2)
    monkeypatch.setattr(simulations, "STEP_EVENTS", 1)
    in_steps = finish(requested(agent, rescore=True))

    assert whole.claims < in_steps.claims
    assert whole.findings is not None
    assert in_steps.findings is not None
    for found in (whole.findings, in_steps.findings):
        del found["order"]
    assert whole.findings == in_steps.findings


def test_the_task_goes_on_by_itself_and_the_sweep_finds_lost_ones(agent: Agent, small_steps: None) -> None:
    simulation = requested(agent)

    for _ in range(4):
        tasks.simulate.apply(kwargs={"simulation_id": str(simulation.id)}, headers=HEADERS)
    tasks.simulate.apply(kwargs={"simulation_id": str(simulation.id)}, headers=HEADERS)

    assert fresh(simulation).status == SimulationStatus.READY
    assert fresh(simulation).claims == 4


def test_a_claimed_step_is_left_alone_until_its_lease_ends(agent: Agent) -> None:
    simulation, at = requested(agent), now()
    Simulation.objects.claim(simulation.id, at)

    assert not simulations.step(simulation_id=simulation.id, now=at + LEASE)
    assert simulations.sweep(now=at + LEASE) == 0

    late = at + LEASE + timedelta(seconds=1)
    assert simulations.sweep(now=late) >= 1
    assert simulations.step(simulation_id=simulation.id, now=late)
    assert fresh(simulation).status == SimulationStatus.READY


def test_a_worker_whose_lease_was_taken_over_stores_nothing(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = requested(agent)
    honest = replay.resumed

    def slow(*given: Any) -> Any:
        """Let another worker take over in the middle of the step."""
        monkeypatch.setattr(simulations, "resumed", honest)
        simulations.step(simulation_id=simulation.id, now=now() + LEASE * 2)
        Simulation.objects.filter(id=simulation.id).update(events=77)
        return honest(*given)

    monkeypatch.setattr(simulations, "resumed", slow)
    simulations.step(simulation_id=simulation.id, now=now())

    assert (fresh(simulation).claims, fresh(simulation).events) == (2, 77)


def test_a_checkpoint_of_another_version_begins_again(agent: Agent, small_steps: None) -> None:
    simulation = requested(agent)
    simulations.step(simulation_id=simulation.id, now=now())
    Simulation.objects.filter(id=simulation.id).update(checkpoint=b"of old")

    assert finish(simulation).status == SimulationStatus.READY
    assert fresh(simulation).events == 6


def test_a_step_that_fails_is_tried_again_and_gives_way_in_the_end(agent: Agent) -> None:
    simulation, at = requested(agent), now()
    Simulation.objects.filter(id=simulation.id).update(policies={})

    for _ in range(simulations.MAX_ATTEMPTS):
        with pytest.raises(msgspec.ValidationError):
            simulations.step(simulation_id=simulation.id, now=at)
        at += LEASE * 2
    simulations.sweep(now=at)

    assert fresh(simulation).status == SimulationStatus.FAILED
    requested(agent)


def test_a_tenant_has_one_simulation_at_a_time(agent: Agent) -> None:
    first = requested(agent)

    with pytest.raises(AlreadySimulating):
        simulations.refuse_second(tenant_id=agent.tenant_id)
    finish(first)

    simulations.refuse_second(tenant_id=agent.tenant_id)
    simulations.refuse_second(tenant_id=make_tenant("Rival").id)


def test_of_several_asked_for_at_once_one_is_made(agent: Agent) -> None:
    made = at_once(lambda: requested(agent))

    assert [type(one) for one in made if isinstance(one, Exception)] == [AlreadySimulating] * 3
    assert Simulation.objects.filter(tenant=agent.tenant).count() == 1
    assert AuditEntry.objects.for_tenant(agent.tenant_id).of_type("simulation.requested").count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "lost"},
        {"status": "ready", "completed_at": now()},
        {"findings": {}},
        {"status": "failed"},
        {"status": "failed", "completed_at": now(), "checkpoint": b"kept"},
    ],
)
def test_the_database_refuses_states_without_sense(agent: Agent, wrong: dict[str, Any]) -> None:
    simulation = requested(agent)

    with pytest.raises(IntegrityError), environments.atomic():
        Simulation.objects.filter(id=simulation.id).update(**wrong)
