"""What people do in the console: by role, through the services, audited, and never on the wrong page."""

import re
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent, make_suspended_agent
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import (
    actor_id_of,
    address_in,
    console_of,
    join,
    make_member,
    make_operator,
    make_staff,
)
from tenancy import keys, services
from tenancy.models import ApiKey, Membership, Role, Tenant
from tenancy.tests.factories import ACTOR, make_tenant

BOTH = pytest.mark.parametrize("environment", list(Environment))


def run(client: Client, action: str, row: Any, **data: Any) -> Any:
    return client.post(reverse(f"admin:{action}", args=[row.pk]), data)


def entries(tenant_id: UUID, event_type: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.for_tenant(tenant_id).of_type(event_type))


@BOTH
def test_officer_suspends_an_agent_with_a_reason(acme: Tenant, environment: Environment) -> None:
    client = console_of(make_member(acme, Role.OFFICER), environment)
    with environments.use(environment):
        agent = make_agent(services.get_tenant(tenant_id=acme.id))

        answer = run(client, "agents_agent_suspend", agent, reason="odd transfers")

        agent.refresh_from_db()
        (entry,) = entries(acme.id, "agent.suspended")
    assert answer.url == address_in(environment, "agents_agent_change", agent.pk)
    assert (agent.status, agent.status_reason) == (AgentStatus.SUSPENDED, "odd transfers")
    assert (entry.actor_type, entry.actor_id) == ("user", actor_id_of("officer"))
    assert entry.metadata is not None
    assert entry.metadata["reason"] == "odd transfers"


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501, "nul \x00"])
def test_an_action_needs_a_proper_reason(acme: Tenant, reason: str) -> None:
    agent = make_agent(acme)

    answer = run(console_of(make_operator()), "agents_agent_suspend", agent, reason=reason)

    agent.refresh_from_db()
    assert answer.status_code == 200
    assert agent.status == AgentStatus.PENDING


def test_asking_for_an_action_changes_nothing(acme: Tenant) -> None:
    agent = make_agent(acme)
    client = console_of(make_operator())

    answer = client.get(reverse("admin:agents_agent_suspend", args=[agent.pk]), {"reason": "by GET"})

    agent.refresh_from_db()
    assert answer.status_code == 200
    assert agent.status == AgentStatus.PENDING


def test_what_the_service_refuses_is_told(acme: Tenant) -> None:
    agent = make_suspended_agent(acme)
    client = console_of(make_operator())

    run(client, "agents_agent_suspend", agent, reason="again")

    page = client.get(reverse("admin:agents_agent_change", args=[agent.pk]))
    assert "Agent is already suspended" in page.content.decode()


def test_a_role_counts_in_its_own_tenant_only(acme: Tenant) -> None:
    rival = make_tenant("Rival")
    user = make_member(acme, Role.OFFICER)
    join(user, rival, Role.AUDITOR)
    agent = make_agent(rival)

    answer = run(console_of(user), "agents_agent_suspend", agent, reason="officer elsewhere")

    assert answer.status_code == 403
    assert Agent.objects.get(id=agent.id).status == AgentStatus.PENDING


@pytest.mark.parametrize(
    "action", ["agents_agent_change", "tenancy_apikey_change", "auditlog_auditentry_change"]
)
def test_no_row_is_edited_or_deleted_by_hand(acme: Tenant, action: str) -> None:
    rows = {
        "agents_agent_change": make_agent(acme),
        "tenancy_apikey_change": services.create_key(tenant=acme, actor=ACTOR, now=now()).row,
        "auditlog_auditentry_change": AuditEntry.objects.for_tenant(acme.id).first(),
    }
    client = console_of(make_operator())

    changed = run(client, action, rows[action], name="changed")
    deleted = run(client, action.replace("_change", "_delete"), rows[action], post="yes")

    assert (changed.status_code, deleted.status_code) == (403, 403)


# --- Keys ------------------------------------------------------------------------------------------


@BOTH
def test_operator_makes_a_key(acme: Tenant, environment: Environment) -> None:
    client = console_of(make_operator(), environment)
    form = {"tenant": acme.id, "name": "ci", "scopes": ["agents:read"]}

    page = client.post(reverse("admin:tenancy_apikey_add"), form)

    secret = page.context["secret"]
    with environments.use(environment):
        row = ApiKey.objects.get(name="ci")
        assert services.authenticate(secret=secret, now=now()) == row
        (entry,) = entries(acme.id, "api_key.created")
    assert secret.startswith(keys.prefix_of(environment))
    assert (row.scopes, entry.actor_id) == (["agents:read"], actor_id_of("root"))


