"""Security keys: registered and removed by somebody who just proved who they are, used at the second step."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from compliance.core.clock import now
from compliance.people.doors import pending
from compliance.people.models import RecoveryCode, SecurityKey
from compliance.people.passkeys import keys
from compliance.people.passkeys.tests.security_keys import (
    EDDSA,
    ES256,
    RP_ID,
    RS256,
    SoftwareKey,
    confirmed,
    last_of,
    make_security_key,
    options,
    row_of,
    sign_in_with,
)
from compliance.people.tests.authenticators import code_of, make_authenticator, offered_code
from compliance.people.tests.test_second_factor import (
    CODE,
    is_signed_in,
    show_password,
    target,
    types_of,
)
from compliance.tests.console import console_of, make_staff

ACCOUNT, ADD, KEYS = (reverse(f"admin:{name}") for name in ("account", "account_key_add", "account_keys"))
ENROL_KEY = reverse("admin:login_enrol_key")


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
def test_key_of_each_algorithm_is_registered_and_signs_in(root: User, algorithm: int) -> None:
    owner, client, key = console_of(root), Client(), SoftwareKey(algorithm)

    answer = owner.post(
        ADD, {"name": "blue key", "credential": key.create(options(owner, "account_key_add_options"))}
    )
    codes = owner.get(target(answer)).context["codes"]
    sign_in_with(client, root, key)

    assert len(codes) == 10
    assert is_signed_in(client)
    assert row_of(key).name == "blue key"
    assert row_of(key).last_used_at is not None
    assert types_of(root) == ["person.security_key_added", "person.signed_in"]
    assert last_of(root, "person.signed_in") == {
        "address": "127.0.0.1",
        "second_factor": "security_key",
        "security_key": str(row_of(key).id),
    }


def test_options_ask_for_no_attestation_and_prefer_verification(root: User) -> None:
    known = make_security_key(root)

    made = options(confirmed(root), "account_key_add_options")

    assert made["attestation"] == "none"
    assert made["authenticatorSelection"]["userVerification"] == "preferred"
    assert [one["alg"] for one in made["pubKeyCredParams"]] == [ES256, EDDSA, RS256]
    assert made["rp"]["id"] == RP_ID
    assert len(made["excludeCredentials"]) == 1
    assert known.handle == root.person.id.bytes


def test_person_has_several_keys_and_one_set_of_recovery_codes(root: User) -> None:
    codes = make_authenticator(root)
    first, second = make_security_key(root), make_security_key(root, name="other")

    browsers = [Client(), Client(), Client(), Client()]
    sign_in_with(browsers[0], root, first)
    sign_in_with(browsers[1], root, second)
    for browser, code in zip(browsers[2:], (code_of(root), codes[0]), strict=True):
        show_password(browser, root)
        browser.post(CODE, {"code": code})

    assert all(map(is_signed_in, browsers))
    assert RecoveryCode.objects.count() == 9


def test_operator_without_a_factor_registers_a_key_while_signing_in(required: None, root: User) -> None:
    client, key = Client(), SoftwareKey()

    show_password(client, root)
    between = is_signed_in(client)
    answer = client.post(
        ENROL_KEY, {"name": "k", "credential": key.create(options(client, "login_enrol_key_options"))}
    )

    assert not between
    assert is_signed_in(client)
    assert len(client.get(target(answer)).context["codes"]) == 10
    assert types_of(root) == ["person.security_key_added", "person.signed_in"]


def test_whoever_has_a_key_cannot_set_up_another_factor_with_the_password_alone(
    required: None, root: User
) -> None:
    make_security_key(root)
    client = Client()
    show_password(client, root)

    assert target(client.get(reverse("admin:login_enrol"))) == CODE
    assert target(client.get(ENROL_KEY)) == CODE
    assert client.post(reverse("admin:login_enrol_key_options")).status_code == 409


@pytest.mark.parametrize("page", ["account_key_add", "account_enrol"])
def test_second_factor_is_shown_again_before_another_is_added(root: User, page: str) -> None:
    make_security_key(root)
    stolen = console_of(root)

    answer = stolen.get(reverse(f"admin:{page}"))

    assert target(answer).startswith(reverse("admin:account_confirm"))
    assert stolen.post(reverse("admin:account_key_add_options")).status_code == 409
    assert stolen.post(ADD, {"name": "k", "credential": "{}"}).status_code == 302
    assert SecurityKey.objects.count() == 1


def test_confirmation_by_key_or_code_lasts_ten_minutes(root: User, monkeypatch: pytest.MonkeyPatch) -> None:
    make_authenticator(root)
    key = make_security_key(root)
    by_key, by_code = console_of(root), console_of(root)
    confirm = f"{reverse('admin:account_confirm')}?next={ADD}"

    answers = [
        by_key.post(confirm, {"credential": key.get(options(by_key, "account_key"))}),
        by_code.post(confirm, {"code": code_of(root)}),
    ]

    assert [target(answer) for answer in answers] == [ADD, ADD]
    assert by_key.get(ADD).status_code == 200
    assert by_code.get(reverse("admin:account_enrol")).status_code == 302
    assert last_of(root, "person.confirmed") == {"second_factor": "app"}
    session = by_key.session
    session[pending.CONFIRMED] = (now() - timedelta(minutes=11)).isoformat()
    session.save()
    assert by_key.get(ADD).status_code == 302


def test_key_is_registered_once_in_the_house(root: User, lee: User) -> None:
    key = make_security_key(lee)
    client = console_of(root)

    answer = client.post(
        ADD, {"name": "k", "credential": key.create(options(client, "account_key_add_options"))}
    )

    assert "registered already" in answer.content.decode()
    assert not keys.of(root).exists()


def test_person_keeps_a_bounded_number_of_keys(root: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_KEYS", 1)
    make_security_key(root)
    client = confirmed(root)

    answer = client.post(
        ADD, {"name": "k", "credential": SoftwareKey().create(options(client, "account_key_add_options"))}
    )

    assert "remove one first" in answer.content.decode()
    assert keys.of(root).count() == 1


# --- Removing ----------------------------------------------------------------------------------------


def test_own_key_is_removed_with_its_codes_and_a_colleagues_is_not(root: User, lee: User) -> None:
    mine, other = make_security_key(root), make_security_key(lee)
    client = confirmed(root)

    refused = client.post(KEYS, {"key": row_of(other).id}, follow=True)
    client.post(KEYS, {"key": row_of(mine).id})

    assert "not yours" in refused.content.decode()
    assert [key.person_id for key in SecurityKey.objects.all()] == [lee.person.id]
    assert RecoveryCode.objects.filter(person=root.person).count() == 0
    assert last_of(root, "person.security_key_removed")["name"] == "blue key"


def test_key_is_not_removed_by_a_session_alone(root: User) -> None:
    key = make_security_key(root)

    answer = console_of(root).post(KEYS, {"key": row_of(key).id})

    assert target(answer).startswith(reverse("admin:account_confirm"))
    assert keys.of(root).exists()


def test_reset_removes_app_keys_and_codes(root: User) -> None:
    kim = make_staff("kim")
    make_authenticator(kim)
    key = row_of(make_security_key(kim))

    url = reverse("admin:auth_user_reset_second_factor", args=[kim.pk])
    page = console_of(root).get(reverse("admin:auth_user_change", args=[kim.pk])).content.decode()
    console_of(root).post(url, {"reason": "lost all, came in person"})

    assert "blue key" in page
    assert not keys.of(kim).exists()
    assert not RecoveryCode.objects.exists()
    assert last_of(kim, "person.second_factor_removed") == {
        "reason": "lost all, came in person",
        "security_keys": [str(key.id)],
    }


def test_removed_app_leaves_key_and_codes(root: User) -> None:
    codes = make_authenticator(root)
    make_security_key(root)

    console_of(root).post(ACCOUNT, {"do": "remove", "code": codes[0]})

    assert keys.of(root).exists()
    assert RecoveryCode.objects.count() == 9


def test_key_alone_gives_new_recovery_codes(root: User) -> None:
    make_security_key(root)
    client = confirmed(root)

    answer = client.post(KEYS, {"do": "codes"})

    assert len(client.get(target(answer)).context["codes"]) == 10
    assert types_of(root)[-1] == "person.recovery_codes_made"


def test_offered_app_code_still_enrols_beside_a_key(root: User) -> None:
    make_security_key(root)
    client = confirmed(root)

    answer = client.post(reverse("admin:account_enrol"), {"code": offered_code(client)})

    assert answer.status_code == 302
    assert RecoveryCode.objects.count() == 10
