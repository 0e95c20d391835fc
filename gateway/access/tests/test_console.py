"""Approval policies in the console: what officers do, and that nobody else does it."""

from typing import Any

import pytest
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.tests.console import actor_id_of, console_of, make_member
from gateway.access.tests.factories import make_policy
from gateway.models import AskPolicy
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

AS_TYPED = {"ask_from": "medium", "always_ask": "pay\n read \n", "ttl_seconds": "120"}
ADD = "admin:gateway_askpolicy_add"


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def add(role: Role, tenant: Tenant, **fields: Any) -> Any:
    form = {"tenant": tenant.pk, "applies_to": "tenant", **AS_TYPED, **fields}
    return console_of(make_member(tenant, role)).post(reverse(ADD), form, follow=True)


def change(role: Role, policy: AskPolicy, **fields: Any) -> Any:
    url = reverse("admin:gateway_askpolicy_change", args=[policy.pk])
    return console_of(make_member(policy.tenant, role)).post(url, {**AS_TYPED, **fields}, follow=True)


def stored(policy: AskPolicy) -> tuple[str, list[str], int]:
    found = AskPolicy.objects.get(pk=policy.pk)
    return found.ask_from, found.always_ask, found.ttl_seconds


def test_officer_adds_a_policy_of_the_tenant(acme: Tenant) -> None:
    add(Role.OFFICER, acme)

    policy = AskPolicy.objects.get(tenant=acme)
    assert policy.applies_to == "tenant"
    assert stored(policy) == ("medium", ["pay", "read"], 120)
    (entry,) = AuditEntry.objects.for_tenant(acme.id).of_type("ask_policy.set")
    assert entry.actor_id == actor_id_of("officer")


def test_officer_adds_a_policy_of_an_agent(acme: Tenant) -> None:
    agent = make_permitted_agent(acme)

    add(Role.OFFICER, acme, applies_to=f"agent:{agent.id}")

    assert AskPolicy.objects.get(tenant=acme).agent_id == agent.id


def test_officer_edits_and_removes_a_policy(acme: Tenant) -> None:
    policy = make_policy(acme, always_ask=["a", "b"])

    page = console_of(make_member(acme, Role.OFFICER, "reader")).get(
        reverse("admin:gateway_askpolicy_change", args=[policy.pk])
    )
    change(Role.OFFICER, policy)

    assert "a\nb" in page.content.decode()
    assert stored(policy) == ("medium", ["pay", "read"], 120)
    remove = reverse("admin:gateway_askpolicy_remove", args=[policy.pk])
    console_of(make_member(acme, Role.OFFICER, "second")).post(remove)
    assert not AskPolicy.objects.exists()


def test_session_without_a_second_factor_changes_no_policy(acme: Tenant, settings: Any) -> None:
    policy = make_policy(acme, always_ask=["pay"])
    of_agent = {"tenant": acme.pk, "applies_to": f"agent:{make_permitted_agent(acme).id}", **AS_TYPED}
    officer = console_of(make_member(acme, Role.OFFICER))
    change_url, remove_url = (
        reverse(f"admin:gateway_askpolicy_{name}", args=[policy.pk]) for name in ("change", "remove")
    )
    settings.SECOND_FACTOR = "operators"

    sent = [(change_url, AS_TYPED), (reverse(ADD), of_agent), (remove_url, {})]
    answers = [officer.post(url, form, follow=True) for url, form in sent]

    assert all("sign in with a second factor" in answer.content.decode() for answer in answers)
    assert stored(policy) == ("never", ["pay"], 900)
    assert AskPolicy.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"applies_to": "everyone"}, "Approval policy not found"),
        ({"applies_to": "agent:01a0b2c4-7b1e-7c31-8d55-0d2f5a1c9e77"}, "Agent not found"),
        ({"ask_from": "low"}, "not one of the available choices"),
        ({"ttl_seconds": "5"}, "greater than or equal to 60"),
        ({"always_ask": "x" * 257}, "no more than 256"),
    ],
)
def test_rules_of_policies_hold_in_the_console(acme: Tenant, fields: dict[str, Any], told: str) -> None:
    page = add(Role.OFFICER, acme, **fields)

    assert told in page.content.decode()
    assert not AskPolicy.objects.exists()


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.AUDITOR])
def test_only_officers_add_edit_and_remove(acme: Tenant, role: Role) -> None:
    policy = make_policy(acme)
    client = console_of(make_member(acme, role))

    answers = [
        client.post(reverse(ADD), {"tenant": acme.pk, "applies_to": "tenant", **AS_TYPED}),
        client.post(reverse("admin:gateway_askpolicy_change", args=[policy.pk]), AS_TYPED),
        client.post(reverse("admin:gateway_askpolicy_remove", args=[policy.pk])),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert stored(policy) == ("never", [], 900)
