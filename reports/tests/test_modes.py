"""Modes in reports: what the audit log says of them, and the gaps that observing leaves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import make_agent, make_retired_agent
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from reports.content.evidence import ModeChange, ModeHistory, agent_mode, gather
from reports.content.facts import Facts
from reports.tests.factories import make_frame
from tenancy import services as tenancy
from tenancy.models import Enforcement, Tenant
from tenancy.tests.factories import make_tenant

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

    assert mode == (at_end, timedelta(hours=observed))


def test_an_agent_that_ended_before_the_period_was_not_observed_in_it() -> None:
    assert agent_mode(OBSERVED, ENFORCED, start=hours(5), end=MIDNIGHT)[1] == timedelta()


def set_mode(agent: Agent, mode: str | None, at: datetime) -> None:
    changes = {"enforcement": mode}
    agents.update(tenant_id=agent.tenant_id, agent_id=agent.id, changes=changes, actor=ACTOR, now=at)


def set_tenants_mode(tenant: Tenant, mode: Enforcement, at: datetime) -> None:
    tenancy.change_setting(
        name="enforcement", tenant_id=tenant.id, value=mode, reason="pilot", actor=ACTOR, now=at
    )


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
