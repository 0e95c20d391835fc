"""Whichever page codes and keys are guessed at, they are counted and audited by one rule."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.people.doors import second_factor
from compliance.people.errors import SecondFactorExists
from compliance.people.models import Door
from compliance.people.passkeys import keys, relying_party
from compliance.people.passkeys.tests.security_keys import (
    SoftwareKey,
    confirmed,
    last_of,
    make_security_key,
    options,
    row_of,
    sign_in_with,
)
from compliance.people.tests.authenticators import ACTOR, code_of, make_authenticator
from compliance.people.tests.test_second_factor import CODE, is_signed_in, show_password
from compliance.stores import redis
from compliance.tests.console import console_of

CONFIRM = reverse("admin:account_confirm")
ADD = reverse("admin:account_key_add")


@pytest.fixture(autouse=True)
def fresh_addresses() -> Iterator[None]:
    yield
    for name in redis.client().scan_iter("*:sign_in_failures:*"):
        redis.client().delete(name)


def test_wrong_code_at_the_confirmation_is_audited_and_counted(root: User) -> None:
    make_authenticator(root)

    console_of(root).post(CONFIRM, {"code": "nope"})

    assert last_of(root, "person.check_failed") == {"proof": "code", "address": "127.0.0.1"}
    assert (Door.objects.get().failures, root.person.tries.failures) == (1, 1)


def test_wrong_key_at_the_confirmation_is_audited_and_counted(root: User) -> None:
    key = make_security_key(root)
    client = console_of(root)

    lie = key.lying(origin="https://evil.example").get(options(client, "account_key"))
    client.post(CONFIRM, {"credential": lie})

    assert last_of(root, "person.check_failed") == {
        "proof": "security_key",
        "address": "127.0.0.1",
        "why": "invalid",
        "security_key": str(row_of(key).id),
    }
    assert (Door.objects.get().failures, root.person.tries.failures) == (1, 1)


def test_closed_confirmation_looks_at_no_right_proof(root: User) -> None:
    make_authenticator(root)
    key = make_security_key(root)
    client = console_of(root)
    for _ in range(3):
        client.post(CONFIRM, {"code": "nope"})

    code = client.post(CONFIRM, {"code": code_of(root)})
    credential = client.post(CONFIRM, {"credential": key.get(options(client, "account_key"))})

    assert "Too many wrong" in code.content.decode()
    assert "Too many wrong" in credential.content.decode()
    assert last_of(root, "person.check_failed")["locked_out"] is True
    assert client.get(ADD).status_code == 302


def test_right_code_is_not_called_wrong_while_the_second_step_is_closed(root: User) -> None:
    make_authenticator(root)
    client = console_of(root)
    for _ in range(3):
        client.post(CONFIRM, {"code": "nope"})

    answer = client.post(reverse("admin:account"), {"do": "codes", "code": code_of(root)})

    assert "Too many wrong" in answer.content.decode()
    assert Door.objects.get().failures == 3


def test_address_that_guesses_codes_of_many_is_refused(
    root: User, lee: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "SIGN_IN_FAILURES_PER_ADDRESS", 2)
    make_authenticator(root)
    make_authenticator(lee)
    thief = Client()
    show_password(thief, root)
    victim = Client()
    show_password(victim, lee)
    thief.post(CODE, {"code": "nope"})
    thief.post(CODE, {"code": "nope"})

    refused = victim.post(CODE, {"code": code_of(lee)})
    monkeypatch.setattr(settings, "SIGN_IN_FAILURES_PER_ADDRESS", 1000)
    entry = last_of(lee, "person.sign_in_failed")

    assert "try again later" in refused.content.decode()
    assert (entry["second_factor"], entry["locked_out"]) == ("closed", True)
    assert victim.post(CODE, {"code": code_of(lee)}).status_code == 302


@pytest.mark.parametrize("shown", ["code", "key"])
def test_closed_second_step_is_audited(root: User, shown: str) -> None:
    make_authenticator(root)
    key, client = make_security_key(root), Client()
    show_password(client, root)
    for _ in range(3):
        client.post(CODE, {"code": "nope"})

    if shown == "key":
        sign_in_with(client, root, key)
    else:
        client.post(CODE, {"code": code_of(root)})

    assert last_of(root, "person.sign_in_failed")["locked_out"] is True
    assert not is_signed_in(client)


def test_refused_new_keys_do_not_flood_the_log(root: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.RATE_LIMITS, "sign_in_entries", 2)
    client = confirmed(root)

    for _ in range(4):
        client.post(ADD, {"name": "k", "credential": "{}"})

    assert AuditEntry.objects.of_type("person.security_key_refused").count() == 2
    assert last_of(root, "person.security_key_refused")["more_not_recorded"] is True


def test_password_alone_adds_no_app_beside_a_key_of_another_tab(root: User) -> None:
    make_security_key(root)
    given: dict[str, Any] = {"user": root, "actor": ACTOR, "now": now()}

    with pytest.raises(SecondFactorExists):
        second_factor.enrol(secret=b"s" * 20, step=1, is_first=True, **given)

    assert second_factor.authenticator_of(root) is None


def test_password_alone_adds_no_key_beside_an_app_of_another_tab(root: User) -> None:
    make_authenticator(root)
    party, challenge = relying_party.current(), b"c" * 32
    answer = SoftwareKey(origin=party.origin, rp_id=party.id).create(
        {"user": {"id": "YQ"}, "challenge": "Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2M"}
    )

    with pytest.raises(SecondFactorExists):
        keys.register(
            user=root, name="k", answer=answer, challenge=challenge, is_first=True, actor=ACTOR, now=now()
        )

    assert not keys.of(root).exists()
