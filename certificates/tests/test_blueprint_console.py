"""Blueprints in the console: added, changed, the agents that differ, and renewing picked ones."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent, Blueprint, BlueprintRenewal
from agents.tests.factories import make_agent, make_blueprint
from auditlog.models import AuditEntry
from certificates.renewing import services
from compliance.core.clock import now
from compliance.tests.console import actor_id_of, console_of, make_member
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

ADD, CHANGE, RENEW = (f"admin:agents_blueprint_{page}" for page in ("add", "change", "renew"))
TYPED: dict[str, Any] = {
    "name": "Traders",
    "model_hash": "sha256:cd",
    "permitted_actions": '["read", "pay"]',
    "owner_name": "Kim",
    "owner_email": "kim@example.com",
    "validity_days": "30",
    "ask_policy": '{"ask_from": "high"}',
}


@pytest.fixture
def officer(tenant: Tenant) -> Client:
    return console_of(make_member(tenant, Role.OFFICER))


def make_follower(blueprint: Blueprint, name: str) -> Agent:
    return make_agent(blueprint.tenant, name=name, blueprint_id=blueprint.id, model_hash="")


def test_an_officer_adds_and_changes_a_blueprint(officer: Client, tenant: Tenant) -> None:
    assert officer.post(reverse(ADD), {"tenant": tenant.pk, **TYPED}).status_code == 302

    made = Blueprint.objects.get()
    assert (made.name, made.permitted_actions, made.owner_email) == (
        "Traders",
        ["read", "pay"],
        "kim@example.com",
    )
    assert made.ask_policy == {"ask_from": "high", "always_ask": [], "ttl_seconds": 900}
    page = reverse(CHANGE, args=[made.id])
    make_follower(made, "follower")
    answer = officer.post(page, {**TYPED, "permitted_actions": '["read"]'}, follow=True)
    assert "1 agents differ now" in answer.content.decode()
    made.refresh_from_db()
    assert (made.permitted_actions, made.validity_days, made.model) == (["read"], 30, None)
    for action in ("blueprint.created", "blueprint.updated"):
        (entry,) = AuditEntry.objects.about(made.id).of_type(action)
        assert entry.actor_id == actor_id_of("officer")


def test_session_without_a_second_factor_changes_no_ask_policy(
    officer: Client, tenant: Tenant, settings: Any
) -> None:
    made = make_blueprint(tenant, ask_policy={"ask_from": "high", "always_ask": [], "ttl_seconds": 900})
    page, settings.SECOND_FACTOR = reverse(CHANGE, args=[made.id]), "operators"

    refused = [
        officer.post(reverse(ADD), {"tenant": tenant.pk, **TYPED}, follow=True),
        officer.post(page, {**TYPED, "ask_policy": ""}, follow=True),
    ]
    officer.post(page, {**TYPED, "ask_policy": '{"ask_from": "high"}'})

    assert all("sign in with a second factor" in answer.content.decode() for answer in refused)
    made = Blueprint.objects.get()
    assert (made.name, (made.ask_policy or {})["ask_from"]) == ("Traders", "high")


@pytest.mark.parametrize("stated", [None, [], ["read\nall", "pay"]])
def test_permitted_actions_that_nobody_edits_stay(officer: Client, tenant: Tenant, stated: Any) -> None:
    made = make_blueprint(tenant, permitted_actions=stated)
    form: Any = officer.get(reverse(CHANGE, args=[made.id]))
    sent = form.context_data["adminform"].form["permitted_actions"].value()

    officer.post(reverse(CHANGE, args=[made.id]), {"name": "other", "permitted_actions": sent})

    made.refresh_from_db()
    assert (made.name, made.permitted_actions) == ("other", stated)


@pytest.mark.parametrize(
    "wrong",
    [
        {"validity_days": "366"},
        {"owner_name": ""},
        {"ask_policy": '{"ask_from": "low"}'},
        {"financial_scope": "{}"},
        {"financial_scope": "x"},
        {"alarm_budget": "1"},
        {"validity_days": "\u0663\u0660"},
        {"alarm_budget": "0.\u0660\u0665"},
    ],
)
def test_what_the_api_refuses_the_form_refuses(officer: Client, tenant: Tenant, wrong: Any) -> None:
    answer: Any = officer.post(reverse(ADD), {"tenant": tenant.pk, **TYPED, **wrong})

    assert answer.context_data["adminform"].form.errors
    assert not Blueprint.objects.exists()


def test_picked_agents_are_renewed_with_progress(officer: Client, tenant: Tenant) -> None:
    blueprint = make_blueprint(tenant, permitted_actions=["read"])
    picked, other = make_follower(blueprint, "picked"), make_follower(blueprint, "other")
    Blueprint.objects.update(permitted_actions=["pay"])
    page = reverse(RENEW, args=[blueprint.id])

    form = officer.get(page).content.decode()
    assert "picked: permitted actions" in form
    assert officer.post(page, {}).status_code == 200
    progress = officer.post(page, {"agents": [str(picked.id)]}, follow=True).content.decode()
    assert "running" in progress
    renewal = BlueprintRenewal.objects.get()
    while services.RENEWALS.advance(job_id=renewal.id, now=now()):
        pass

    shown = officer.get(reverse(CHANGE, args=[blueprint.id])).content.decode()
    assert "<dt>updated</dt><dd>1</dd>" in shown
    assert [Agent.objects.get(id=one.id).permitted_actions for one in (picked, other)] == [["pay"], ["read"]]
    assert renewal.started_by == actor_id_of("officer")


def test_others_only_read(tenant: Tenant) -> None:
    blueprint = make_blueprint(tenant)
    page = reverse(CHANGE, args=[blueprint.id])

    for role in (Role.AUDITOR, Role.DEVELOPER):
        client = console_of(make_member(tenant, role))
        assert client.get(page).status_code == 200
        for address in (page, reverse(ADD), reverse(RENEW, args=[blueprint.id])):
            assert client.post(address, {"name": "other", "agents": ["all"]}).status_code == 403
    stranger = console_of(make_member(make_tenant(), Role.OFFICER, "stranger"))
    stranger.post(page, {"name": "other"})
    blueprint.refresh_from_db()
    assert blueprint.name == "kind"
