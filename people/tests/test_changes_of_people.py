"""What operators do to users is audited, field by field; the last operator stays."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.console import actor_id_of, console_of, make_member, make_operator, make_staff
from people.tests.test_identity import about
from tenancy.models import Membership, Role, Tenant
from tenancy.tests.factories import make_tenant

PASSWORD = "correct horse battery"
FORM = {"username": "kim", "is_active": "on", "is_staff": "on"}


@pytest.fixture
def operator() -> Client:
    return console_of(make_operator())


def change(client: Client, user: User, **fields: Any) -> Any:
    form = {name: value for name, value in (FORM | fields).items() if value}
    return client.post(reverse("admin:auth_user_change", args=[user.pk]), form)


@pytest.mark.parametrize(
    ("fields", "action", "metadata"),
    [
        ({"email": "kim@example.org"}, "person.updated", {"changed": ["email"]}),
        ({"is_superuser": "on"}, "person.rights_changed", {"is_superuser": True}),
        ({"is_staff": ""}, "person.rights_changed", {"is_staff": False}),
        ({"is_active": ""}, "person.deactivated", {}),
    ],
)
def test_each_kind_of_change_has_its_entry(
    operator: Client, fields: dict[str, str], action: str, metadata: dict[str, Any]
) -> None:
    user = make_staff("kim")

    change(operator, user, **fields)

    (entry,) = about(user)
    assert (entry.event_type, facts_of(entry)) == (action, metadata)
    assert (entry.actor_id, entry.actor_kind) == (actor_id_of("root"), "person")


def test_reactivation_is_audited_and_saving_without_change_is_not(operator: Client) -> None:
    user = make_staff("kim", is_active=False)

    change(operator, user)
    change(operator, user)

    assert [entry.event_type for entry in about(user)] == ["person.reactivated"]


def test_new_user_and_password_are_audited_without_the_password(operator: Client) -> None:
    form = {"username": "new", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    operator.post(reverse("admin:auth_user_add"), form)
    user = User.objects.get(username="new")
    fields = {"usable_password": "true", "password1": PASSWORD + "!", "password2": PASSWORD + "!"}
    operator.post(reverse("admin:auth_user_password_change", args=[user.pk]), fields | {"set-password": "1"})

    entries = about(user)
    assert [entry.event_type for entry in entries] == ["person.created", "person.password_changed"]
    assert user.password not in str([vars(entry) for entry in entries])
    assert PASSWORD not in str([vars(entry) for entry in entries])


def invite(client: Client, **chosen: Any) -> Any:
    form = {"username": "new", "usable_password": "false", "is_staff": "on"}
    return client.post(reverse("admin:auth_user_add"), form | chosen)


@pytest.mark.parametrize("environment", list(Environment))
def test_invitation_gives_memberships_each_audited_in_its_tenant(environment: Environment) -> None:
    acme, globex = make_tenant("Acme"), make_tenant("Globex")
    make_tenant("Other")

    invite(console_of(make_operator(), environment), officer_of=[acme.id], auditor_of=[globex.id])

    user = User.objects.get(username="new")
    given = dict(Membership.objects.filter(user=user).values_list("tenant_id", "role"))
    assert given == {acme.id: "officer", globex.id: "auditor"}
    assert [entry.event_type for entry in about(user)] == ["person.created"]
    entries = AuditEntry.objects.filter(event_type="membership.changed", actor_id=actor_id_of("root"))
    assert {(entry.tenant_id, facts_of(entry)["role"]) for entry in entries} == {
        (acme.id, "officer"),
        (globex.id, "auditor"),
    }
    seen: Any = console_of(user).get(reverse("admin:tenancy_tenant_changelist"))
    assert {row.pk for row in seen.context_data["cl"].result_list} == {acme.id, globex.id}


@pytest.mark.parametrize(
    "chosen",
    [
        lambda tenant: {"officer_of": [tenant.id], "developer_of": [tenant.id]},
        lambda tenant: {"officer_of": [tenant.id, new_id()]},
        lambda tenant: {"auditor_of": ["no-id"]},
        lambda tenant: {"auditor_of": ["\x00"]},
    ],
    ids=["two roles in a tenant", "no such tenant", "no id", "NUL"],
)
def test_invitation_that_is_refused_makes_nobody(operator: Client, chosen: Callable[[Tenant], Any]) -> None:
    answer = invite(operator, **chosen(make_tenant()))

    assert answer.status_code == 200
    assert answer.context_data["errors"]
    assert not User.objects.filter(username="new").exists()
    assert not Membership.objects.exists()


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("is_own", [True, False])
def test_members_invite_nobody_into_any_tenant(role: Role, is_own: bool) -> None:
    tenant = make_tenant("Acme")
    member = make_member(tenant, role, "ada")
    target = tenant if is_own else make_tenant("Globex")
    client = console_of(member)

    answers = [
        invite(client, officer_of=[target.id]),
        change(client, member, username="ada", officer_of=target.id, is_superuser="on"),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]
    member.refresh_from_db()
    assert not member.is_superuser
    assert not User.objects.filter(username="new").exists()
    assert list(Membership.objects.values_list("user", "tenant_id", "role")) == [(member.pk, tenant.id, role)]


@pytest.mark.parametrize("field", ["is_superuser", "is_active", "is_staff"])
def test_last_operator_stays(operator: Client, field: str) -> None:
    root = User.objects.get(username="root")
    User.objects.exclude(pk=root.pk).update(is_active=False)

    answer = change(operator, root, username="root", **{"is_superuser": "on", field: ""})

    root.refresh_from_db()
    assert answer.status_code == 302
    assert (root.is_superuser, root.is_active, root.is_staff) == (True, True, True)
    assert about(root) == []
