"""Security keys: registered and removed by somebody who just proved who they are, used at the second step."""

from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from compliance.tests.console import console_of, make_staff
from people.tests.authenticators import code_of, make_authenticator
from people.tests.security_keys import (
    EDDSA,
    ES256,
    RP_ID,
    RS256,
    SoftwareKey,
    confirmed,
    keys_of,
    last_of,
    make_security_key,
    options,
    registered,
    row_of,
    sign_in_with,
)
from people.tests.test_second_factor import CODE, SIGN_IN, is_signed_in, show_password, target, types_of

ADD, ENROL_KEY = reverse("mfa_add_webauthn"), reverse("enrol_key")
AGAIN = reverse("mfa_reauthenticate_webauthn")


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
def test_key_of_each_algorithm_is_registered_and_signs_in(root: User, algorithm: int) -> None:
    owner, client, key = confirmed(root), Client(), SoftwareKey(algorithm)

    answer = owner.post(
        ADD, {"name": "blue key", "credential": key.create(options(owner, "mfa_add_webauthn"))}
    )
    codes = owner.get(target(answer)).context["unused_codes"]
    sign_in_with(client, root, key)

    assert len(codes) == 10
    assert is_signed_in(client)
    assert str(row_of(key)) == "blue key"
    assert row_of(key).last_used_at is not None
    assert types_of(root) == ["person.security_key_added", "person.signed_in"]
    assert last_of(root, "person.signed_in") == {"address": "127.0.0.1", "second_factor": "security_key"}


def test_options_name_the_console_and_the_keys_that_are_known(root: User) -> None:
    make_security_key(root)

    made = options(confirmed(root), "mfa_add_webauthn")

    assert made["authenticatorSelection"]["userVerification"] == "preferred"
    assert made["rp"]["id"] == RP_ID
    assert len(made["excludeCredentials"]) == 1


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
    assert len(Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()) == 9


def test_operator_without_a_factor_registers_a_key_while_signing_in(required: None, root: User) -> None:
    client, key = Client(), SoftwareKey()

    show_password(client, root)
    between = is_signed_in(client)
    answer = client.post(ENROL_KEY, {"name": "k", "credential": key.create(options(client, "enrol_key"))})

    assert not between
    assert is_signed_in(client)
    assert len(client.get(target(answer)).context["unused_codes"]) == 10
    assert types_of(root) == ["person.security_key_added", "person.signed_in"]


@pytest.mark.parametrize("make", [make_security_key, make_authenticator])
def test_whoever_has_a_factor_cannot_set_up_another_with_the_password_alone(
    required: None, root: User, make: Callable[[User], object]
) -> None:
    make(root)
    client = Client()
    show_password(client, root)

    assert target(client.get(reverse("enrol_app"))) == SIGN_IN
    assert target(client.get(ENROL_KEY)) == SIGN_IN


def test_second_key_is_not_set_up_by_somebody_who_began_before_the_first(required: None, root: User) -> None:
    client, key = Client(), SoftwareKey()
    show_password(client, root)
    answer = key.create(options(client, "enrol_key"))
    make_authenticator(root)

    client.post(ENROL_KEY, {"name": "k", "credential": answer})

    assert not is_signed_in(client)
    assert not keys_of(root).exists()


@pytest.mark.parametrize("page", ["mfa_add_webauthn", "mfa_activate_totp"])
def test_second_factor_is_shown_again_before_another_is_added(root: User, page: str) -> None:
    make_security_key(root)
    stolen = console_of(root)

    answers = [stolen.get(reverse(page)), stolen.post(ADD, {"name": "k", "credential": "{}"})]

    assert all(target(answer).startswith("/admin/live/account/") for answer in answers)
    assert all("reauthenticate" in target(answer) for answer in answers)
    assert keys_of(root).count() == 1


def test_key_shown_again_opens_the_page_that_was_asked_for(root: User) -> None:
    key = make_security_key(root)
    client = console_of(root)

    answer = client.post(
        f"{AGAIN}?next={ADD}", {"credential": key.get(options(client, "mfa_reauthenticate_webauthn"))}
    )

    assert target(answer) == ADD
    assert client.get(ADD).status_code == 200
    assert last_of(root, "person.confirmed") == {"second_factor": "security_key"}


def test_own_key_is_removed_with_its_codes_and_a_colleagues_is_not(root: User, lee: User) -> None:
    mine, other = row_of(make_security_key(root)), row_of(make_security_key(lee))
    client = confirmed(root)

    refused = client.post(reverse("mfa_remove_webauthn", args=[other.pk]))
    client.post(reverse("mfa_remove_webauthn", args=[mine.pk]))

    assert refused.status_code == 404
    assert set(Authenticator.objects.values_list("user_id", flat=True)) == {lee.pk}
    assert last_of(root, "person.security_key_removed")["name"] == "blue key"


def test_key_is_not_removed_by_a_session_alone(root: User) -> None:
    row = row_of(make_security_key(root))

    answer = console_of(root).post(reverse("mfa_remove_webauthn", args=[row.pk]))

    assert "reauthenticate" in target(answer)
    assert keys_of(root).exists()


def test_reset_removes_app_keys_and_codes(root: User) -> None:
    kim = make_staff("kim")
    make_authenticator(kim)
    key = row_of(make_security_key(kim))

    url = reverse("admin:auth_user_reset_second_factor", args=[kim.pk])
    page = console_of(root).get(reverse("admin:auth_user_change", args=[kim.pk])).content.decode()
    console_of(root).post(url, {"reason": "lost all, came in person"})

    assert "blue key" in page
    assert not Authenticator.objects.exists()
    assert last_of(kim, "person.second_factor_removed") == {
        "reason": "lost all, came in person",
        "security_keys": [str(key.pk)],
    }


def test_removed_app_leaves_key_and_codes(root: User) -> None:
    make_authenticator(root)
    make_security_key(root)

    confirmed(root).post(reverse("mfa_deactivate_totp"))

    left: Any = Authenticator.objects.order_by("type").values_list("type", flat=True)
    assert list(left) == ["recovery_codes", "webauthn"]


def test_person_without_an_address_of_their_own_registers_no_key_of_a_stranger(root: User) -> None:
    stranger = registered(confirmed(root))

    answer = confirmed(root).post(ADD, {"name": "k", "credential": stranger})

    assert answer.status_code == 200
    assert not keys_of(root).exists()


@pytest.mark.parametrize("page", ["mfa_remove_webauthn", "mfa_edit_webauthn", "mfa_list_webauthn"])
def test_pages_of_a_key_are_shown(root: User, page: str) -> None:
    row = row_of(make_security_key(root))

    answer = confirmed(root).get(reverse(page, args=[] if "list" in page else [row.pk]))

    assert answer.status_code == 200
    assert "blue key" in answer.content.decode() or page == "mfa_remove_webauthn"
