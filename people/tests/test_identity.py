"""A person's id is made with the user and stays: through renames, deactivation and attempts to delete."""

from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, connections
from django.db.models import ProtectedError
from django.urls import reverse

from auditlog.actors.names import names_of
from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.core import environments
from compliance.tests.console import actor_id_of, console_of, make_member, make_operator, make_staff
from people.models import Person
from tenancy.models import Role
from tenancy.tests.factories import make_tenant


def about(user: User) -> list[AuditEntry]:
    return list(AuditEntry.objects.about(Person.objects.get(user=user).id).order_by("id"))


def test_database_makes_a_person_with_each_user() -> None:
    by_sql, by_bulk = (
        "INSERT INTO auth_user",
        User.objects.bulk_create([User(username="a"), User(username="b")]),
    )
    with connections["default"].cursor() as cursor:
        cursor.execute(
            f"{by_sql} (username, password, is_superuser, first_name, last_name, email, is_staff, is_active,"
            " date_joined) VALUES ('c', '', false, '', '', '', false, true, now())"
        )

    assert len(by_bulk) == 2
    assert Person.objects.filter(user__username__in="abc").count() == 3


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM auth_user",
        "UPDATE auth_user SET id = id + 1000000",
        "TRUNCATE auth_user CASCADE",
        "DELETE FROM people_person",
        "UPDATE people_person SET id = gen_random_uuid()",
        "TRUNCATE people_person CASCADE",
    ],
)
def test_not_even_the_owner_deletes_or_changes_identities(owned: None, statement: str) -> None:
    make_staff()

    with connections["default"].cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="never deleted"):
            cursor.execute(statement)


def test_service_adds_no_person_by_itself() -> None:
    with pytest.raises(DatabaseError, match="permission denied"), environments.atomic():
        Person.objects.create(id=UUID(int=1), user=make_staff(), created_at="2026-01-01T00:00Z")


def test_users_cannot_be_deleted_by_code_or_console() -> None:
    user, client = make_staff(), console_of(make_operator())

    with pytest.raises(ProtectedError):
        user.delete()
    answer = client.post(reverse("admin:auth_user_delete", args=[user.pk]), {"post": "yes"})
    client.post(
        reverse("admin:auth_user_changelist"),
        {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"},
    )

    assert answer.status_code == 403
    assert User.objects.filter(pk=user.pk).exists()


def test_renamed_person_keeps_the_id_and_shows_the_present_name() -> None:
    tenant = make_tenant("Acme")
    user = make_member(tenant, Role.OFFICER, "before")
    operator = console_of(make_operator())
    operator.post(reverse("admin:auth_user_change", args=[user.pk]), {"username": "after", "is_active": "on"})

    actor = actor_id_of("after")
    (entry, _) = about(user)
    page = operator.get(reverse("admin:auditlog_auditentry_changelist"), {"actor_id": actor_id_of("root")})

    assert names_of([actor, "console:before", "person:nonsense"]) == {actor: "after"}
    assert facts_of(entry) == {"changed": ["username"], "username_before": "before"}
    assert "root <code" in page.content.decode()


def test_page_of_a_user_opens_by_the_person() -> None:
    user = make_staff("kim")

    page = console_of(make_operator()).get(
        reverse("admin:auth_user_change", args=[Person.objects.get(user=user).id])
    )

    assert actor_id_of("kim") in page.content.decode()


def test_commands_that_make_users_are_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("createsuperuser", username="boss", email="", interactive=False, verbosity=0)
    monkeypatch.setattr("getpass.getpass", lambda prompt="": "correct horse battery")
    call_command("changepassword", "boss", verbosity=0)

    entries = about(User.objects.get(username="boss"))
    assert [(entry.event_type, entry.actor_id) for entry in entries] == [
        ("person.created", "createsuperuser"),
        ("person.password_changed", "changepassword"),
    ]
    assert "horse" not in str([entry.metadata for entry in entries])
