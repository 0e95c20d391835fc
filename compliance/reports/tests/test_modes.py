"""Modes in reports: what the audit log says of them, and the gaps that observing leaves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import make_agent, make_retired_agent
from auditlog.vocabulary import Actor
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.reports.content import eu_ai_act, mica
from compliance.reports.content.builder import build
from compliance.reports.content.evidence import gather
from compliance.reports.content.facts import Facts
from compliance.reports.content.observation import ModeChange, ModeHistory, agent_mode
from compliance.reports.tests.factories import make_busy_facts, make_frame
from compliance.reports.vocabulary import ControlState, ReportType
from compliance.tenancy import services as tenancy
from compliance.tenancy.models import Enforcement, Tenant
from compliance.tenancy.tests.factories import make_tenant
from events.tests.factories import make_high_event

ACTOR = Actor.system("tests")
MIDNIGHT = datetime(2026, 5, 1, tzinfo=UTC)
ENFORCED = ModeHistory("enforce")
OBSERVED = ModeHistory("observe")
TENANTS = ModeHistory(None)


def hours(count: float) -> datetime:
    return MIDNIGHT + timedelta(hours=count)


def changed(current: str | None, *changes: tuple[float, str | None, str | None]) -> ModeHistory:
    return ModeHistory(current, [ModeChange(hours(at), before, after) for at, before, after in changes])


@pytest.mark.parametrize(
    ("own", "tenants", "at_end", "observed"),
    [
        (TENANTS, ENFORCED, "enforce", 0),
        (TENANTS, OBSERVED, "observe", 24),
        (ENFORCED, OBSERVED, "enforce", 0),
        (OBSERVED, ENFORCED, "observe", 24),
        # Changes before, in and after the period [0, 24).
        (changed("observe", (-5, None, "observe")), ENFORCED, "observe", 24),
        (changed("observe", (6, None, "observe")), ENFORCED, "observe", 18),
        (changed("enforce", (30, "observe", "enforce")), ENFORCED, "observe", 24),
        (changed(None, (6, None, "observe"), (8, "observe", None)), ENFORCED, "enforce", 2),
        (TENANTS, changed("enforce", (1, "observe", "enforce")), "enforce", 1),
        # The tenant's change does not count while the agent has a mode of its own.
        (
            changed(None, (0, None, "enforce"), (12, "enforce", None)),
            changed("observe", (6, "enforce", "observe")),
            "observe",
            12,
        ),
    ],
)
def test_time_observed_follows_the_changes(
    own: ModeHistory, tenants: ModeHistory, at_end: str, observed: float
) -> None:
    mode = agent_mode(own, tenants, start=MIDNIGHT, end=hours(24))

    assert (mode.at_end, mode.time_observed) == (at_end, timedelta(hours=observed))


def test_an_agent_that_ended_before_the_period_was_not_observed_in_it() -> None:
    assert agent_mode(OBSERVED, ENFORCED, start=hours(5), end=MIDNIGHT).time_observed == timedelta()


def set_mode(agent: Agent, mode: str | None, at: datetime) -> None:
    changes = {"enforcement": mode}
    agents.update(tenant_id=agent.tenant_id, agent_id=agent.id, changes=changes, actor=ACTOR, now=at)


def set_tenants_mode(tenant: Tenant, mode: Enforcement, at: datetime) -> None:
    tenancy.set_enforcement(tenant_id=tenant.id, enforcement=mode, reason="pilot", actor=ACTOR, now=at)


def registered(agent: Agent, at: datetime) -> Agent:
    Agent.objects.filter(id=agent.id).update(created_at=at, status_changed_at=at)
    return agent


def facts_of(tenant: Tenant, start: datetime, end: datetime, **frame: Any) -> Facts:
    return gather(make_frame(tenant_id=tenant.id, start=start, end=end, generated_at=now(), **frame))


@pytest.mark.parametrize("environment", list(Environment))
def test_report_states_modes_from_the_audit_log(environment: Environment) -> None:
    with environments.use(environment):
        tenant = tenancy.get_tenant(tenant_id=make_tenant().id)
        always, briefly, never = (registered(make_agent(tenant), hours(-9)) for _ in range(3))
        set_mode(always, "observe", hours(-2))
        set_mode(briefly, "observe", hours(3))
        set_mode(briefly, "enforce", hours(4))
        set_mode(never, "enforce", hours(-3))
        registered(make_retired_agent(tenant, enforcement="observe"), hours(-1))
        set_tenants_mode(tenant, Enforcement.OBSERVE, hours(30))

        facts = facts_of(tenant, MIDNIGHT, hours(24))

        shown = {row["id"]: (row["enforcement"], row["seconds_observed"]) for row in facts.agents}
        assert facts.enforcement == "enforce"
        assert (facts.agent_count, facts.observed_agents) == (3, 2)
        assert shown[always.id] == ("observe", 24 * 3600)
        assert shown[briefly.id] == ("enforce", 3600)
        assert shown[never.id] == ("enforce", 0)
        assert [row["what"] for row in facts.oversight] == ["agent.enforcement_changed"] * 2
        assert facts.human_interventions == 0


def test_report_of_chosen_agents_has_their_tenants_changes() -> None:
    tenant = make_tenant()
    chosen, other = (registered(make_agent(tenant), hours(-9)) for _ in range(2))
    set_tenants_mode(tenant, Enforcement.OBSERVE, hours(18))
    set_mode(other, "enforce", hours(19))

    facts = facts_of(tenant, MIDNIGHT, hours(24), agent_ids=(chosen.id,))

    assert (facts.enforcement, facts.observed_agents) == ("observe", 1)
    assert [row["seconds_observed"] for row in facts.agents] == [6 * 3600]
    assert [row["what"] for row in facts.oversight] == ["tenant.enforcement_changed"]


def test_stops_not_made_are_counted_apart_from_stops() -> None:
    tenant = make_tenant()
    observed, stopped = make_certified_agent(tenant, enforcement="observe"), make_certified_agent(tenant)
    for agent in (observed, stopped):
        for _ in range(3):
            make_high_event(agent)

    facts = facts_of(tenant, now() - timedelta(hours=1), now() + timedelta(seconds=1))

    assert facts.would_have_stopped_count == facts.revocation_count == 1
    assert facts.audit_by_type["agent.suspended"] == facts.audit_by_type["agent.high_risk"] == 1
    assert "agent.would_have_stopped" in {row["what"] for row in facts.oversight}


def make_observed_facts() -> Facts:
    audited = {"agent.suspended": 1, "agent.high_risk": 1, "agent.would_have_stopped": 2}
    return make_busy_facts(enforcement="observe", agent_count=3, observed_agents=2, audit_by_type=audited)


@pytest.mark.parametrize(
    "control", [eu_ai_act.oversight(make_observed_facts()), mica.automatic_stops(make_observed_facts())]
)
def test_observing_is_a_gap_of_stops_and_oversight(control: Any) -> None:
    said = " ".join(control.gaps)

    assert control.state == ControlState.PARTIAL
    assert "2 agents only observed" in said
    assert "2 automatic stops recorded but not made" in said


def test_no_gap_is_said_where_every_agent_was_enforced() -> None:
    control = mica.automatic_stops(make_busy_facts())

    assert (control.state, control.gaps) == (ControlState.EVIDENCED, ())


@pytest.mark.parametrize("kind", list(ReportType))
def test_summary_states_the_mode(kind: ReportType) -> None:
    document = build(kind, make_frame(), make_observed_facts())

    assert document["summary"]["enforcement"] == {
        "tenant": "observe",
        "agents_observed": 2,
        "would_have_stopped": 2,
    }
    assert document["agents"][0]["enforcement"] == "enforce"
