"""*Your account* is no place to guess at: wrong passwords and codes count, and are audited."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.people.models import Door
from compliance.people.tests.authenticators import make_authenticator
from compliance.tests.console import actor_id_of, console_of, make_staff

PASSWORD, NEW = "correct horse battery", "another long passphrase"
ACCOUNT, CHANGE = reverse("admin:account"), reverse("admin:password_change")


@pytest.fixture
def kim() -> User:
    return make_staff("kim", password=PASSWORD)


def change(client: Client, old: str) -> Any:
    return client.post(CHANGE, {"old_password": old, "new_password1": NEW, "new_password2": NEW})


def checks() -> list[dict[str, Any]]:
    found = AuditEntry.objects.of_type("person.check_failed").order_by("id")
    assert {entry.actor_id for entry in found} <= {actor_id_of("kim")}
    assert all(entry.affected_id == str(User.objects.get(username="kim").person.id) for entry in found)
    return [facts_of(entry) for entry in found]


def test_wrong_current_password_is_audited_and_counted(kim: User) -> None:
    answer = change(console_of(kim), "guessed horse")

    assert answer.status_code == 200
    assert checks() == [{"proof": "password", "address": "127.0.0.1"}]
    assert "guessed" not in str(list(AuditEntry.objects.values()))
    assert Door.objects.get().failures == 1


def test_new_password_that_is_refused_is_no_guess(kim: User) -> None:
    form = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": "other"}

    console_of(kim).post(CHANGE, form)

    assert (checks(), Door.objects.count()) == ([], 0)


def test_current_password_cannot_be_guessed_on_and_on(kim: User) -> None:
    client = console_of(kim)
    for _ in range(5):
        change(client, "wrong")

    change(client, PASSWORD)

    kim.refresh_from_db()
    assert kim.check_password(PASSWORD)
    assert checks()[-1] == {"proof": "password", "address": "127.0.0.1", "locked_out": True}
    assert "Too many wrong passwords" in client.get(CHANGE).content.decode()


def test_right_password_forgets_the_wrong_ones(kim: User) -> None:
    client = console_of(kim)
    change(client, "wrong")

    change(client, PASSWORD)

    assert not Door.objects.exists()


def test_wrong_codes_are_audited_and_close_the_account(kim: User) -> None:
    codes = make_authenticator(kim)
    client = console_of(kim)
    for _ in range(5):
        client.post(ACCOUNT, {"do": "remove", "code": "nope"})

    answer = client.post(ACCOUNT, {"do": "remove", "code": codes[0]})

    assert "Too many wrong passwords or codes" in answer.content.decode()
    assert [found["proof"] for found in checks()] == ["code"] * 6
    assert checks()[-1]["locked_out"] is True
    assert hasattr(User.objects.get(pk=kim.pk).person, "authenticator")
