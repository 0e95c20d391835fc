"""How to reach the pages that need a state of their own; a page's name leads to the way to it."""

import re
from collections.abc import Callable
from itertools import count

from django.contrib.auth.models import User
from django.test import override_settings
from playwright.sync_api import Page

from agents.models import OwnerMail
from agents.tests.factories import make_agent
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.encryption import decrypt
from compliance.tests.browser.steps import follow, press
from compliance.tests.browser.world import PASSWORD, World, show_password
from compliance.tests.console import make_operator, make_staff
from gateway.approvals.tests.factories import make_approval
from people.doors import links
from people.tests.authenticators import code_from, make_authenticator

ACTOR = Actor.system("tests")
NUMBERS = count(1)


def make_person(*, is_operator: bool = False) -> User:
    """Somebody new with a password; operators have no second factor yet."""
    name = f"person-{next(NUMBERS)}"
    user = make_operator(name) if is_operator else make_staff(name)
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    return user


def set_up_app(page: Page) -> str:
    """Type the code of an app that has the key which the page shows; return that key."""
    secret = page.locator("code.console-code").inner_text()
    page.get_by_label("Code").fill(code_from(secret))
    press(page, page.get_by_role("button", name="Set up"))
    return secret


def _login(world: World) -> Page:
    page = world.browser_of(None)
    page.goto("/admin/live/login/")
    return page


def _login_enrol(world: World) -> Page:
    page = world.browser_of(None)
    show_password(page, make_person(is_operator=True).username)
    page.wait_for_url("**/login/enrol/")
    return page


def _login_enrol_key(world: World) -> Page:
    page = _login_enrol(world)
    follow(page, "enrol_key")
    return page


def _account_confirm(world: World) -> Page:
    user = make_person()
    make_authenticator(user)
    page = world.browser_of(user)
    follow(page, "mfa_reauthenticate")
    return page


def _remove_app(world: World) -> Page:
    user = make_person()
    make_authenticator(user)
    page = world.browser_of(user)
    follow(page, "mfa_deactivate_totp")
    return page


def _recovery_codes(world: World) -> Page:
    page = _login_enrol(world)
    set_up_app(page)
    return page


def _login_code(world: World) -> Page:
    user = make_person()
    make_authenticator(user)
    page = world.browser_of(None)
    show_password(page, user.username)
    page.wait_for_url("**/account/authenticate/")
    return page


def _link_password(world: World) -> Page:
    token, _ = links.make(user=make_person(), actor=ACTOR, now=now())
    page = world.browser_of(None)
    page.goto(f"/admin/live/join/{token}/")
    return page


def _approval_link(world: World) -> Page:
    agent = make_agent(world.tenant, name="invoice-bot", owner_name="Kim Berg", owner_email="kim@example.com")
    with override_settings(EMAIL_HOST="mail.example.org"):
        make_approval(agent)
    waiting = OwnerMail.objects.filter(tenant=world.tenant).latest("created_at")
    link = re.search(r"/admin/live/approve/[^\s\\]+", decrypt(bytes(waiting.sealed)).decode())
    assert link
    page = world.browser_of(None)
    page.goto(link[0])
    return page


WAYS: dict[str, Callable[[World], Page]] = {
    "account_login": _login,
    "approval_link_form": _approval_link,
    "link_password": _link_password,
    "login": _login,
    "enrol_app": _login_enrol,
    "enrol_key": _login_enrol_key,
    "mfa_authenticate": _login_code,
    "mfa_deactivate_totp": _remove_app,
    "mfa_reauthenticate": _account_confirm,
    "mfa_view_recovery_codes": _recovery_codes,
}
