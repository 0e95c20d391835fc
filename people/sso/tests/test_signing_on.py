"""Signing in at a real provider (django-oauth-toolkit, in its own process, over HTTP)."""

from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.core.clock import now
from compliance.tests.console import actor_id_of, make_operator, make_staff
from people.models import ExternalIdentity
from people.sso import identities
from people.sso.tests import toolkit
from people.sso.tests.providers import Toolkit, address_in, answers, begin, configure, follow, parameters_of
from people.tests.authenticators import ACTOR, code_of, make_authenticator
from people.tests.test_signing_in import PASSWORD, sign_in


@pytest.fixture
def kim(provider: Toolkit) -> User:
    """A person who is linked to the provider's account of this name."""
    user = make_staff("kim", password=PASSWORD)
    link(user, provider)
    return user


def link(user: User, provider: Toolkit, subject: str = "account-of-kim") -> None:
    identities.link(user=user, issuer=provider.issuer, subject=subject, via="tests", actor=ACTOR, now=now())


def sign_on(client: Client, provider: Toolkit, name: str = "kim", **form: str) -> Any:
    return follow(client, provider.sign_in(begin(client, **form), name))


def who(client: Client) -> str | None:
    """Whom the browser has signed in."""
    page: Any = client.get(reverse("mfa_index"))
    return page.wsgi_request.user.username if page.status_code == 200 else None


def of_type(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.of_type(action).order_by("created_at", "id"))


def test_linked_account_signs_in(kim: User, provider: Toolkit, client: Client) -> None:
    answer = sign_on(client, provider, next="/admin/test/agents/agent/")

    (entry,) = of_type("person.signed_in")
    assert (answer.status_code, answer.url) == (302, "/admin/test/agents/agent/")
    assert who(client) == "kim"
    assert entry.actor_id == actor_id_of("kim")
    assert facts_of(entry) == {"second_factor": None, "sign_on": provider.issuer, "address": "127.0.0.1"}


def test_flow_is_the_strict_one(kim: User, provider: Toolkit, client: Client) -> None:
    asked = parameters_of(begin(client))

    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == f"{settings.BASE_URL}/admin/live/login/sso/callback/"
    assert all(len(asked[name]) >= 43 for name in ("state", "nonce", "code_challenge"))
    assert asked["scope"] == "openid profile email"


def test_begun_in_the_sandbox_it_comes_back_to_the_one_address(
    kim: User, provider: Toolkit, client: Client
) -> None:
    page: Any = client.post("/admin/test/login/sso/", {"next": "/admin/test/"})

    assert "admin/live/login/sso/callback/" in parameters_of(address_in(page))["redirect_uri"]


def test_unknown_account_is_refused_and_makes_nobody(provider: Toolkit, client: Client) -> None:
    people = User.objects.count()

    answer = sign_on(client, provider)

    (entry,) = of_type("person.sign_in_failed")
    assert answer.status_code == 403
    assert "ask an operator" in answer.content.decode()
    assert (who(client), User.objects.count()) == (None, people)
    assert (entry.affected_id, entry.actor_id) == (None, "console")
    assert facts_of(entry) == {
        "sign_on": provider.issuer,
        "reason": "not_linked",
        "subject": "account-of-kim",
        "address": "127.0.0.1",
    }


def test_unknown_account_makes_a_person_without_any_role(
    provider: Toolkit, client: Client, settings: Any
) -> None:
    settings.OIDC_CREATE_PEOPLE = True
    provider.add(preferred_username="kim", email="kim@example.org", email_verified=True)

    sign_on(client, provider)
    client.logout()
    again = sign_on(client, provider)

    made = User.objects.get(username="kim")
    assert (again.status_code, who(client)) == (302, "kim")
    assert (made.email, made.is_superuser, made.has_usable_password()) == ("kim@example.org", False, False)
    assert not made.memberships.exists()
    assert [entry.actor_id for entry in of_type("person.created")] == ["single_sign_on"]
    (linked,) = of_type("person.sign_on_linked")
    assert (linked.metadata or {})["via"] == "creation"


