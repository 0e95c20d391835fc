"""Wrong passwords close the door of an account, and of an address; guessing keeps nobody out."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.people.doors import lockout
from compliance.people.models import Door
from compliance.stores import redis
from compliance.tests.console import make_staff

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def fresh_addresses() -> Iterator[None]:
    yield
    for name in redis.client().scan_iter("*:sign_in_failures:*"):
        redis.client().delete(name)


@pytest.fixture
def kim() -> User:
    return make_staff("kim", password=PASSWORD)


def attempt(client: Client, password: str, username: str = "kim", **headers: Any) -> Any:
    return client.post(reverse("admin:login"), {"username": username, "password": password}, **headers)


def guess(times: int, **headers: Any) -> Any:
    return [attempt(Client(), "wrong", **headers) for _ in range(times)][-1]


def test_wrong_passwords_close_the_account_and_say_no_more_than_before(kim: User) -> None:
    wrong = guess(5)

    right = attempt(Client(), PASSWORD)

    assert right.status_code == 200
    assert right.context["form"].non_field_errors() == wrong.context["form"].non_field_errors()
    last = AuditEntry.objects.of_type("person.sign_in_failed").order_by("-id")[0]
    assert (last.metadata or {})["locked_out"] is True


def test_door_opens_again_and_closes_for_longer(kim: User) -> None:
    guess(5)
    first = Door.objects.get()
    Door.objects.update(closed_until=now())
    guess(1)
    second = Door.objects.get()
    Door.objects.update(closed_until=now())

    answer = attempt(Client(), PASSWORD)

    assert first.closed_until is not None
    assert second.closed_until is not None
    assert second.closed_until - first.closed_until > timedelta(seconds=50)
    assert answer.status_code == 302
    assert not Door.objects.exists()


def test_attempts_while_closed_close_it_no_longer(kim: User) -> None:
    guess(5)
    before = Door.objects.get().closed_until

    guess(3)

    assert Door.objects.get().closed_until == before


def test_known_browser_gets_in_while_others_guess(kim: User) -> None:
    known = Client()
    attempt(known, PASSWORD)
    known.post(reverse("admin:logout"))
    guess(6)

    assert attempt(known, PASSWORD).status_code == 302
    assert attempt(Client(), PASSWORD).status_code == 200


@pytest.mark.parametrize("value", ["", "x", "a:b:c", "\x01"])
def test_forged_cookie_is_an_unknown_browser(kim: User, value: str) -> None:
    client = Client()
    client.cookies[lockout.COOKIE] = value
    guess(5)

    assert attempt(client, PASSWORD).status_code == 200


def test_cookie_of_another_person_opens_nothing(kim: User) -> None:
    make_staff("lee", password=PASSWORD)
    client = Client()
    attempt(client, PASSWORD, "lee")
    client.post(reverse("admin:logout"))
    guess(5)

    assert attempt(client, PASSWORD).status_code == 200


def test_known_browser_keeps_its_door_and_is_known_for_longer(kim: User) -> None:
    client = Client()
    first = attempt(client, PASSWORD).cookies[lockout.COOKIE].value
    client.post(reverse("admin:logout"))

    again = attempt(client, PASSWORD).cookies[lockout.COOKIE]

    assert signing.loads(again.value, salt=lockout.SALT) == signing.loads(first, salt=lockout.SALT)
    assert again["max-age"] == lockout.KNOWN_FOR.total_seconds()


def test_cookie_is_only_the_consoles(kim: User) -> None:
    morsel = attempt(Client(), PASSWORD).cookies[lockout.COOKIE]

    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "Lax", "/admin/")


def test_address_that_tries_many_accounts_is_refused(kim: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SIGN_IN_FAILURES_PER_ADDRESS", 3)
    for number in range(3):
        attempt(Client(), "wrong", f"guess{number}", REMOTE_ADDR="10.9.9.9")

    assert attempt(Client(), PASSWORD, REMOTE_ADDR="10.9.9.9").status_code == 200
    assert attempt(Client(), PASSWORD, REMOTE_ADDR="10.9.9.8").status_code == 302
