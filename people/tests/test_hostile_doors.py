"""What strangers and thieves try at the doors: sessions, one-time links, keys and charsets of their own."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils.module_loading import import_string

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.console.addresses import prefix_of
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import console_of, make_operator, make_staff
from people.doors import links
from people.tests.authenticators import ACTOR
from people.tests.test_second_factor import PASSWORD, SIGN_IN, show_password

LIVE = prefix_of(Environment.LIVE)


def secret_shown(client: Client) -> Any:
    client.get(reverse("enrol_app"))
    return client.session["mfa.totp.secret"]


def test_password_gives_the_session_a_new_key_and_no_old_secret(required: None, root: User) -> None:
    other = make_operator("other")
    other.set_password(PASSWORD)
    other.save()
    client = Client()
    show_password(client, other)
    fixed, known = client.session.session_key, secret_shown(client)

    show_password(client, root)

    assert client.session.session_key != fixed
    assert not Session.objects.filter(session_key=fixed).exists()
    assert known not in (None, secret_shown(client))


def test_guessed_link_leaves_no_session(client: Client) -> None:
    answer = client.get(reverse("admin:link", args=["guess"]), follow=True)

    assert "Ask for a new one" in answer.content.decode()
    assert not Session.objects.exists()


def test_link_is_kept_in_no_session_that_was_known_before() -> None:
    """A stranger who has set the browser's cookie opens the page behind the link as well."""
    planted: Any = import_string(f"{settings.SESSION_ENGINE}.SessionStore")()
    planted.create()
    token, _ = links.make(user=make_staff("kim"), actor=ACTOR, now=now())
    victim, thief = Client(), Client()
    for browser in (victim, thief):
        browser.cookies[settings.SESSION_COOKIE_NAME] = planted.session_key

    victim.get(reverse("admin:link", args=[token]))
    theirs = thief.get(reverse("admin:link_password"), follow=True)
    own = victim.get(reverse("admin:link_password"))

    assert b"password1" not in theirs.content
    assert b"password1" in own.content


def test_link_that_is_over_is_audited_without_its_token(client: Client) -> None:
    token, _ = links.make(user=make_staff("kim"), actor=ACTOR, now=now() - timedelta(days=30))

    client.get(reverse("admin:link", args=[token]), follow=True)

    entry = AuditEntry.objects.of_type("person.sign_in_failed").get()
    assert facts_of(entry) == {"account": None, "address": "127.0.0.1", "one_time_link": "over"}
    assert token not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("right", ["is_superuser", "is_staff", "is_active"])
def test_link_signs_in_nobody_who_is_no_operator_any_more(client: Client, right: str) -> None:
    user = make_operator("ada")
    token, _ = links.make(user=user, actor=ACTOR, signs_in=True, now=now())
    client.get(reverse("admin:link", args=[token]))
    User.objects.filter(pk=user.pk).update(**{right: False})

    answer = client.post(reverse("admin:link_password"))

    assert answer.headers["Location"] == SIGN_IN
    assert "_auth_user_id" not in client.session


def test_session_key_with_nul_is_none(client: Client) -> None:
    assert client.get(SIGN_IN, headers={"cookie": r'sessionid="abcdefghij\000"'}).status_code == 200


@pytest.mark.parametrize("charset", ["utf-7", "rot13", "idna"])
def test_charset_of_the_client_has_no_say(client: Client, charset: str) -> None:
    fields = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n+2AA-\r\n'
        for name in ("login", "password")
    )
    kind = f"multipart/form-data; boundary=b; charset={charset}"

    answer = client.generic("POST", SIGN_IN, fields + "--b--\r\n", content_type=kind)

    assert answer.status_code == 200
    assert answer.context["form"].errors


@pytest.mark.parametrize("address", ["auth/user/?last_login__year=0", "agents/agent/?created_at__year=0"])
def test_filter_by_no_year_is_refused(address: str) -> None:
    answer = console_of(make_operator()).get(LIVE + address)

    assert (answer.status_code, answer.headers["Location"][-4:]) == (302, "?e=1")


def test_look_up_of_nul_finds_nothing() -> None:
    query = "term=%00&app_label=tenancy&model_name=membership&field_name=user"

    assert console_of(make_operator()).get(f"{LIVE}autocomplete/?{query}").json()["results"] == []


def test_no_redirect_tells_which_rows_exist() -> None:
    kind = ContentType.objects.get_for_model(User)
    user = make_operator()

    assert console_of(user).get(f"{LIVE}r/{kind.pk}/{user.pk}/").status_code == 404
    assert console_of(user).get(f"{LIVE}r/{kind.pk}/x/").status_code == 404


def test_operator_saves_only_what_the_form_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password set while the form's row is held in memory stays."""
    user, operator = make_staff("kim", password=PASSWORD), console_of(make_operator())
    clean = User.clean

    def set_meanwhile(held: User) -> None:
        clean(held)
        User.objects.filter(pk=user.pk).update(password="set meanwhile")

    monkeypatch.setattr(User, "clean", set_meanwhile)
    form = {"username": "kim", "email": "kim@example.org", "is_active": "on", "is_staff": "on"}
    operator.post(reverse("admin:auth_user_change", args=[user.pk]), form)

    user.refresh_from_db()
    assert (user.email, user.password) == ("kim@example.org", "set meanwhile")