@pytest.mark.parametrize("creates", [True, False])
@pytest.mark.parametrize("verified", [True, False])
def test_claimed_name_and_address_of_an_operator_open_nothing(
    provider: Toolkit, client: Client, settings: Any, *, creates: bool, verified: bool
) -> None:
    settings.OIDC_CREATE_PEOPLE = creates
    settings.SECOND_FACTOR = "nobody"
    root = make_operator("root")
    User.objects.filter(pk=root.pk).update(email="root@example.org")
    provider.add(preferred_username="Root", email="root@example.org", email_verified=verified)

    sign_on(client, provider)

    assert not ExternalIdentity.objects.filter(person__user=root).exists()
    assert who(client) != "root"
    assert User.objects.filter(is_superuser=True).count() == 1
    assert User.objects.filter(username__iexact="root").count() == 1


@pytest.mark.parametrize("fields", [{"is_active": False}, {"is_staff": False}])
def test_inactive_person_is_refused(
    kim: User, provider: Toolkit, client: Client, fields: dict[str, Any]
) -> None:
    User.objects.filter(pk=kim.pk).update(**fields)

    answer = sign_on(client, provider)

    (entry,) = of_type("person.sign_in_failed")
    assert answer.status_code == 403
    assert who(client) is None
    assert entry.affected_id == str(kim.person.id)
    assert (entry.metadata or {})["reason"] == "inactive"


def test_own_second_factor_still_follows(kim: User, provider: Toolkit, client: Client) -> None:
    make_authenticator(kim)

    answer = sign_on(client, provider)
    before = who(client)
    client.post(answer.url, {"code": code_of(kim)})

    (entry,) = of_type("person.signed_in")
    assert answer.url.startswith(reverse("mfa_authenticate"))
    assert (before, who(client)) == (None, "kim")
    assert (entry.metadata or {})["second_factor"] == "app"
    assert (entry.metadata or {})["sign_on"] == provider.issuer


def test_operator_without_an_app_sets_one_up(provider: Toolkit, client: Client, settings: Any) -> None:
    settings.SECOND_FACTOR = "operators"
    link(make_operator("root"), provider)

    answer = sign_on(client, provider)

    assert answer.url.startswith(reverse("enrol_app"))
    assert who(client) is None


@pytest.mark.parametrize(
    ("setting", "claims"),
    [("OIDC_SECOND_FACTOR_AMR", {"amr": ["pwd", "otp"]}), ("OIDC_SECOND_FACTOR_ACR", {"acr": "otp"})],
)
def test_named_factor_of_the_provider_stands_for_ours(
    provider: Toolkit, client: Client, settings: Any, setting: str, claims: dict[str, Any]
) -> None:
    setattr(settings, setting, ["otp", "hwk"])
    provider.add(**claims)
    root = make_operator("root")
    link(root, provider)
    make_authenticator(root)

    answer = sign_on(client, provider)

    (entry,) = of_type("person.signed_in")
    assert answer.url == reverse("admin:index")
    assert who(client) == "root"
    assert (entry.metadata or {})["second_factor"] == "provider"


@pytest.mark.parametrize("claims", [{"amr": ["pwd"]}, {"amr": "otp"}, {"acr": "otp"}, {"amr": [["otp"]]}])
def test_other_factor_of_the_provider_does_not(
    provider: Toolkit, client: Client, settings: Any, claims: dict[str, Any]
) -> None:
    settings.OIDC_SECOND_FACTOR_AMR = ["otp"]
    provider.add(**claims)
    root = make_operator("root")
    link(root, provider)
    make_authenticator(root)

    sign_on(client, provider)

    assert who(client) is None


@pytest.mark.parametrize(
    ("claims", "is_let_in"),
    [
        ({"groups": ["staff", "console"]}, True),
        ({"groups": "console"}, True),
        ({"groups": True}, False),
        ({"groups": ["consoles"]}, False),
        ({"groups": {"console": 1}}, False),
        ({}, False),
    ],
)
def test_claim_decides_who_enters(
    kim: User, provider: Toolkit, client: Client, settings: Any, claims: dict[str, Any], *, is_let_in: bool
) -> None:
    settings.OIDC_ALLOWED_CLAIM, settings.OIDC_ALLOWED_VALUES = "groups", ["console"]
    provider.add(**claims)

    sign_on(client, provider)

    assert (who(client) == "kim") is is_let_in


