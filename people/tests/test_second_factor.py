"""Sign-in with an authenticator app: required by setting, codes once, recovery, reset, nothing in clear."""

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import decrypt
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import checks
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.vocabulary import SERVICE_TENANT_ID
from compliance.tests.console import console_of, make_operator, make_staff
from people.doors import second_factor
from people.tests.authenticators import code_of, make_authenticator, offered_code

PASSWORD = "correct horse battery"
SIGN_IN, CODE, ENROL, AGAIN = (
    reverse(name) for name in ("account_login", "mfa_authenticate", "enrol_app", "mfa_reauthenticate")
)


@pytest.fixture
def required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SECOND_FACTOR", "operators")


@pytest.fixture
def root() -> User:
    user = make_operator()
    user.set_password(PASSWORD)
    user.save()
    return user


def show_password(client: Client, user: User, **fields: str) -> Any:
    return client.post(SIGN_IN, {"login": user.username, "password": PASSWORD, **fields})


def target(answer: Any) -> str:
    """Where a redirect leads."""
    return str(answer.url)


def is_signed_in(client: Client) -> bool:
    return client.get(reverse("admin:index")).status_code == 200


def types_of(user: User) -> list[str]:
    found = AuditEntry.objects.filter(tenant_id=SERVICE_TENANT_ID, affected_id=str(user.person.id))
    return [entry.event_type for entry in found.order_by("id")]


def confirm(client: Client, user: User) -> None:
    """Show a code of the app again."""
    client.post(AGAIN, {"code": code_of(user, later=1)})


def test_operator_without_an_app_sets_one_up_while_signing_in(required: None, root: User) -> None:
    client = Client()

    password = show_password(client, root)
    between = is_signed_in(client)
    answer = client.post(ENROL, {"code": offered_code(client, "enrol_app")})
    codes = client.get(target(answer))
    again = client.get(target(answer))

    assert password.url == ENROL
    assert not between
    assert is_signed_in(client)
    assert len(set(codes.context["unused_codes"])) == 10
    assert set(again.context["unused_codes"]) == {"****"}
    assert types_of(root) == ["person.second_factor_added", "person.signed_in"]


def test_app_is_asked_for_and_its_code_counts_once(root: User) -> None:
    make_authenticator(root)
    client, other = Client(), Client()
    code = code_of(root)

    answer = show_password(client, root, next="/admin/agents/agent/")
    client.post(target(answer), {"code": code})
    show_password(other, root)
    refused = other.post(CODE, {"code": code})
    accepted = other.post(CODE, {"code": code_of(root, later=1)})

    assert is_signed_in(client)
    assert "Incorrect code" in refused.content.decode()
    assert accepted.status_code == 302
    assert types_of(root) == ["person.signed_in", "person.sign_in_failed", "person.signed_in"]


def test_page_wanted_first_is_reached_and_foreign_ones_are_not(root: User) -> None:
    make_authenticator(root)
    client = Client()

    step = show_password(client, root, next="/admin/agents/agent/")
    there = client.post(step.url, {"code": code_of(root)})
    client.post(reverse("account_logout"))
    show_password(client, root, next="https://evil.example/")
    away = client.post(CODE, {"code": code_of(root, later=1)})

    assert target(there) == "/admin/agents/agent/"
    assert target(away) == reverse("admin:index")


def test_recovery_code_signs_in_once(root: User) -> None:
    recovery = make_authenticator(root)[3]
    first, second = Client(), Client()

    show_password(first, root)
    first.post(CODE, {"code": recovery})
    show_password(second, root)
    second.post(CODE, {"code": recovery})

    assert is_signed_in(first)
    assert not is_signed_in(second)


def test_wrong_codes_close_the_door(root: User) -> None:
    make_authenticator(root)
    client = Client()
    show_password(client, root)

    for _ in range(5):
        client.post(CODE, {"code": "000000"})
    answer = client.post(CODE, {"code": code_of(root)})

    assert "Too many failed login attempts" in answer.content.decode()
    assert not is_signed_in(client)


