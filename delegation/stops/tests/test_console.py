"""Stop a kind in the console: the number first, then the stop, a second factor, and the release."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from agents.tests.factories import make_agent, make_blueprint
from auditlog.models import AuditEntry
from compliance.tests.console import actor_id_of, console_of, make_member
from delegation.stops.models import KindStop
from delegation.stops.tests.factories import make_crowd, make_stop
from people.checks import Requirement
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

ADD = "admin:stops_kindstop_add"


@pytest.fixture
def officer(tenant: Tenant) -> Client:
    return console_of(make_member(tenant, Role.OFFICER))


def ask(client: Client, tenant: Tenant, **fields: Any) -> Any:
    given = {"tenant": tenant.id, "kind": "model_hash", "value": "bad", "reason": "it leaks", **fields}
    return client.post(reverse(ADD), given)


def errors_of(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer.context_data["adminform"].form.errors
    return found


def test_the_number_is_shown_first_and_must_be_typed(officer: Client, tenant: Tenant) -> None:
    make_crowd(tenant, 3, name="crowd", model_hash="bad")
    make_agent(tenant)

    for typed in ("", "2", "4"):
        answer = ask(officer, tenant, typed=typed)
        assert errors_of(answer)["typed"] == ["3 agents match: crowd, crowd, crowd. Type 3 to stop them."]
    assert not KindStop.objects.exists()
    assert ask(officer, tenant, typed="3").status_code == 302

    stop = KindStop.objects.get()
    assert (stop.state, stop.stopped, stop.started_by) == ("done", 3, actor_id_of("officer"))
    assert Agent.objects.filter(status="suspended", status_reason="it leaks").count() == 3
    entries = AuditEntry.objects.for_tenant(tenant.id).filter(actor_id=actor_id_of("officer"))
    assert entries.filter(event_type="agent.suspended").count() == 3
    assert (
        "3 of 3 stopped"
        in officer.get(reverse("admin:stops_kindstop_change", args=[stop.id])).content.decode()
    )


def test_a_blueprint_is_named_by_its_id(officer: Client, tenant: Tenant) -> None:
    blueprint = make_blueprint(tenant)
    make_crowd(tenant, 2, blueprint_id=blueprint.id)
    make_agent(tenant)
    kind = {"kind": "blueprint_id", "typed": "2"}

    assert "value" in errors_of(ask(officer, tenant, **kind, value="x"))
    assert "value" in errors_of(ask(officer, tenant, **kind, value=make_blueprint(make_tenant()).id))
    assert ask(officer, tenant, **kind, value=blueprint.id).status_code == 302
    assert KindStop.objects.get().stopped == 2


def test_ids_are_those_of_the_tenant(officer: Client, tenant: Tenant) -> None:
    agent, stranger = make_agent(tenant), make_agent(make_tenant())

    for wrong in ("", "x", f"{agent.id} x", str(stranger.id)):
        assert "value" in errors_of(ask(officer, tenant, kind="agent_ids", value=wrong, typed="1"))
    answer = ask(officer, tenant, kind="agent_ids", value=str(agent.id), typed="1", revoke="on")

    assert answer.status_code == 302
    assert KindStop.objects.get().reason_code == "unspecified"


def test_a_session_without_a_second_factor_stops_nothing(
    officer: Client, tenant: Tenant, settings: Any
) -> None:
    make_agent(tenant, model_hash="bad")
    settings.SECOND_FACTOR = Requirement.OPERATORS
    stop = make_stop(tenant, match={"model_hash": "none"})

    ask(officer, tenant, typed="1")
    officer.post(reverse("admin:stops_kindstop_release", args=[stop.id]), {"reason": "fixed"})

    assert KindStop.objects.count() == 1
    assert KindStop.objects.get().state == "done"


def test_an_officer_releases_and_others_only_read(officer: Client, tenant: Tenant) -> None:
    agent = make_agent(tenant)
    stop = make_stop(tenant)
    auditor = console_of(make_member(tenant, Role.AUDITOR))
    page = reverse("admin:stops_kindstop_release", args=[stop.id])

    assert auditor.get(reverse("admin:stops_kindstop_change", args=[stop.id])).status_code == 200
    assert auditor.post(page, {"reason": "fixed"}).status_code == 403
    assert ask(auditor, tenant, kind="all", typed="1").status_code == 403
    officer.post(page, {"reason": "fixed"})

    agent.refresh_from_db()
    assert agent.status == "pending"
    assert KindStop.objects.get().released_by == actor_id_of("officer")
