"""Sessions are listed and ended, by their person and by operators; deactivation ends them for good."""

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.tests.console import actor_id_of, console_of, make_operator, make_staff
from people.tests.authenticators import make_authenticator

PASSWORD = "correct horse battery"
ACCOUNT, SESSIONS = reverse("mfa_index"), reverse("usersessions_list")


def browser_of(user: User, agent: str = "Firefox") -> Client:
    client = Client(headers={"user-agent": agent})
    client.post(reverse("account_login"), {"login": user.username, "password": PASSWORD})
    return client


def is_signed_in(client: Client) -> bool:
    return client.get(ACCOUNT).status_code == 200


def test_person_sees_own_sessions_and_ends_all_but_this_one(kim: User) -> None:
    other = browser_of(make_staff("lee", password=PASSWORD), "Opera")
    here, there = browser_of(kim), browser_of(kim, "<b>Phone\u202e")

    page = here.get(SESSIONS).content.decode()
    here.post(SESSIONS)

    assert "Firefox" in page
    assert "&lt;b&gt;Phone" in page
    assert "Opera" not in page
    assert (is_signed_in(here), is_signed_in(there), is_signed_in(other)) == (True, False, True)
    entry = AuditEntry.objects.of_type("person.sessions_ended").get()
    assert (entry.actor_id, facts_of(entry)) == (actor_id_of("kim"), {"count": 1})


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
    client = browser_of(kim)
    before = len(UserSession.objects.purge_and_list(kim))

    client.post(reverse("account_logout"))

    assert (before, UserSession.objects.purge_and_list(kim)) == (1, [])


def test_new_password_ends_all_others(kim: User) -> None:
    here, there = browser_of(kim), browser_of(kim, "Phone")

    new = "another long passphrase"
    here.post(
        reverse("account_change_password"), {"oldpassword": PASSWORD, "password1": new, "password2": new}
    )

    kim.refresh_from_db()
    assert (is_signed_in(here), is_signed_in(there)) == (True, False)
    assert [one.user_agent for one in UserSession.objects.purge_and_list(kim)] == ["Firefox"]


def test_session_that_a_password_set_elsewhere_ended_is_not_listed(kim: User) -> None:
    client = browser_of(kim)
    operator = console_of(make_operator())
    kim.set_password("set past the service")
    kim.save()

    page = operator.get(reverse("admin:auth_user_change", args=[kim.pk])).content.decode()

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
