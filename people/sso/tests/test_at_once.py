"""One answer of the provider that comes in several tabs at the same moment."""

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.console import make_staff
from compliance.tests.threads import THREADS, at_once
from people.sso import identities
from people.sso.configuration import sign_on
from people.sso.tests.forging import Forger, signed
from people.sso.tests.providers import begin, parameters_of
from people.sso.tokens import Claims
from people.tests.authenticators import ACTOR


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
    config, name = sign_on(), f"twin-{new_id()}"
    assert config is not None

    def enter() -> str:
        claims = Claims(subject=str(new_id()), values={"preferred_username": name})
        return identities.create(claims=claims, config=config, now=now()).username

    names = at_once(enter)

    assert len(set(names)) == THREADS
    assert all(one.startswith(name) for one in names)
