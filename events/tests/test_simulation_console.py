"""Policy simulations in the console: officers ask, their tenants' members read, others see nothing."""

from typing import Any

import pytest
from django.urls import reverse

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certificate
from compliance.core.clock import now
from compliance.tests.console import actor_id_of, console_of, make_member
from events.models import ReviewVerdict, Simulation
from events.risk.evaluation import simulations
from events.tests.factories import judge
from events.tests.simulated import high_events
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

HOSTILE = "<script>alert(1)</script>"
ADD = "admin:events_simulation_add"
FORM = {"threshold": "0.85", "strikes": "2", "window_minutes": "15", "scope_rule": "on", "weights": "{}"}


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


@pytest.fixture
def agent(acme: Tenant) -> Agent:
    made = make_agent(acme, name=HOSTILE)
    make_certificate(made)
    return made


def ask(user: Any, tenant: Tenant, **fields: Any) -> Any:
    return console_of(user).post(reverse(ADD), {"tenant": tenant.id, **FORM, **fields})


def page(user: Any, simulation: Simulation) -> str:
    return (
        console_of(user).get(reverse("admin:events_simulation_change", args=[simulation.pk])).content.decode()
    )


def test_officer_asks_and_reads_what_was_found(acme: Tenant, agent: Agent) -> None:
    judge(high_events(agent, 0, 10, 14)[0], ReviewVerdict.CONFIRMED)
    officer = make_member(acme, Role.OFFICER)

    ask(officer, acme)
    simulation = Simulation.objects.get(tenant=acme)
    waiting = page(officer, simulation)
    simulations.step(simulation_id=simulation.id, now=now())
    ready = page(officer, simulation)

    assert (simulation.requested_by, simulation.policies["candidate"]["strikes"]) == (
        actor_id_of("officer"),
        2,
    )
    assert "0%, 0 events read" in waiting
    for words in (
        "1 of 1",
        "stopped earlier by the candidate, by 0:04:00",
        "2026-05-01 12:10:00",
        "2026-05-01 12:14:00",
    ):
        assert words in ready
    assert "Confirmed" in ready or "confirmed" in ready
    assert HOSTILE not in ready
    assert "&lt;script&gt;alert(1)" in ready


def test_the_form_begins_with_the_live_policy(acme: Tenant) -> None:
    form = console_of(make_member(acme, Role.OFFICER)).get(reverse(ADD))

    assert "Simulate a policy" in form.content.decode()
    fields = form.context["adminform"].form.fields
    assert [fields[name].initial for name in ("threshold", "strikes", "window_minutes")] == [0.85, 3, 15.0]


def test_weights_scope_and_period_reach_the_order(acme: Tenant) -> None:
    fields = {
        "weights": '{"BURST": 0.8}',
        "scope_rule": "",
        "first_day": "2026-05-01",
        "last_day": "2026-05-31",
    }

    ask(make_member(acme, Role.OFFICER), acme, **fields)

    order = Simulation.objects.get(tenant=acme).policies
    assert order["candidate"]["weights"] == {"BURST": 0.8}
    assert order["candidate"]["rescored"] is True
    assert order["candidate"]["scope_rule"] is False
    assert (order["since"][:10], order["until"][:10]) == ("2026-05-01", "2026-06-01")


@pytest.mark.parametrize(
    "fields",
    [
        {"threshold": "2"},
        {"strikes": ""},
        {"weights": "["},
        {"weights": "[" * 100_000},
        {"weights": '{"BURST": ' + "1" * 400 + "}"},
        {"weights": '{"\\ud800": 1}'},
        {"first_day": "2026-05-02", "last_day": "2026-05-01"},
    ],
)
def test_senseless_forms_are_shown_again(acme: Tenant, fields: dict[str, str]) -> None:
    answer = ask(make_member(acme, Role.OFFICER), acme, **fields)

    assert answer.status_code == 200
    assert not Simulation.objects.exists()


def test_a_second_simulation_waits_for_the_first(acme: Tenant) -> None:
    officer = make_member(acme, Role.OFFICER)
    ask(officer, acme)

    assert "under way" in ask(officer, acme).content.decode()
    assert Simulation.objects.count() == 1


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.DEVELOPER])
def test_auditors_and_developers_simulate_nothing(acme: Tenant, role: Role) -> None:
    assert ask(make_member(acme, role), acme).status_code == 403


def test_a_period_may_reach_from_the_first_day_to_the_last(acme: Tenant, agent: Agent) -> None:
    high_events(agent, 0, 10, 14)

    ask(make_member(acme, Role.OFFICER), acme, first_day="0001-01-01", last_day="9999-12-31")

    simulation = Simulation.objects.get(tenant=acme)
    simulations.step(simulation_id=simulation.id, now=now())
    simulation.refresh_from_db()
    assert simulation.findings is not None
    assert (simulation.status, simulation.findings["reproduced"]) == ("ready", 1)


def test_what_a_person_asks_for_is_audited(acme: Tenant) -> None:
    officer = make_member(acme, Role.OFFICER)

    ask(officer, acme, first_day="2026-05-01", last_day="2026-05-31")
    ask(officer, acme, strikes="0")

    simulation = Simulation.objects.get(tenant=acme)
    entry = AuditEntry.objects.for_tenant(acme.id).of_type("simulation.requested").get()
    shown = console_of(officer).get(reverse("admin:auditlog_auditentry_change", args=[entry.pk]))
    assert (entry.affected_id, entry.actor_id) == (str(simulation.id), actor_id_of("officer"))
    assert entry.metadata is not None
    assert entry.metadata["candidate"]["strikes"] == 2
    assert entry.metadata["since"] == "2026-05-01T00:00:00Z"
    assert reverse("admin:events_simulation_change", args=[simulation.pk]) in shown.content.decode()
