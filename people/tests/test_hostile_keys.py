"""What is sent in the name of security keys: lies, replays, copies, and what is no answer at all."""

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal import auth
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from people.tests.authenticators import code_of, make_authenticator
from people.tests.security_keys import (
    EDDSA,
    ES256,
    PRESENT,
    RS256,
    VERIFIED,
    SoftwareKey,
    confirmed,
    keys_of,
    last_of,
    make_security_key,
    options,
    row_of,
    sign_in_with,
)
from people.tests.test_second_factor import CODE, SIGN_IN, is_signed_in, show_password, target, types_of

ADD = reverse("mfa_add_webauthn")


@pytest.mark.parametrize(
    "lie",
    [
        {"origin": "http://localhost:8001"},
        {"origin": "https://evil.example"},
        {"rp_id": "evil.example"},
        {"flags": 0},
        {"flags": VERIFIED},
        {"private": SoftwareKey().private},
        {"credential_id": b"x" * 32},
    ],
)
def test_lie_is_refused_audited_and_counted(root: User, lie: dict[str, Any]) -> None:
    key = make_security_key(root, flags=PRESENT)
    client = Client()

    answer = sign_in_with(client, root, key.lying(**lie))

    assert answer.status_code == 200
    assert 'role="alert"' in answer.content.decode()
    assert not is_signed_in(client)
    assert last_of(root, "person.sign_in_failed")["second_factor"] == "wrong"
    assert row_of(key).last_used_at is None


def test_another_persons_key_is_unknown(root: User, lee: User) -> None:
    make_security_key(root)
    theirs = make_security_key(lee)
    client = Client()

    sign_in_with(client, root, theirs)
    sign_in_with(client, root, theirs.lying(handle=root.person.id.bytes))

    assert not is_signed_in(client)


def test_answer_counts_once_and_for_its_own_challenge(root: User) -> None:
    key = make_security_key(root)
    client, thief = Client(), Client()
    show_password(client, root)
    answer = key.get(options(client, "mfa_authenticate"))
    client.post(CODE, {"credential": answer})

    show_password(thief, root)
    replayed_without = thief.post(CODE, {"credential": answer})
    options(thief, "mfa_authenticate")
    replayed = thief.post(CODE, {"credential": answer})

    assert is_signed_in(client)
    assert not is_signed_in(thief)
    assert {replayed_without.status_code, replayed.status_code} == {200}
    assert AuditEntry.objects.of_type("person.sign_in_failed").count() == 2


def test_challenge_of_one_browser_is_not_anothers(root: User) -> None:
    key = make_security_key(root)
    client, thief = Client(), Client()
    show_password(client, root)
    show_password(thief, root)
    answer = key.get(options(client, "mfa_authenticate"))
    options(thief, "mfa_authenticate")

    thief.post(CODE, {"credential": answer})

    assert not is_signed_in(thief)


