"""Security keys in Chromium, with its virtual authenticators: registered, used, removed, refused in words."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import CDPSession, Page, expect

from compliance.tests.browser.axe import PHONE, assert_usable_by_all, violations
from compliance.tests.browser.world import PASSWORD, World
from compliance.tests.console import make_staff
from people.tests.authenticators import code_of, make_authenticator
from people.tests.security_keys import keys_of

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed", "quiet")]

NUMBERS = count(1)
USE, REGISTER = "Use a security key or passkey", "Register"
SECURITY_KEY = {"protocol": "ctap2", "transport": "usb", "isUserVerified": True}
PASSKEY = {"protocol": "ctap2", "transport": "internal", "hasUserVerification": True, "isUserVerified": True}


class Browser:
    """A person's browser at the name that keys know, with virtual keys plugged in."""

    def __init__(self, world: World, user: User) -> None:
        self.user = user
        self.home = f"{world.address.replace('127.0.0.1', 'localhost')}/admin/live/"
        self.page: Page = world.browser_of(None)
        self.cdp: CDPSession = self.page.context.new_cdp_session(self.page)
        self.cdp.send("WebAuthn.enable")

    def plug_in(self, **options: Any) -> str:
        """Plug in a key that is touched at once; return its id."""
        made = self.cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        return str(made["authenticatorId"])

    def unplug(self, key: str) -> None:
        self.cdp.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": key})

    def show_password(self) -> None:
        self.page.goto(self.home)
        self.page.get_by_label("Username").fill(self.user.get_username())
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()

    def sign_out(self) -> None:
        self.page.context.clear_cookies()

    def add_key(self, name: str) -> None:
        self.page.goto(f"{self.home}account/")
        self.page.get_by_role("link", name="Add a security key or passkey").click()
        self.confirm()
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name=REGISTER).press("Enter")

    def confirm(self) -> None:
        """Show once more who one is, if the page asks for it."""
        self.page.wait_for_url(re.compile("reauthenticate|again|add|remove"))
        if "reauthenticate" in self.page.url:
            self.page.get_by_role("button", name=USE).click()
        elif "/login/again/" in self.page.url:
            self.page.get_by_label("Password").fill(PASSWORD)
            self.page.get_by_role("button", name="Confirm").click()

    def expect_home(self) -> None:
        self.page.wait_for_url(self.home)


@pytest.fixture
def browser(world: World) -> Iterator[Browser]:
    found = Browser(world, make_staff(f"key-holder-{next(NUMBERS)}", password=PASSWORD))
    yield found
    found.page.context.close()


@pytest.mark.parametrize("kind", [SECURITY_KEY, PASSKEY], ids=["security key", "passkey"])
def test_key_is_registered_signs_in_and_is_removed(browser: Browser, kind: dict[str, Any]) -> None:
    page = browser.page
    browser.plug_in(**kind)
    browser.show_password()
    browser.expect_home()

    browser.add_key("blue key")
    expect(page.get_by_role("listitem").filter(has=page.locator("code"))).to_have_count(10)
    browser.sign_out()
    browser.show_password()
    page.get_by_role("button", name=USE).press("Enter")
    browser.expect_home()
    page.goto(f"{browser.home}account/")
    expect(page.get_by_role("row").filter(has_text="blue key")).not_to_contain_text("never")
    page.get_by_role("link", name="Remove blue key").press("Enter")
    browser.confirm()
    page.get_by_role("button", name="Remove").click()

    expect(page.get_by_text("Security key removed.")).to_be_visible()
    assert not keys_of(browser.user).exists()
    browser.sign_out()
    browser.show_password()
    browser.expect_home()


def test_key_that_is_not_there_is_told_and_the_code_still_works(browser: Browser) -> None:
    page = browser.page
    key = browser.plug_in(**SECURITY_KEY)
    browser.show_password()
    browser.expect_home()
    browser.add_key("blue key")
    page.get_by_role("link", name="I have kept them").wait_for()
    make_authenticator(browser.user)
    browser.sign_out()
    browser.unplug(key)
    browser.plug_in(**SECURITY_KEY)

    browser.show_password()
    page.get_by_role("button", name=USE).click()

    expect(page.get_by_role("alert")).to_contain_text("Nothing was used")
    expect(page.get_by_role("button", name=USE)).to_be_focused()
    assert violations(page) == []
    page.get_by_label("Code").fill(code_of(browser.user))
    page.get_by_role("button", name="Sign in").click()
    browser.expect_home()


def test_sign_in_that_took_too_long_is_told(browser: Browser) -> None:
    page = browser.page
    browser.plug_in(**SECURITY_KEY)
    browser.show_password()
    browser.expect_home()
    browser.add_key("blue key")
    page.get_by_role("link", name="I have kept them").wait_for()
    browser.sign_out()
    browser.show_password()
    page.get_by_role("button", name=USE).wait_for()
    browser.user.set_password(f"{PASSWORD}, a new one")
    browser.user.save(update_fields=["password"])

    page.get_by_role("button", name=USE).click()

    page.wait_for_url("**/login/**")
    expect(page.get_by_label("Password")).to_be_visible()


def test_second_key_is_added_after_the_first_was_shown_again(browser: Browser, world: World) -> None:
    page = browser.page
    first = browser.plug_in(**SECURITY_KEY)
    browser.show_password()
    browser.expect_home()
    browser.add_key("first key")
    page.get_by_role("link", name="I have kept them").wait_for()
    browser.add_key("first key again")
    expect(page.get_by_role("alert")).to_contain_text("registered already")
    browser.unplug(first)
    browser.plug_in(**PASSKEY)

    page.get_by_role("button", name=REGISTER).click()

    expect(page.get_by_role("row").filter(has_text="first key")).to_have_count(2)
    assert_usable_by_all(page)


def test_pages_of_keys_can_be_used_by_all(browser: Browser) -> None:
    page = browser.page
    browser.plug_in(**SECURITY_KEY)
    browser.show_password()
    browser.expect_home()
    browser.add_key("blue key")
    page.get_by_role("link", name="I have kept them").wait_for()
    page.goto(f"{browser.home}account/webauthn/add/")
    assert_usable_by_all(page)
    browser.sign_out()

    browser.show_password()
    page.get_by_role("button", name=USE).wait_for()

    assert_usable_by_all(page)
    page.set_viewport_size(PHONE)
    expect(page.get_by_role("button", name=USE)).to_be_in_viewport(ratio=1)
