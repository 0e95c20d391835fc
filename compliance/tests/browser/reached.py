"""How to reach the pages that need a state of their own; a page's name leads to the way to it."""

import base64
from collections.abc import Callable
from itertools import count

from django.contrib.auth.models import User
from playwright.sync_api import Page

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.people.doors import links
from compliance.people.tests.authenticators import code_from, make_authenticator
from compliance.tests.browser.steps import button, follow, press
from compliance.tests.browser.world import OPERATOR, PASSWORD, World, show_password
from compliance.tests.console import make_operator, make_staff

ACTOR = Actor.system("tests")
NUMBERS = count(1)


def make_person(*, is_operator: bool = False) -> User:
    """Somebody new with a password; operators have no second factor yet."""
    name = f"person-{next(NUMBERS)}"
    user = make_operator(name) if is_operator else make_staff(name)
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    return user


def set_up_app(page: Page) -> bytes:
    """Type the code of an app that has the key which the page shows; return that key."""
    secret = base64.b32decode(page.locator("code.console-code").inner_text())
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
    page.wait_for_url("**/login/enrol/**")
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
    page.wait_for_url("**/login/code/**")
    return page


def _link_password(world: World) -> Page:
    token, _ = links.make(user=make_person(), actor=ACTOR, now=now())
    page = world.browser_of(None)
    page.goto(f"/admin/live/join/{token}/")
    return page


def _console_secret(world: World) -> Page:
    page = world.browser_of(OPERATOR)
    follow(page, "auth_user_link", make_person().pk)
    press(page, button(page, "Make one-time link"))
    return page


def _console_doctor(world: World) -> Page:
    page = world.browser_of(OPERATOR)
    follow(page, "console_system")
    press(page, button(page, "Run the doctor"))
    return page


WAYS: dict[str, Callable[[World], Page]] = {
    "console_doctor": _console_doctor,
    "console_secret": _console_secret,
    "link_password": _link_password,
    "login": _login,
    "login_code": _login_code,
    "login_enrol": _login_enrol,
    "recovery_codes": _recovery_codes,
}