def test_counter_is_compared_under_a_lock_with_what_another_answer_saved(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, client, complete = make_security_key(root, counter=5), Client(), auth.complete_authentication

    def overtaken(*given: Any) -> Authenticator:
        found = complete(*given)
        Authenticator.objects.filter(pk=found.pk).update(data={**found.data, "sign_count": 9})
        return found

    def note(execute: Any, sql: str, *more: Any) -> Any:
        asked.append(sql)
        return execute(sql, *more)

    asked: list[str] = []
    monkeypatch.setattr(auth, "complete_authentication", overtaken)
    with connection.execute_wrapper(note):
        sign_in_with(client, root, key)

    assert not is_signed_in(client)
    assert row_of(key).data["sign_count"] == 9
    assert any("mfa_authenticator" in sql and "FOR UPDATE" in sql for sql in asked)


def test_counter_that_goes_back_is_refused_and_audited(root: User) -> None:
    key = make_security_key(root, counter=5)
    copy, client, thief = key.lying(), Client(), Client()

    sign_in_with(client, root, key)
    answer = sign_in_with(thief, root, copy)

    assert is_signed_in(client)
    assert not is_signed_in(thief)
    assert "not accepted" in answer.content.decode()
    assert row_of(key).data["sign_count"] == 6
    assert last_of(root, "person.sign_in_failed") == {
        "account": "root",
        "address": "127.0.0.1",
        "second_factor": "wrong",
    }


def test_wrong_keys_close_the_door_for_keys_and_codes(root: User) -> None:
    make_authenticator(root)
    key = make_security_key(root)
    client = Client()

    for _ in range(5):
        sign_in_with(client, root, key.lying(private=SoftwareKey().private))
    right = sign_in_with(client, root, key)
    code = client.post(CODE, {"code": code_of(root)})

    assert "not accepted" in right.content.decode()
    assert "Too many failed" in code.content.decode()
    assert not is_signed_in(client)


BROKEN = [
    *("{", "null", "[]", "1", '"x"', "{}", "x" * 20_000, "[" * 16_000, '{"id": 1e999}'),
    '{"id": "a", "rawId": "a", "type": "public-key", "response": {}}',
    '{"id": "a", "rawId": "a", "type": [], "response": {}}',
    '{"id":"YQ","rawId":"YQ","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA",'
    '"authenticatorData":"AAAA","signature":"\\ud800"}}',
    '{"id":"é","rawId":"é","type":"public-key","response":{"clientDataJSON":"é","attestationObject":"é",'
    '"authenticatorData":"é","signature":"é","userHandle":"x"}}',
    "\x00",
]


@pytest.mark.parametrize("answer", BROKEN)
def test_broken_answers_are_refused_in_words(root: User, answer: str) -> None:
    make_security_key(root)
    client, owner = Client(), confirmed(root)
    show_password(client, root)
    options(client, "mfa_authenticate")
    options(owner, "mfa_add_webauthn")

    step = client.post(CODE, {"credential": answer})
    added = owner.post(ADD, {"name": "k", "credential": answer})

    assert (step.status_code, added.status_code) == (200, 200)
    assert 'role="alert"' in step.content.decode()
    assert keys_of(root).count() == 1
    assert not is_signed_in(client)


POINT = {1: 2, 3: ES256, -1: 1, -2: b"\x01" * 32, -3: b"\x02" * 32}


@pytest.mark.parametrize(
    "public",
    [
        POINT,
        {1: 2, 3: ES256, -1: 3, -2: b"\x01" * 66, -3: b"\x02" * 66},
        {1: 1, 3: ES256, -1: 6, -2: b"\x01" * 32},
        {1: 1, 3: EDDSA, -1: 6, -2: b"\x01" * 31},
        {1: 3, 3: RS256, -1: b"\xff" * 64, -2: b"\x01\x00\x01"},
        {1: 3, 3: RS256, -1: b"", -2: b""},
        {1: 2, 3: -36, -1: 1, -2: b"\x01" * 32, -3: b"\x02" * 32},
        {1: 2},
        {},
        [],
        7,
    ],
)
def test_key_that_could_never_sign_is_not_registered(
    root: User, monkeypatch: pytest.MonkeyPatch, public: Any
) -> None:
    monkeypatch.setattr(SoftwareKey, "_public", lambda key: public)
    client = confirmed(root)

    made = SoftwareKey().create(options(client, "mfa_add_webauthn"))
    answer = client.post(ADD, {"name": "k", "credential": made})

    assert answer.status_code == 200
    assert not keys_of(root).exists()
    assert types_of(root) == ["person.security_key_refused"]


@pytest.mark.parametrize("lie", [{"origin": "https://evil.example"}, {"rp_id": "evil.example"}, {"flags": 0}])
def test_registration_elsewhere_is_refused(root: User, lie: dict[str, Any]) -> None:
    client = confirmed(root)

    made = SoftwareKey(**lie).create(options(client, "mfa_add_webauthn"))
    answer = client.post(ADD, {"name": "k", "credential": made})

    assert answer.status_code == 200
    assert not keys_of(root).exists()


def test_challenge_ends_with_a_new_one(root: User) -> None:
    key, client = make_security_key(root), Client()
    show_password(client, root)
    before = key.get(options(client, "mfa_authenticate"))
    options(client, "mfa_authenticate")

    client.post(CODE, {"credential": before})

    assert not is_signed_in(client)


def test_sign_in_that_took_too_long_begins_anew(root: User) -> None:
    key, client = make_security_key(root), Client()
    show_password(client, root)
    answer = key.get(options(client, "mfa_authenticate"))
    session = client.session
    session["account_login"]["initiated_at"] -= 660
    session.save()

    assert target(client.post(CODE, {"credential": answer})) == SIGN_IN
    assert not is_signed_in(client)


def test_strangers_get_no_options(root: User) -> None:
    make_security_key(root)

    assert target(Client().get(CODE)) == SIGN_IN
    assert target(Client().get(ADD)).startswith(SIGN_IN)
