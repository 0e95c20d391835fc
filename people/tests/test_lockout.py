"""Wrong passwords close an account, and an address; guessing keeps nobody out."""

import time
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.tests.console import actor_id_of, console_of, make_operator, make_staff
from people.doors import adapters
from people.models import CacheEntry
from people.tests.authenticators import code_of, make_authenticator
from people.tests.security_keys import last_of
from people.tests.test_second_factor import CODE

PASSWORD, NEW = "correct horse battery", "another long passphrase"
AGAIN, CHANGE = reverse("mfa_reauthenticate"), reverse("account_change_password")


def attempt(client: Client, password: str, username: str = "kim", **headers: Any) -> Any:
    return client.post(reverse("account_login"), {"login": username, "password": password}, **headers)


def guess(times: int, **headers: Any) -> Any:
    return [attempt(Client(), "wrong", **headers) for _ in range(times)][-1]


def change(client: Client, old: str, new: str = NEW) -> Any:
    return client.post(CHANGE, {"oldpassword": old, "password1": NEW, "password2": new})


@pytest.mark.parametrize("username", ["kim", "nobody"])
def test_wrong_passwords_close_the_account_and_tell_not_whether_it_exists(kim: User, username: str) -> None:
    guess(5, username=username)

    right = attempt(Client(), PASSWORD, username)

    assert right.context["form"].non_field_errors() == ["Too many failed login attempts. Try again later."]
    last = AuditEntry.objects.of_type("person.sign_in_failed").order_by("-id")[0]
    assert (last.metadata or {})["locked_out"] is True


def test_door_opens_again(kim: User, monkeypatch: pytest.MonkeyPatch) -> None:
    guess(5)
    later = time.time() + 301
    monkeypatch.setattr(time, "time", lambda: later)

    assert attempt(Client(), PASSWORD).status_code == 302


def test_right_password_is_no_failure(kim: User) -> None:
    for _ in range(6):
        assert attempt(Client(), PASSWORD).status_code == 302


def test_known_browser_gets_in_while_others_guess(kim: User) -> None:
    known = Client()
    attempt(known, PASSWORD)
    known.post(reverse("account_logout"))
    guess(6)

    assert attempt(known, PASSWORD, REMOTE_ADDR="10.1.1.1").status_code == 302
    assert attempt(Client(), PASSWORD, REMOTE_ADDR="10.1.1.1").status_code == 200


@pytest.mark.parametrize("value", ["", "x", "a:b:c", "\x01"])
def test_forged_cookie_is_an_unknown_browser(kim: User, value: str) -> None:
    client = Client()
    client.cookies[adapters.COOKIE] = value
    guess(5)

    assert attempt(client, PASSWORD).status_code == 200


def test_cookie_of_another_person_opens_nothing(kim: User) -> None:
    make_staff("lee", password=PASSWORD)
    client = Client()
    attempt(client, PASSWORD, "lee")
    client.post(reverse("account_logout"))
    guess(5)

    assert attempt(client, PASSWORD).status_code == 200


def test_cookie_of_who_had_the_name_before_opens_nothing(kim: User) -> None:
    known = Client()
    attempt(known, PASSWORD)
    known.post(reverse("account_logout"))
    User.objects.filter(pk=kim.pk).update(username="kim-before")
    make_staff("kim", password=PASSWORD)
    guess(5)

    assert attempt(known, PASSWORD).status_code == 200


def test_known_browser_keeps_its_name_and_is_known_for_longer(kim: User) -> None:
    client = Client()
    first = attempt(client, PASSWORD).cookies[adapters.COOKIE].value
    client.post(reverse("account_logout"))

    again = attempt(client, PASSWORD).cookies[adapters.COOKIE]

    salt = adapters.SALT
    assert signing.loads(again.value, salt=salt) == signing.loads(first, salt=salt)
    assert again["max-age"] == adapters.KNOWN_FOR.total_seconds()
    assert (again["httponly"], again["samesite"], again["path"]) == (True, "Lax", "/admin/")


@pytest.mark.parametrize("guessed", ["passwords", "codes"])
def test_address_that_tries_many_accounts_is_refused(kim: User, settings: Any, guessed: str) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login_failed": "3/h/ip"}
    make_authenticator(kim)
    for number in range(3):
        client = Client()
        if guessed == "codes":
            other = make_staff(f"guess{number}", password=PASSWORD)
            make_authenticator(other)
            attempt(client, PASSWORD, other.username, REMOTE_ADDR="10.9.9.9")
            client.post(CODE, {"code": "nope"}, REMOTE_ADDR="10.9.9.9")
        else:
            attempt(client, "wrong", f"guess{number}", REMOTE_ADDR="10.9.9.9")

    assert attempt(Client(), PASSWORD, REMOTE_ADDR="10.9.9.9").status_code == 200
    assert attempt(Client(), PASSWORD, REMOTE_ADDR="10.9.9.8").status_code == 302


def test_database_keeps_so_many_attempts_that_nobody_makes_it_forget(kim: User) -> None:
    guess(1)

    assert CacheEntry.objects.exists()
    options: Any = settings.CACHES["default"]["OPTIONS"]
    assert options["MAX_ENTRIES"] >= 100_000


# --- Somebody who is signed in, or has stolen a session -----------------------------------------------


def test_current_password_cannot_be_guessed_on_and_on(kim: User) -> None:
    client = console_of(kim)
    for _ in range(4):
        assert change(client, "guessed horse").status_code == 200

    refused = [change(client, PASSWORD, "another"), change(client, PASSWORD)]

    kim.refresh_from_db()
    assert [answer.status_code for answer in refused] == [200, 429]
    assert kim.check_password(PASSWORD)
    entry = AuditEntry.objects.of_type("person.check_failed").order_by("id")[0]
    assert entry.actor_id == actor_id_of("kim")
    assert facts_of(entry) == {"proof": "password", "address": "127.0.0.1"}
    assert "guessed" not in str(list(AuditEntry.objects.values()))


def test_wrong_codes_are_audited_and_close_the_confirmation() -> None:
    user = make_operator()
    make_authenticator(user)
    client = console_of(user)
    for _ in range(5):
        client.post(AGAIN, {"code": "nope"})

    answer = client.post(AGAIN, {"code": code_of(user)})

    assert "Too many failed" in answer.content.decode()
    assert last_of(user, "person.check_failed") == {"proof": "second_factor", "address": "127.0.0.1"}
    assert client.get(reverse("mfa_add_webauthn")).status_code == 302
