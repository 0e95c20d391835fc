"""Modes in the console: set by officers with a reason, shown on every page that says who was stopped."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from agents.tests.factories import make_agent, make_retired_agent, make_suspended_agent
from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import address_in, console_of, make_member, make_operator
from tenancy import services
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

BOTH = pytest.mark.parametrize("environment", list(Environment))
TENANT, AGENT = "tenancy_tenant", "agents_agent"


def set_mode(client: Client, page: str, row: Any, mode: str, reason: str = "pilot") -> Any:
    path = reverse(f"admin:{page}_enforcement", args=[row.pk])
    return client.post(path, {"enforcement": mode, "reason": reason})


def page_of(client: Client, page: str, row: Any) -> str:
    return client.get(reverse(f"admin:{page}_change", args=[row.pk])).content.decode()


def listed(client: Client, **query: str) -> set[str]:
    found = client.get(reverse("admin:agents_agent_changelist"), query).context["cl"].queryset
    return set(found.values_list("name", flat=True))


def make_not_stopped_agent(tenant: Tenant, days_ago: float = 1) -> Agent:
    agent = make_certified_agent(tenant, enforcement="observe")
    noted_at = now() - timedelta(days=days_ago)
    Agent.objects.filter(id=agent.id).update(would_have_stopped_at=noted_at, risk_score=0.9)
    return agent


@BOTH
@pytest.mark.parametrize("role", [Role.OFFICER, None])
def test_officers_and_operators_set_a_tenants_mode(
    acme: Tenant, environment: Environment, role: Role | None
) -> None:
    client = console_of(make_member(acme, role) if role else make_operator(), environment)

    answer = set_mode(client, TENANT, acme, "observe")

    for one in Environment:
        with environments.use(one):
            expected = "observe" if one is environment else "enforce"
            assert services.get_tenant(tenant_id=acme.id).enforcement == expected
    with environments.use(environment):
        entry = AuditEntry.objects.about(acme.id).of_type("tenant.enforcement_changed").get()
    assert answer.url == address_in(environment, "tenancy_tenant_change", acme.pk)
    assert facts_of(entry) == {"before": "enforce", "after": "observe", "reason": "pilot"}
    assert entry.actor_id.startswith("person:")
    assert "observing" in page_of(client, TENANT, acme)


def test_officers_set_alarm_budgets_within_the_range(acme: Tenant) -> None:
    agent = make_agent(acme)
    client = console_of(make_member(acme, Role.OFFICER))

    of_agent = [(AGENT, agent, budget) for budget in ("0.05", "0.5", "\u0660.\u0660\u0662")]
    for page, row, budget in ((TENANT, acme, "0.002"), *of_agent):
        path = reverse(f"admin:{page}_alarm_budget", args=[row.pk])
        client.post(path, {"alarm_budget": budget, "reason": "pilot"})

    agent.refresh_from_db()
    entry = AuditEntry.objects.about(acme.id).of_type("tenant.alarm_budget_changed").get()
    assert services.get_tenant(tenant_id=acme.id).alarm_budget == 0.002
    assert agent.alarm_budget == 0.05
    assert facts_of(entry) == {"before": 0.01, "after": 0.002, "reason": "pilot"}
    assert "0.05 of its ordinary events (its own)" in page_of(client, AGENT, agent)


def test_officer_sets_an_agents_mode_and_leaves_it_to_the_tenant(acme: Tenant) -> None:
    agent = make_agent(acme)
    client = console_of(make_member(acme, Role.OFFICER))

    before = page_of(client, AGENT, agent)
    set_mode(client, AGENT, agent, "observe")
    own = page_of(client, AGENT, agent)
    set_mode(client, AGENT, agent, "")

    agent.refresh_from_db()
    entries = AuditEntry.objects.about(agent.id).of_type("agent.enforcement_changed")
    said = [(entry.metadata or {})["after"] for entry in entries.order_by("created_at", "id")]
    assert ("observing" in before, "observing" in own) == (False, True)
    assert agent.enforcement is None
    assert said == ["observe", None]


def test_retired_agent_is_offered_no_mode(acme: Tenant) -> None:
    agent = make_retired_agent(acme)
    client = console_of(make_operator())

    set_mode(client, AGENT, agent, "observe")

    assert "Agent is retired" in page_of(client, AGENT, agent)
    assert Agent.objects.get(id=agent.id).enforcement is None


def test_agents_are_filtered_by_the_mode_that_counts(acme: Tenant) -> None:
    observing = make_tenant("Observing")
    client = console_of(make_operator())
    set_mode(client, TENANT, observing, "observe")
    make_agent(acme, name="acme")
    make_agent(acme, name="acme observed", enforcement="observe")
    make_agent(observing, name="observed")
    make_agent(observing, name="enforced", enforcement="enforce")

    assert listed(client, mode="observe") == {"acme observed", "observed"}
    assert listed(client, mode="enforce") == {"acme", "enforced"}
    assert len(listed(client, mode="nonsense")) == 4


def test_list_of_agents_marks_those_observed(acme: Tenant) -> None:
    make_agent(acme)
    client = console_of(make_member(acme, Role.AUDITOR))
    page = reverse("admin:agents_agent_changelist")
    before = client.get(page).content.decode()

    make_agent(acme, enforcement="observe")

    # The filter names the mode in any case.
    assert "observing" not in before
    assert "observing" in client.get(page).content.decode()


def test_overview_counts_beside_the_stopped_those_that_would_have_been(acme: Tenant) -> None:
    make_suspended_agent(acme)
    make_not_stopped_agent(acme)
    make_not_stopped_agent(acme, days_ago=8)
    make_not_stopped_agent(make_tenant("Rival"))

    browser = console_of(make_member(acme, Role.AUDITOR))
    board = browser.get(reverse("console_overview")).context["board"]

    (tile,) = [tile for tile in board["tiles"] if tile.label == "Suspended agents"]
    (panel,) = [panel for panel in board["panels"] if panel["title"] == "Needs attention"]
    reasons = [row["cells"][-1] for row in panel["rows"]]
    assert (tile.value, tile.note) == (1, "await a review; 1 observed would have been in 7 days")
    assert reasons.count("Would have been stopped, but is only observed") == 1
    assert reasons.count("At high risk while active") == 1
    listed = browser.get(panel["url"]).context["cl"].queryset
    assert {row["pk"] for row in panel["rows"]} == {agent.pk for agent in listed}