def test_operator_rolls_and_revokes_a_key(acme: Tenant) -> None:
    old = services.create_key(tenant=acme, name="ci", actor=ACTOR, now=now())
    client = console_of(make_operator())

    page = run(client, "tenancy_apikey_roll", old.row, overlap_hours=1)
    run(client, "tenancy_apikey_revoke", old.row, reason="Left in a log")

    old.row.refresh_from_db()
    successor = services.authenticate(secret=page.context["secret"], now=now())
    assert old.row.successor == successor
    assert old.row.revoked_at is not None
    assert len(entries(acme.id, "api_key.rolled")) == 1
    (revoked,) = entries(acme.id, "api_key.revoked")
    assert (revoked.metadata or {})["reason"] == "Left in a log"


@pytest.mark.parametrize(
    ("chosen", "granted"),
    [
        ({"preset": "Integration: webhooks"}, ["webhooks:read", "webhooks:write"]),
        ({"preset": "Integration: webhooks", "scopes": ["webhooks:read"]}, ["webhooks:read"]),
        ({"scopes": ["audit:read"]}, ["audit:read"]),
        ({}, None),
    ],
)
def test_scopes_of_a_new_key_are_ticked_or_a_presets(
    acme: Tenant, chosen: dict[str, Any], granted: list[str] | None
) -> None:
    client, address = console_of(make_operator()), reverse("admin:tenancy_apikey_add")

    empty = client.get(address).content.decode()
    client.post(address, {"tenant": acme.pk, "name": "gateway", **chosen})

    made = ApiKey.objects.filter(tenant=acme).first()
    assert (made.scopes if made else None) == granted
    assert re.search(r'name="scopes" value="audit:read"', empty)
    assert not re.search(r"\schecked(=|>|\s)", empty)


@pytest.mark.parametrize("role", list(Role))
def test_members_make_no_keys(acme: Tenant, role: Role) -> None:
    key = services.create_key(tenant=acme, name="ci", actor=ACTOR, now=now()).row
    client = console_of(make_member(acme, role))

    answers = [
        client.post(reverse("admin:tenancy_apikey_add"), {}),
        run(client, "tenancy_apikey_roll", key, overlap_hours=1),
        run(client, "tenancy_apikey_revoke", key, reason="Left in a log"),
    ]

    key.refresh_from_db()
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert key.revoked_at is None


@pytest.mark.parametrize("query", ["digest__startswith=", "digest="])
def test_a_keys_digest_cannot_be_guessed_by_filters(acme: Tenant, query: str) -> None:
    key = services.create_key(tenant=acme, name="ci", actor=ACTOR, now=now()).row
    client = console_of(make_member(acme, Role.DEVELOPER))

    answer = client.get(reverse("admin:tenancy_apikey_changelist") + f"?{query}{key.digest[:3]}")

    assert str(key.pk) not in answer.content.decode()
    assert answer.status_code in (302, 400)


# --- Tenants and memberships -----------------------------------------------------------------------


@BOTH
def test_operator_makes_a_tenant_in_both_environments(environment: Environment) -> None:
    client = console_of(make_operator(), environment)

    client.post(reverse("admin:tenancy_tenant_add"), {"name": "New tenant"})

    tenant = Tenant.objects.get(name="New tenant")
    with environments.use(Environment.TEST):
        assert Tenant.objects.get(name="New tenant").id == tenant.id
    assert entries(tenant.id, "tenant.created")[0].actor_id == actor_id_of("root")


@BOTH
def test_operator_grants_changes_and_withdraws_a_membership(acme: Tenant, environment: Environment) -> None:
    ada = make_staff("ada")
    client = console_of(make_operator(), environment)

    client.post(
        reverse("admin:tenancy_membership_add"), {"user": ada.pk, "tenant": acme.id, "role": "auditor"}
    )
    membership = Membership.objects.get(user=ada, tenant_id=acme.id)
    run(client, "tenancy_membership_change", membership, role="officer")
    changed = Membership.objects.get(user=ada, tenant_id=acme.id)
    run(client, "tenancy_membership_delete", membership, post="yes")

    assert (membership.role, changed.role) == (Role.AUDITOR, Role.OFFICER)
    assert not Membership.objects.filter(user=ada).exists()
    said = [(entry.metadata or {})["role"] for entry in entries(acme.id, "membership.changed")]
    assert said == [None, "officer", "auditor"]


def test_a_withdrawn_member_sees_nothing_on_the_next_request(acme: Tenant) -> None:
    user = make_member(acme, Role.OFFICER)
    client = console_of(user)
    page = reverse("admin:agents_agent_changelist")
    before = client.get(page).status_code

    Membership.objects.filter(user=user).delete()

    assert (before, client.get(page).status_code) == (200, 403)