@pytest.mark.parametrize(
    "code",
    ["", " ", "x" * 65, "12345", "\uff11\uff12\uff13\uff14\uff15\uff16", "\x00", "½", "-" * 20, "aaaa-bbbb"],
)
def test_hostile_codes_are_wrong_codes(root: User, code: str) -> None:
    make_authenticator(root)
    client = Client()
    show_password(client, root)

    answer = client.post(CODE, {"code": code})

    assert answer.status_code == 200
    assert not is_signed_in(client)


def test_code_is_not_asked_of_those_who_showed_no_password_or_an_old_one(root: User) -> None:
    make_authenticator(root)
    client = Client()
    show_password(client, root)
    root.set_password("another horse battery")
    root.save()

    for browser in (Client(), client):
        answer = browser.post(CODE, {"code": code_of(root)})
        assert target(answer) == SIGN_IN
        assert target(browser.get(ENROL)) == SIGN_IN
        assert not is_signed_in(browser)


def test_session_from_before_the_requirement_has_no_rights(required: None, root: User) -> None:
    client = console_of(root)

    assert not is_signed_in(client)
    assert client.get(reverse("admin:agents_agent_changelist")).status_code == 302
    assert client.get(SIGN_IN).status_code == 200


@pytest.mark.parametrize(("value", "staff"), [("operators", False), ("everyone", True), ("odd", True)])
def test_setting_says_who_needs_it(monkeypatch: pytest.MonkeyPatch, value: str, staff: bool) -> None:
    monkeypatch.setattr(settings, "SECOND_FACTOR", value)

    assert second_factor.is_required_of(make_operator())
    assert second_factor.is_required_of(make_staff()) is staff


def test_deployment_without_it_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SECOND_FACTOR", "nobody")
    loose = {found.id for found in checks.run_checks(include_deployment_checks=True)}
    monkeypatch.setattr(settings, "SECOND_FACTOR", "odd")
    odd = {found.id for found in checks.run_checks()}

    assert "people.W001" in loose
    assert "people.E001" in odd


def test_command_resets_it_for_the_last_operator(root: User) -> None:
    make_authenticator(root)

    call_command("second_factor_reset", "root", reason="all codes lost")

    assert types_of(root)[-1] == "person.second_factor_removed"


@pytest.mark.parametrize(
    ("page", "event"),
    [
        ("mfa_generate_recovery_codes", "person.recovery_codes_made"),
        ("mfa_deactivate_totp", "person.second_factor_removed"),
        ("mfa_add_webauthn", None),
    ],
)
def test_own_factors_are_changed_only_after_a_code_was_shown_again(
    root: User, page: str, event: str | None, django_capture_on_commit_callbacks: Any
) -> None:
    make_authenticator(root)
    client = console_of(root)

    before: Any = client.post(reverse(page))
    password: Any = client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    still: Any = client.post(reverse(page))
    confirm(client, root)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(reverse(page))

    assert [answer.url.split("?")[0] for answer in (before, password, still)] == [AGAIN] * 3
    assert types_of(root)[0] == "person.confirmed"
    assert event is None or event in types_of(root)


def test_removed_app_ends_other_sessions_and_the_recovery_codes(root: User) -> None:
    make_authenticator(root)
    other, client = Client(), Client()
    for browser, later in ((other, -1), (client, 0)):
        show_password(browser, root)
        browser.post(CODE, {"code": code_of(root, later=later)})
    confirm(client, root)

    client.post(reverse("mfa_deactivate_totp"))

    assert not Authenticator.objects.exists()
    assert is_signed_in(client)
    assert not is_signed_in(other)


def test_secrets_are_stored_encrypted(required: None, root: User) -> None:
    client = Client()
    show_password(client, root)
    offered_code(client, "enrol_app")
    codes = make_authenticator(root)

    stored = str(list(Authenticator.objects.values())) + str(list(Session.objects.values()))
    secret = decrypt(Authenticator.objects.get(type="totp").data["secret"])

    assert secret not in stored
    assert client.session["mfa.totp.secret"] not in stored
    assert not any(code in stored for code in codes)


def test_pages_show_no_secret_twice_and_to_nobody_else(root: User) -> None:
    make_authenticator(root)
    client = console_of(root)

    account = client.get(reverse("mfa_index"))
    enrol = client.get(reverse("mfa_activate_totp"))

    assert "Recovery codes left: 10" in account.content.decode()
    assert enrol.status_code == 302
