"""What operators do to users is audited, field by field; the last operator stays."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.tests.factories import facts_of
from compliance.people.tests.test_identity import about
from compliance.tests.console import actor_id_of, console_of, make_operator, make_staff

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


@pytest.mark.parametrize("field", ["is_superuser", "is_active", "is_staff"])
def test_last_operator_stays(operator: Client, field: str) -> None:
    root = User.objects.get(username="root")
    User.objects.exclude(pk=root.pk).update(is_active=False)

    answer = change(operator, root, username="root", **{"is_superuser": "on", field: ""})

    root.refresh_from_db()
    assert answer.status_code == 302
    assert (root.is_superuser, root.is_active, root.is_staff) == (True, True, True)
    assert about(root) == []