def test_code_counts_once_and_so_does_the_answer(kim: User, provider: Toolkit, client: Client) -> None:
    back = provider.sign_in(begin(client))
    follow(client, back)
    client.post(reverse("account_logout"))

    again = follow(client, back)
    asked = begin(client)
    state = parameters_of(asked)["state"]
    replayed = follow(client, back.replace(parameters_of(back)["state"], state))

    assert (again.status_code, replayed.status_code) == (403, 403)
    assert who(client) is None
    reasons = [(entry.metadata or {})["reason"] for entry in of_type("person.sign_in_failed")]
    assert reasons == ["state", "code"]


def test_answer_of_another_browser_signs_nobody_in(kim: User, provider: Toolkit) -> None:
    attacker, victim = Client(), Client()
    back = provider.sign_in(begin(attacker))
    begin(victim)

    answer = follow(victim, back)

    assert answer.status_code == 403
    assert who(victim) is None
    assert follow(attacker, back).status_code == 302


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/v1/docs",
        "",
        "x",
    ],
)
def test_leads_nowhere_else(kim: User, provider: Toolkit, client: Client, wanted: str) -> None:
    assert sign_on(client, provider, next=wanted).url == reverse("admin:index")


def test_somebody_else_in_the_same_browser_is_signed_out(
    kim: User, provider: Toolkit, client: Client
) -> None:
    make_staff("lee", password=PASSWORD)
    back = provider.sign_in(begin(client))
    client.post(reverse("account_login"), {"login": "lee", "password": PASSWORD})
    begun, before = client.session.session_key, who(client)

    follow(client, back)

    assert (before, who(client)) == ("lee", "kim")
    assert client.session.session_key != begun
    assert UserSession.objects.purge_and_list(User.objects.get(username="lee")) == []


def test_provider_that_is_away_is_a_503(kim: User, client: Client, settings: Any) -> None:
    configure(settings, "http://127.0.0.1:9")

    answer: Any = client.post(reverse("admin:sso_begin"))
    page = client.get(reverse("account_login"))

    assert answer.status_code == 503
    assert "Retry-After" in answer.headers
    assert "does not answer" in answer.content.decode()
    assert page.status_code == 200
    assert sign_in(client, "kim", PASSWORD).status_code == 302


def test_signing_out_goes_on_to_the_provider(kim: User, provider: Toolkit, client: Client) -> None:
    sign_on(client, provider)

    answer = client.post(reverse("account_logout"))

    address = address_in(answer)
    assert who(client) is None
    assert address.startswith(f"{provider.issuer}/logout/")
    assert parameters_of(address)["post_logout_redirect_uri"] == f"{settings.BASE_URL}/admin/live/login/"
    assert parameters_of(address)["id_token_hint"].count(".") == 2
    assert answers(f"{provider.issuer}/.well-known/openid-configuration")


def test_signing_out_after_a_password_stays_here(kim: User, provider: Toolkit, client: Client) -> None:
    sign_on(client, provider)
    client.post(reverse("account_logout"))
    sign_in(client, "kim", PASSWORD)

    answer = client.post(reverse("account_logout"))

    assert b"http-equiv" not in answer.content
    assert (of_type("person.signed_in")[-1].metadata or {}).get("sign_on") is None


def test_only_way_refuses_passwords(kim: User, provider: Toolkit, client: Client, settings: Any) -> None:
    settings.OIDC_ONLY = True

    page = client.get(reverse("account_login"))
    answer = sign_in(client, "kim", PASSWORD)

    assert b"Example ID" in page.content
    assert b'type="password"' not in page.content
    assert "Nobody signs in with a password here." in answer.content.decode()
    assert who(client) is None
    assert sign_on(client, provider).status_code == 302
    assert who(client) == "kim"


def test_secret_never_reaches_a_page_or_the_log(kim: User, provider: Toolkit, client: Client) -> None:
    sign_on(client, provider)

    said = str(list(AuditEntry.objects.values())) + client.get(reverse("mfa_index")).content.decode()
    assert toolkit.CLIENT_SECRET not in said
    assert toolkit.CLIENT_SECRET not in str(client.session.items())
