"""Sessions are listed and ended, by their person and by operators; deactivation ends them for good."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.core.clock import now
from compliance.people.doors import sessions
from compliance.people.models import ConsoleSession
from compliance.people.tests.authenticators import make_authenticator
from compliance.tests.console import actor_id_of, console_of, make_operator, make_staff

PASSWORD = "correct horse battery"
ACCOUNT, SESSIONS = reverse("admin:account"), reverse("admin:account_sessions")


@pytest.fixture
def kim() -> User:
    return make_staff("kim", password=PASSWORD)


def browser_of(user: User, agent: str = "Firefox") -> Client:
    client = Client(headers={"user-agent": agent})
    client.post(reverse("admin:login"), {"username": user.username, "password": PASSWORD})
    return client


def is_signed_in(client: Client) -> bool:
    return client.get(ACCOUNT).status_code == 200


def test_person_sees_and_ends_own_sessions(kim: User) -> None:
    here, there, other = browser_of(kim), browser_of(kim, "<b>Phone\u202e"), browser_of(make_other())

    page = here.get(ACCOUNT).content.decode()
    wanted = ConsoleSession.objects.get(browser__contains="Phone").id
    here.post(SESSIONS, {"session": str(wanted)})

    assert "Firefox" in page
    assert "&lt;b&gt;Phone" in page
    assert page.count('name="session"') == 2
    assert (is_signed_in(here), is_signed_in(there), is_signed_in(other)) == (True, False, True)
    entry = AuditEntry.objects.of_type("person.sessions_ended").get()
    assert (entry.actor_id, facts_of(entry)) == (actor_id_of("kim"), {"count": 1})


def make_other() -> User:
    return make_staff("lee", password=PASSWORD)


def test_all_others_are_ended_but_this_one(kim: User) -> None:
    here, there = browser_of(kim), browser_of(kim)

    here.post(SESSIONS, {"session": "others"})

    assert (is_signed_in(here), is_signed_in(there)) == (True, False)


def test_sessions_of_another_cannot_be_ended(kim: User) -> None:
    here, other = browser_of(kim), browser_of(make_other())
    theirs = ConsoleSession.objects.get(person__user__username="lee").id

    for session in (str(theirs), "", "x", "\x00"):
        here.post(SESSIONS, {"session": session})

    assert is_signed_in(other)
    assert not AuditEntry.objects.of_type("person.sessions_ended").exists()


def test_operator_ends_all_of_a_person_with_a_reason(kim: User) -> None:
    client, operator = browser_of(kim), console_of(make_operator())

    page = operator.get(reverse("admin:auth_user_change", args=[kim.pk])).content.decode()
    operator.post(reverse("admin:auth_user_end_sessions", args=[kim.pk]), {"reason": "laptop lost"})

    assert "127.0.0.1, Firefox" in page
    assert not is_signed_in(client)


def test_deactivation_ends_sessions_for_good(kim: User) -> None:
    client, operator = browser_of(kim), console_of(make_operator())
    url = reverse("admin:auth_user_change", args=[kim.pk])

    operator.post(url, {"username": "kim", "is_staff": "on"})
    operator.post(url, {"username": "kim", "is_staff": "on", "is_active": "on"})

    kim.refresh_from_db()
    assert kim.is_active
    assert not is_signed_in(client)


def test_signing_in_and_out_leaves_no_session_behind(kim: User) -> None:
    client: Any = browser_of(kim)
    before = sessions.of(kim, now()).count()

    client.post(reverse("admin:logout"))

    assert (before, sessions.of(kim, now()).count()) == (1, 0)


def make_new_password(client: Client) -> None:
    new = "another long passphrase"
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    client.post(reverse("admin:password_change"), form)


def test_new_password_ends_all_others(kim: User) -> None:
    here, there = browser_of(kim), browser_of(kim, "Phone")

    make_new_password(here)

    kim.refresh_from_db()
    assert (is_signed_in(here), is_signed_in(there)) == (True, False)
    assert [one.browser for one in sessions.of(kim, now())] == ["Firefox"]


def test_session_that_a_password_set_elsewhere_ended_is_not_listed(kim: User) -> None:
    client = browser_of(kim)
    operator = console_of(make_operator())
    kim.set_password("set past the service")
    kim.save()

    page = operator.get(reverse("admin:auth_user_change", args=[kim.pk])).content.decode()

    assert sessions.of(kim, now()).count() == 1
    assert sessions.living(kim, now()) == []
    assert "127.0.0.1, Firefox" not in page
    assert not is_signed_in(client)


def test_operator_who_resets_a_second_factor_ends_the_sessions(kim: User) -> None:
    client = browser_of(kim)
    make_authenticator(kim)

    url = reverse("admin:auth_user_reset_second_factor", args=[kim.pk])
    console_of(make_operator()).post(url, {"reason": "phone lost"})

    assert not is_signed_in(client)
    entry = AuditEntry.objects.of_type("person.sessions_ended").get()
    assert facts_of(entry) == {"count": 1, "reason": "the second factor was removed"}


def test_person_who_removes_the_app_stays_signed_in_here_only(kim: User) -> None:
    here, there = browser_of(kim), browser_of(kim)
    codes = make_authenticator(kim)

    here.post(ACCOUNT, {"do": "remove", "code": codes[0]})

    assert (is_signed_in(here), is_signed_in(there)) == (True, False)
