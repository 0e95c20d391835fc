"""Signing in and out is audited; failures are too, and cannot flood the log."""

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from auditlog.vocabulary import SERVICE_TENANT_ID
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import actor_id_of, make_staff
from people.models import Person

PASSWORD = "correct horse battery"


def sign_in(client: Client, username: str, password: str, **headers: Any) -> Any:
    form = {"login": username, "password": password}
    return client.post(reverse("account_login"), form, **headers)


def entries(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.of_type(action).filter(tenant_id=SERVICE_TENANT_ID).order_by("id"))


def failures() -> list[dict[str, Any]]:
    return [facts_of(entry) for entry in entries("person.sign_in_failed")]


def test_sign_in_and_out_are_audited(kim: User, client: Client) -> None:
    answer = sign_in(client, "kim", PASSWORD)
    client.post(reverse("account_logout"))

    (first,), (last,) = entries("person.signed_in"), entries("person.signed_out")
    assert answer.status_code == 302
    assert {first.actor_id, last.actor_id} == {actor_id_of("kim")}
    assert facts_of(first) == {"address": "127.0.0.1", "second_factor": None}


@pytest.mark.parametrize(
    ("username", "fields"), [("kim", {}), ("kim", {"is_active": False}), ("kim", {"is_staff": False})]
)
def test_failure_names_the_account_and_address(username: str, fields: dict[str, Any]) -> None:
    user = make_staff("kim")
    User.objects.filter(pk=user.pk).update(**fields)

    sign_in(Client(), username, "guessed horse")

    (entry,) = entries("person.sign_in_failed")
    assert (entry.actor_id, entry.actor_type) == ("console", "system")
    assert entry.affected_id == str(Person.objects.get(user=user).id)
    assert facts_of(entry) == {"account": "kim", "address": "127.0.0.1"}
    assert "guessed" not in str(vars(entry))


@pytest.mark.parametrize("account", ["x" * 5000, "nul\x00", "\ud800", "\u202eevil", ""])
def test_hostile_accounts_are_bounded(account: str) -> None:
    answer = Client().post(
        reverse("account_login"),
        b"password=guess&login=" + account.encode("utf-8", "surrogatepass"),
        content_type="application/x-www-form-urlencoded",
    )

    assert answer.status_code == 200
    assert all(found["account"] is None for found in failures())


def test_password_typed_as_the_name_is_kept_nowhere(kim: User) -> None:
    sign_in(Client(), PASSWORD, "x")

    (entry,) = entries("person.sign_in_failed")
    assert PASSWORD not in str(vars(entry))
    assert entry.affected_id is None


def test_flood_of_guessed_names_neither_fills_the_log_nor_hides_an_account(
    kim: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.RATE_LIMITS, "sign_in_entries", 2)
    for number in range(4):
        sign_in(Client(), f"guess{number}", "x", REMOTE_ADDR=f"10.0.0.{number}")
    sign_in(Client(), "kim", "x", REMOTE_ADDR="10.0.1.1")

    assert failures() == [
        {"account": None, "address": "10.0.0.0"},
        {"account": None, "address": "10.0.0.1", "more_not_recorded": True},
        {"account": "kim", "address": "10.0.1.1"},
    ]


def test_entries_of_people_are_live_whatever_the_session_sees(kim: User, client: Client) -> None:
    sign_in(client, "kim", PASSWORD)

    with environments.use(Environment.TEST):
        assert entries("person.signed_in") == []
