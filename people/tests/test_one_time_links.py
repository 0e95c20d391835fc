"""One-time links: an operator makes them, they set a password once, and tell nobody else anything."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.tests.console import actor_id_of, console_of, make_operator, make_staff
from people.doors import links
from people.doors.links import LinkIsOver
from people.models import OneTimeLink
from people.tests.authenticators import ACTOR, make_authenticator
from people.tests.test_identity import about

PASSWORD = "a rather long passphrase"
FORM = reverse("admin:link_password")


@pytest.fixture
def kim() -> User:
    return make_staff("kim", email="kim@example.org")


def make_link(user: User) -> Any:
    return console_of(make_operator()).post(reverse("admin:auth_user_link", args=[user.pk]), follow=True)


def path_of(user: User) -> str:
    token, _ = links.make(user=user, actor=ACTOR, now=now())
    return reverse("admin:link", args=[token])


def set_password(client: Client, password: str = PASSWORD) -> Any:
    return client.post(FORM, {"password1": password, "password2": password})


def can_sign_in(user: User, password: str = PASSWORD) -> bool:
    user.refresh_from_db()
    return user.check_password(password)


def test_operator_gets_a_link_that_lets_a_new_person_in(kim: User, client: Client) -> None:
    page = make_link(kim)
    address = page.context["secret"]

    opened = client.get(address.removeprefix(settings.BASE_URL), follow=True)
    answer = set_password(client)

    assert address.startswith(settings.BASE_URL)
    assert address.rpartition("/join/")[2] not in str(opened.request)
    assert "kim" in opened.content.decode()
    assert answer.url == reverse("admin:login")
    assert can_sign_in(kim)
    assert [(entry.event_type, entry.actor_id) for entry in about(kim)] == [
        ("person.link_made", actor_id_of("root")),
        ("person.password_changed", actor_id_of("kim")),
    ]


def test_link_counts_once(kim: User) -> None:
    path, first, second = path_of(kim), Client(), Client()
    for client in (first, second):
        client.get(path)

    set_password(first)
    answer = set_password(second, "another long passphrase")

    assert answer.url == reverse("admin:login")
    assert can_sign_in(kim)


@pytest.mark.parametrize("end", ["replaced", "old", "deactivated"])
def test_link_that_is_over_sets_nothing(kim: User, client: Client, end: str) -> None:
    client.get(path_of(kim))
    if end == "replaced":
        links.make(user=kim, actor=ACTOR, now=now())
    elif end == "old":
        OneTimeLink.objects.update(expires_at=now() - timedelta(seconds=1))
    else:
        User.objects.filter(pk=kim.pk).update(is_active=False)

    answer = set_password(client)

    assert answer.url == reverse("admin:login")
    assert not can_sign_in(kim)


@pytest.mark.parametrize("token", ["x", "%00", "%ed%a0%80", "a" * 2000, "../admin"])
def test_invented_links_are_refused_politely(client: Client, token: str) -> None:
    client.get(f"{reverse('admin:link_password')}{token}/")

    answer = client.get(FORM, follow=True)

    assert answer.status_code == 200
    assert "Ask for a new one" in answer.content.decode()


@pytest.mark.parametrize("password", ["short", "password1234", ""])
def test_weak_password_is_refused_and_the_link_stays(kim: User, client: Client, password: str) -> None:
    client.get(path_of(kim))

    weak = set_password(client, password)
    good = set_password(client)

    assert (weak.status_code, good.status_code) == (200, 302)
    assert can_sign_in(kim)


def test_link_replaces_no_second_factor(kim: User, client: Client) -> None:
    make_authenticator(kim)
    client.get(path_of(kim))
    set_password(client)

    answer: Any = client.post(reverse("account_login"), {"login": "kim", "password": PASSWORD})

    assert answer.url == reverse("mfa_authenticate")


def test_link_goes_by_mail_where_there_is_a_server(kim: User, monkeypatch: pytest.MonkeyPatch) -> None:
    without = make_link(kim)
    monkeypatch.setattr(settings, "EMAIL_HOST", "mail.example.org")
    make_staff("lee")
    page = console_of(User.objects.get(username="root")).post(
        reverse("admin:auth_user_link", args=[kim.pk]), follow=True
    )

    (message,) = mail.outbox
    assert "Hand it over" in without.content.decode()
    assert message.to == ["kim@example.org"]
    assert page.context["secret"] in message.body


def test_mail_that_cannot_be_sent_is_told(kim: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "EMAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")
    monkeypatch.setattr(settings, "EMAIL_HOST", "127.0.0.1")
    monkeypatch.setattr(settings, "EMAIL_PORT", 9)

    page = make_link(kim)

    assert "Hand it over" in page.content.decode()


def test_token_is_stored_nowhere_in_clear(kim: User) -> None:
    token, _ = links.make(user=kim, actor=ACTOR, now=now())

    assert token not in str(list(OneTimeLink.objects.values()))
    assert token not in str(list(AuditEntry.objects.values()))
    with pytest.raises(LinkIsOver):
        links.use(token=token + "x", password=PASSWORD, now=now())
