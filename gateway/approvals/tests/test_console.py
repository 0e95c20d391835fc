"""Approvals in the console: what waits, what officers decide in place, and what others only read."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from certificates.tests.factories import make_past_end
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import actor_id_of, console_of, make_member, make_operator
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import HOUR, decide, make_approval
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

PAGE = "admin:approvals_approval_changelist"


@pytest.fixture
def officer(tenant: Tenant) -> Client:
    return console_of(make_member(tenant, Role.OFFICER))


def shown(client: Client, **query: Any) -> Any:
    return client.get(reverse(PAGE), query).context


def act(client: Client, approval: Approval, act: str, **data: Any) -> Any:
    return client.post(reverse(PAGE), {"act": act, "approval": approval.id, **data}, follow=True)


def status(approval: Approval) -> str:
    return Approval.objects.get(id=approval.id).status


def test_what_expires_first_is_shown_first(officer: Client, agent: Agent) -> None:
    later, sooner = make_approval(agent), make_approval(agent, details={}, ttl_seconds=60)

    page = shown(officer)

    assert [row["id"] for row in page["waiting"]] == [sooner.id, later.id]
    assert page["it"]["id"] == sooner.id
    assert page["links"] == {"next": f"{reverse(PAGE)}?approval={later.id}"}
    assert shown(officer, approval=later.id)["it"]["id"] == later.id


def test_a_certificate_past_its_end_is_shown_as_expired(officer: Client, agent: Agent) -> None:
    make_approval(agent)
    make_past_end(agent.certificates.get())

    assert "expired" in shown(officer)["it"]["certificate"]


@pytest.mark.parametrize(("verdict", "outcome"), [("approve", "approved"), ("deny", "denied")])
def test_an_officer_decides(officer: Client, agent: Agent, verdict: str, outcome: str) -> None:
    approval = make_approval(agent)

    answer = act(officer, approval, verdict, note="Agreed")

    row = Approval.objects.get(id=approval.id)
    assert (row.status, row.note, row.decided_by) == (outcome, "Agreed", actor_id_of("officer"))
    assert f"{outcome.capitalize()}: bot: pay." in answer.content.decode()
    assert [row["id"] for row in answer.context["ended"]] == [approval.id]


def test_a_second_decision_is_refused_with_its_reason(officer: Client, agent: Agent) -> None:
    approval = make_approval(agent)
    decide(approval, approved=False)

    answer = act(officer, approval, "approve")

    assert "Nothing was decided: The approval is decided already." in answer.content.decode()
    assert status(approval) == "denied"


def test_a_session_without_a_second_factor_decides_nothing(
    officer: Client, agent: Agent, settings: Any
) -> None:
    approval = make_approval(agent)
    settings.SECOND_FACTOR = "operators"

    answer = act(officer, approval, "approve")

    assert "sign in with a second factor" in answer.content.decode()
    assert 'value="approve"' not in answer.content.decode()
    assert status(approval) == "pending"


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.DEVELOPER])
def test_others_of_the_tenant_only_read(tenant: Tenant, agent: Agent, role: Role) -> None:
    approval, reader = make_approval(agent), console_of(make_member(tenant, role))

    assert shown(reader)["it"]["id"] == approval.id
    assert not shown(reader)["it"]["may_decide"]
    assert act(reader, approval, "approve").status_code == 403
    assert status(approval) == "pending"


def test_another_tenants_officer_and_the_other_environment_see_nothing(tenant: Tenant, agent: Agent) -> None:
    approval = make_approval(agent)
    foreign = console_of(make_member(make_tenant("Other"), Role.OFFICER))
    sandbox = console_of(make_operator(), Environment.TEST)

    for client in (foreign, sandbox):
        assert shown(client, approval=approval.id)["it"] is None
        assert "does not exist here" in act(client, approval, "approve").content.decode()
    assert status(approval) == "pending"


@pytest.mark.parametrize("given", [{"act": "dance"}, {"act": ""}, {"approval": "x"}, {"note": "x" * 1001}])
def test_a_malformed_form_decides_nothing(officer: Client, agent: Agent, given: dict[str, str]) -> None:
    approval = make_approval(agent)

    answer = officer.post(
        reverse(PAGE), {"act": "approve", "approval": str(approval.id), **given}, follow=True
    )

    assert "Nothing was decided" in answer.content.decode()
    assert status(approval) == "pending"


def test_a_row_of_its_own_shows_all_but_the_receipt(officer: Client, agent: Agent) -> None:
    approved = decide(make_approval(agent), note="Agreed with the supplier")

    text = officer.get(reverse("admin:approvals_approval_change", args=[approved.id])).content.decode()

    assert "Agreed with the supplier" in text
    assert approved.action_hash in text
    assert (approved.receipt or "?") not in text


def test_the_navigation_counts_what_waits(officer: Client, agent: Agent) -> None:
    make_approval(agent)
    make_approval(agent, details={}, now=now() - 2 * HOUR)

    groups = officer.get(reverse(PAGE)).context["sidebar_navigation"]

    (line,) = [item for group in groups for item in group["items"] if item["title"] == "Approvals"]
    assert line["badge"] == 1


def test_details_are_shown_as_they_are_and_never_as_markup(officer: Client, agent: Agent) -> None:
    make_approval(agent, details={"to": "<script>alert(1)</script>", "hidden": "a\u202eb"})

    text = officer.get(reverse(PAGE)).content.decode()

    assert "<script>alert(1)" not in text
    assert "\u202e" not in text


def test_nothing_of_an_act_is_left_out(officer: Client, agent: Agent) -> None:
    make_approval(agent, details={"a": "x" * 60_000, "z": "the payee"})

    assert "the payee" in officer.get(reverse(PAGE)).content.decode()
