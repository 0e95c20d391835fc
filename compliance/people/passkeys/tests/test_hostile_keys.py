"""What is sent in the name of security keys: lies, replays, copies, and what is no answer at all."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from webauthn.helpers import bytes_to_base64url

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.people.doors import pending
from compliance.people.models import KeyChallenge
from compliance.people.passkeys import challenges, keys
from compliance.people.passkeys.tests.security_keys import (
    EDDSA,
    ES256,
    PRESENT,
    RS256,
    VERIFIED,
    SoftwareKey,
    confirmed,
    last_of,
    make_security_key,
    options,
    row_of,
    sign_in_with,
)
from compliance.people.tests.authenticators import code_of, make_authenticator
from compliance.people.tests.test_second_factor import (
    CODE,
    SIGN_IN,
    is_signed_in,
    show_password,
    target,
    types_of,
)
from compliance.tests.console import console_of

ACCOUNT, ADD, KEYS = (reverse(f"admin:{name}") for name in ("account", "account_key_add", "account_keys"))
ENROL_KEY = reverse("admin:login_enrol_key")


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
        {"handle": b"somebody else"},
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
    assert root.person.tries.failures == 1
    assert row_of(key).last_used_at is None


def test_another_persons_key_is_unknown(root: User, lee: User) -> None:
    make_security_key(root)
    theirs = make_security_key(lee)
    client = Client()

    sign_in_with(client, root, theirs)
    sign_in_with(client, root, theirs.lying(handle=root.person.id.bytes))

    assert not is_signed_in(client)
    assert last_of(root, "person.sign_in_failed")["why"] == "unknown"


def test_answer_counts_once_and_for_its_own_challenge(root: User) -> None:
    key = make_security_key(root)
    client, thief = Client(), Client()
    show_password(client, root)
    answer = key.get(options(client, "login_key"))
    client.post(CODE, {"credential": answer})

    show_password(thief, root)
    replayed_without = thief.post(CODE, {"credential": answer})
    options(thief, "login_key")
    replayed = thief.post(CODE, {"credential": answer})

    assert is_signed_in(client)
    assert not is_signed_in(thief)
    assert {replayed_without.status_code, replayed.status_code} == {200}
    found = AuditEntry.objects.of_type("person.sign_in_failed").order_by("id")
    assert [(entry.metadata or {})["why"] for entry in found] == ["challenge", "invalid"]


def test_challenge_ends_with_time_purpose_and_a_new_password(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, client = make_security_key(root), Client()
    show_password(client, root)
    before = key.get(options(client, "login_key"))
    show_password(client, root)
    tried = [client.post(CODE, {"credential": before})]

    foreign = KeyChallenge.objects.create(
        person=root.person, purpose="confirm", octets=b"c" * 32, expires_at=now() + timedelta(minutes=1)
    )
    session = client.session
    session[pending.CHALLENGE] = str(foreign.id)
    session.save()
    signed = key.get({"challenge": bytes_to_base64url(b"c" * 32)})
    tried += [client.post(CODE, {"credential": signed})]
    monkeypatch.setattr(challenges, "LIFE", timedelta(0))
    late = key.get(options(client, "login_key"))
    tried += [client.post(CODE, {"credential": late})]

    assert ["too long" in answer.content.decode() for answer in tried] == [True, True, True]
    assert not is_signed_in(client)


def test_challenge_of_one_browser_is_not_anothers(root: User) -> None:
    key = make_security_key(root)
    client, thief = Client(), Client()
    show_password(client, root)
    show_password(thief, root)
    answer = key.get(options(client, "login_key"))
    options(thief, "login_key")

    thief.post(CODE, {"credential": answer})

    assert not is_signed_in(thief)


def test_counter_that_goes_back_is_refused_and_audited(root: User) -> None:
    key = make_security_key(root, counter=5)
    copy, client, thief = key.lying(), Client(), Client()

    sign_in_with(client, root, key)
    answer = sign_in_with(thief, root, copy)

    assert is_signed_in(client)
    assert not is_signed_in(thief)
    assert "counter went back" in answer.content.decode()
    assert row_of(key).sign_count == 6
    assert last_of(root, "person.sign_in_failed") == {
        "account": "root",
        "address": "127.0.0.1",
        "second_factor": "wrong",
        "why": "counter",
        "security_key": str(row_of(key).id),
    }


def test_wrong_keys_close_the_door_for_keys_and_codes(root: User) -> None:
    make_authenticator(root)
    key = make_security_key(root)
    client = Client()

    for _ in range(3):
        sign_in_with(client, root, key.lying(rp_id="evil.example"))
    right = sign_in_with(client, root, key)
    code = client.post(CODE, {"code": code_of(root)})

    assert "Too many wrong" in right.content.decode()
    assert "Too many wrong" in code.content.decode()
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
    options(client, "login_key")
    options(owner, "account_key_add_options")

    step = client.post(CODE, {"credential": answer})
    added = owner.post(ADD, {"name": "k", "credential": answer})

    assert (step.status_code, added.status_code) == (200, 200)
    assert 'role="alert"' in step.content.decode()
    assert keys.of(root).count() == 1
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
    client = console_of(root)

    made = SoftwareKey().create(options(client, "account_key_add_options"))
    answer = client.post(ADD, {"name": "k", "credential": made})

    assert answer.status_code == 200
    assert not keys.of(root).exists()
    assert types_of(root) == ["person.security_key_refused"]


@pytest.mark.parametrize("lie", [{"origin": "https://evil.example"}, {"rp_id": "evil.example"}, {"flags": 0}])
def test_registration_elsewhere_is_refused(root: User, lie: dict[str, Any]) -> None:
    client = console_of(root)

    made = SoftwareKey(**lie).create(options(client, "account_key_add_options"))
    answer = client.post(ADD, {"name": "k", "credential": made})

    assert answer.status_code == 200
    assert not keys.of(root).exists()


def test_tab_whose_sign_in_is_over_begins_anew(root: User) -> None:
    key = make_security_key(root)
    client = Client()
    show_password(client, root)
    answer = key.get(options(client, "login_key"))
    session = client.session
    session[pending.PENDING] |= {"at": (now() - timedelta(minutes=11)).isoformat()}
    session.save()

    assert client.post(reverse("admin:login_key")).status_code == 409
    assert target(client.post(CODE, {"credential": answer})) == SIGN_IN
    assert not is_signed_in(client)


def test_strangers_get_no_options(root: User) -> None:
    make_security_key(root)

    assert Client().post(reverse("admin:login_key")).status_code == 409
    assert Client().post(reverse("admin:account_key")).status_code == 302
    assert Client().get(reverse("admin:login_key")).status_code == 405


def test_forged_requests_get_no_challenge(root: User) -> None:
    make_security_key(root)
    client = Client(enforce_csrf_checks=True)

    assert client.post(reverse("admin:login_key")).status_code == 403
    assert not KeyChallenge.objects.exists()
