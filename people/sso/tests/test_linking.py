"""An account of the provider is linked by its person, an operator or an invitation; and unlinked."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.console import actor_id_of, console_of, make_operator, make_staff
from compliance.tests.threads import THREADS, at_once
from people.doors import links
from people.models import ExternalIdentity, OneTimeLink
from people.sso import identities
from people.sso.identities import IdentityExists, IdentityTaken
from people.sso.tests.forging import SUBJECT, Forger, signed
from people.sso.tests.providers import address_in, begin, parameters_of
from people.sso.tests.test_signing_on import of_type, who
from people.sso.tokens import Claims
from people.tests.authenticators import ACTOR, code_of, make_authenticator
from people.tests.test_signing_in import PASSWORD, sign_in

OWN = reverse("admin:account_sso")


@pytest.fixture
def kim() -> User:
    return make_staff("kim", password=PASSWORD)


@pytest.fixture
def signed_in(kim: User, forger: Forger, client: Client) -> Client:
    sign_in(client, "kim", PASSWORD)
    return client


def link(user: User, forger: Forger, subject: str = SUBJECT) -> None:
    identities.link(user=user, issuer=forger.issuer, subject=subject, via="tests", actor=ACTOR, now=now())


def subjects_of(user: User) -> list[str]:
    return list(ExternalIdentity.objects.filter(person__user=user).values_list("subject", flat=True))


def show(client: Client, forger: Forger, page: Any, **claims: Any) -> Any:
    """Sign in at the provider, to which `page` leads."""
    asked = parameters_of(address_in(page))
    forger.answer = {"id_token": signed(forger.claims(asked["nonce"], **claims))}
    return forger.call_back(client, asked)


def test_person_links_and_unlinks_an_account(signed_in: Client, kim: User, forger: Forger) -> None:
    answer = show(signed_in, forger, signed_in.post(OWN, {"do": "link"}))
    linked = subjects_of(kim)
    page = signed_in.get(reverse("mfa_index"))
    signed_in.post(OWN, {"do": "unlink"})

    assert (answer.url, linked, subjects_of(kim)) == (reverse("mfa_index"), [SUBJECT], [])
    assert SUBJECT in page.content.decode()
    (first,), (last,) = of_type("person.sign_on_linked"), of_type("person.sign_on_unlinked")
    assert {first.actor_id, last.actor_id} == {actor_id_of("kim")}
    assert facts_of(first) == {"issuer": forger.issuer, "subject": SUBJECT, "via": "account"}
    assert first.affected_id == str(kim.person.id)


def test_session_left_open_links_nothing(signed_in: Client, forger: Forger, time_machine: Any) -> None:
    time_machine.move_to(now() + timedelta(minutes=11))

    answer = signed_in.post(OWN, {"do": "link"}, follow=True)

    assert "signed in a while ago" in answer.content.decode()
    assert b"http-equiv" not in answer.content


def test_account_of_somebody_else_is_not_linked(signed_in: Client, kim: User, forger: Forger) -> None:
    link(make_staff("lee"), forger)

    answer = show(signed_in, forger, signed_in.post(OWN, {"do": "link"}))

    assert (answer.status_code, subjects_of(kim)) == (403, [])
    assert "somebody else" in answer.content.decode()


def test_second_account_is_not_linked(signed_in: Client, kim: User, forger: Forger) -> None:
    link(kim, forger, "the first")

    answer = show(signed_in, forger, signed_in.post(OWN, {"do": "link"}))

    assert (answer.status_code, subjects_of(kim)) == (403, ["the first"])


def test_link_begun_by_one_person_links_nobody_else(signed_in: Client, forger: Forger) -> None:
    lee = make_staff("lee", password=PASSWORD)
    page = signed_in.post(OWN, {"do": "link"})
    asked = parameters_of(address_in(page))
    forger.answer = {"id_token": signed(forger.claims(asked["nonce"]))}
    signed_in.post(reverse("account_logout"))
    sign_in(signed_in, "lee", PASSWORD)

    answer = forger.call_back(signed_in, asked)

    assert (answer.status_code, subjects_of(lee)) == (403, [])


def test_person_without_a_password_cannot_unlink(forger: Forger) -> None:
    lee = make_staff("lee")
    link(lee, forger)
    client = console_of(lee)

    answer = client.post(OWN, {"do": "unlink"}, follow=True)

    assert subjects_of(lee) == [SUBJECT]
    assert "only way to sign in" in answer.content.decode()


def test_operator_links_and_unlinks(kim: User, forger: Forger, client: Client) -> None:
    operator = console_of(make_operator())
    operator.post(reverse("admin:auth_user_link_sign_on", args=[kim.pk]), {"subject": SUBJECT})
    forger.sign_in(client)
    page = operator.get(reverse("admin:auth_user_change", args=[kim.pk]))
    signed_in = who(client)
    operator.post(reverse("admin:auth_user_unlink_sign_on", args=[kim.pk]), {"reason": "left"})

    assert signed_in == "kim"
    assert SUBJECT in page.content.decode()
    assert subjects_of(kim) == []
    (first,), (last,) = of_type("person.sign_on_linked"), of_type("person.sign_on_unlinked")
    assert {first.actor_id, last.actor_id} == {actor_id_of("root")}
    assert (last.metadata or {})["reason"] == "left"


@pytest.mark.parametrize("subject", ["k\u0456m", "x" * 256, "a\x00b", ""])
def test_operator_enters_no_odd_subject(kim: User, forger: Forger, subject: str) -> None:
    console_of(make_operator()).post(
        reverse("admin:auth_user_link_sign_on", args=[kim.pk]), {"subject": subject}
    )

    assert subjects_of(kim) == []


def test_only_operators_link_others(kim: User, forger: Forger) -> None:
    console_of(make_staff("lee")).post(
        reverse("admin:auth_user_link_sign_on", args=[kim.pk]), {"subject": SUBJECT}
    )

    assert subjects_of(kim) == []


@pytest.mark.parametrize("is_only_way", [True, False])
def test_invitation_links_an_account(
    forger: Forger, client: Client, settings: Any, *, is_only_way: bool
) -> None:
    settings.OIDC_ONLY = is_only_way
    ada = make_staff("ada")
    token, _ = links.make(user=ada, actor=ACTOR, now=now())
    opened = client.get(reverse("admin:link", args=[token]), follow=True)

    answer = show(client, forger, client.post(reverse("admin:sso_invitation")))

    assert ("password1" in opened.content.decode()) is not is_only_way
    assert (answer.status_code, who(client), subjects_of(ada)) == (302, "ada", [SUBJECT])
    assert not OneTimeLink.objects.exists()
    (entry,) = of_type("person.sign_on_linked")
    assert ((entry.metadata or {})["via"], entry.actor_id) == ("invitation", actor_id_of("ada"))


def test_invitation_replaces_no_second_factor(forger: Forger, client: Client) -> None:
    ada = make_staff("ada")
    make_authenticator(ada)
    token, _ = links.make(user=ada, actor=ACTOR, now=now())
    client.get(reverse("admin:link", args=[token]))

    answer = show(client, forger, client.post(reverse("admin:sso_invitation")))

    assert answer.url.startswith(reverse("mfa_authenticate"))
    assert who(client) is None


def test_invitation_that_is_over_links_nothing(forger: Forger, client: Client) -> None:
    ada = make_staff("ada")
    token, _ = links.make(user=ada, actor=ACTOR, now=now())
    client.get(reverse("admin:link", args=[token]))
    page = client.post(reverse("admin:sso_invitation"))
    links.make(user=ada, actor=ACTOR, now=now())

    answer = show(client, forger, page)

    assert (answer.status_code, subjects_of(ada), who(client)) == (403, [], None)


def test_invitation_to_a_linked_account_of_another_is_kept(forger: Forger, client: Client) -> None:
    link(make_staff("lee"), forger)
    ada = make_staff("ada")
    token, _ = links.make(user=ada, actor=ACTOR, now=now())
    client.get(reverse("admin:link", args=[token]))

    answer = show(client, forger, client.post(reverse("admin:sso_invitation")))

    assert (answer.status_code, who(client)) == (403, None)
    assert OneTimeLink.objects.exists()


def test_database_holds_one_person_for_an_account(kim: User, forger: Forger) -> None:
    link(kim, forger)

    with pytest.raises(IdentityTaken):
        link(make_staff("lee"), forger)
    with pytest.raises(IdentityExists):
        link(kim, forger, "another")


def sign_in_link(username: str, capsys: pytest.CaptureFixture[str]) -> str:
    call_command("sign_in_link", username, reason="the provider is away")
    return capsys.readouterr().out.split()[0].removeprefix(settings.BASE_URL)


def test_operator_gets_in_while_the_provider_is_away(
    client: Client, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.OIDC_ONLY = True
    root = make_operator("root")
    make_authenticator(root)
    address = sign_in_link("root", capsys)

    opened = client.get(address, follow=True)
    looked = who(client)
    asked: Any = client.post(reverse("admin:link_password"))
    client.post(asked.url, {"code": code_of(root)})
    again = Client().get(address, follow=True)

    (entry,) = of_type("person.link_made")
    assert "once" in opened.content.decode()
    assert (looked, who(client)) == (None, "root")
    assert asked.url.startswith(reverse("mfa_authenticate"))
    assert "Ask for a new one" in again.content.decode()
    assert (entry.actor_id, (entry.metadata or {})["reason"]) == ("sign_in_link", "the provider is away")
    assert address.rpartition("/join/")[2].strip("/") not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("fields", [{"is_superuser": False}, {"is_active": False}])
def test_command_serves_operators_alone(fields: dict[str, Any]) -> None:
    root = make_operator("root")
    make_operator("other")
    User.objects.filter(pk=root.pk).update(**fields)

    with pytest.raises((CommandError, SystemExit)):
        call_command("sign_in_link", "root", reason="x")


def test_link_that_signs_in_sets_no_password_and_links_nothing(
    forger: Forger, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_operator("root")
    client.get(sign_in_link("root", capsys))

    invited = client.post(reverse("admin:sso_invitation"))
    client.post(reverse("admin:link_password"), {"password1": PASSWORD, "password2": PASSWORD})

    root.refresh_from_db()
    assert b"http-equiv" not in invited.content
    assert not root.has_usable_password()
    assert subjects_of(root) == []


def test_ordinary_link_signs_nobody_in(forger: Forger, client: Client, settings: Any) -> None:
    settings.OIDC_ONLY = True
    token, _ = links.make(user=make_operator("root"), actor=ACTOR, now=now())
    client.get(reverse("admin:link", args=[token]))

    client.post(reverse("admin:link_password"), {"password1": PASSWORD, "password2": PASSWORD})

    assert who(client) is None
    assert not User.objects.get(username="root").has_usable_password()


# --- One answer of the provider that comes in several tabs at the same moment ----------------------


@pytest.mark.usefixtures("committed")
def test_state_is_accepted_once(forger: Forger) -> None:
    user, subject = make_staff(f"tabs-{new_id()}"), str(new_id())
    identities.link(user=user, issuer=forger.issuer, subject=subject, via="tests", actor=ACTOR, now=now())
    browser = Client()
    asked = parameters_of(begin(browser))
    forger.answer = {"id_token": signed(forger.claims(asked["nonce"], sub=subject))}
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value

    def come_back() -> int:
        tab = Client()
        tab.cookies[settings.SESSION_COOKIE_NAME] = cookie
        return int(forger.call_back(tab, asked).status_code)

    answers = sorted(at_once(come_back))

    assert answers == [302, *[403] * (THREADS - 1)]
    assert len(forger.asked) == 1
    assert UserSession.objects.filter(user=user).count() == 1
    assert not Session.objects.filter(session_key=cookie).exists()


@pytest.mark.usefixtures("committed")
def test_new_people_who_claim_one_name_get_names_of_their_own(forger: Forger) -> None:
    name = f"twin-{new_id()}"

    def enter() -> str:
        claims = Claims(subject=str(new_id()), values={"preferred_username": name})
        return identities.create(claims=claims, now=now()).username

    names = at_once(enter)

    assert len(set(names)) == THREADS
    assert all(one.startswith(name) for one in names)
