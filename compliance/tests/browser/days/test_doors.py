"""Coming in and going out: second factor, recovery codes, invitation, lock-out, sessions."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.reached import make_person, set_up_app
from compliance.tests.browser.steps import act, button, expect_told, follow, press, save
from compliance.tests.browser.world import OPERATOR, PASSWORD, show_password
from people.tests.authenticators import code_from
from tenancy.models import Role

pytestmark = pytest.mark.browser

INBOX = "**/admin/live/"
REFUSED = "The username and/or password you specified are not correct."


def sign_out(page: Page) -> None:
    page.locator("[aria-controls=console-user-menu]").click()
    press(page, page.get_by_role("button", name="Log out"))


def give_code(page: Page, code: str) -> None:
    page.get_by_label("Code").fill(code)
    press(page, page.get_by_role("button", name="Sign in"))


def test_operator_sets_up_an_app_and_signs_in_with_codes(office: Office) -> None:
    operator = make_person(is_operator=True)
    page = office.world.browser_of(None)

    show_password(page, operator.username)
    page.wait_for_url("**/login/enrol/")
    page.get_by_label("Code").fill("000")
    press(page, page.get_by_role("button", name="Set up"))
    expect(page.get_by_text("Incorrect code.")).to_be_visible()
    secret = set_up_app(page)
    codes = page.get_by_role("main").locator("li code").all_inner_texts()
    assert len(set(codes)) == 10
    press(page, page.get_by_role("link", name="I have kept them"))
    sign_out(page)

    show_password(page, operator.username)
    page.wait_for_url("**/account/authenticate/")
    give_code(page, "123 not a code")
    expect(page.get_by_text("Incorrect code.")).to_be_visible()
    give_code(page, code_from(secret, later=1))
    page.wait_for_url(INBOX)
    sign_out(page)

    show_password(page, operator.username)
    page.wait_for_url("**/account/authenticate/")
    give_code(page, codes[0])
    page.wait_for_url(INBOX)
    follow(page, "mfa_index")
    expect_told(page, "Recovery codes left: 9")
    sign_out(page)

    show_password(page, operator.username)
    page.wait_for_url("**/account/authenticate/")
    give_code(page, codes[0])
    expect(page.get_by_text("Incorrect code.")).to_be_visible()


def test_person_adds_an_app_to_the_own_account(office: Office) -> None:
    page = office.browser(Role.AUDITOR)

    follow(page, "mfa_index")
    press(page, page.get_by_role("link", name="Set up an authenticator app"))
    secret = set_up_app(page)
    assert len(secret) == 32
    press(page, page.get_by_role("link", name="I have kept them"))
    follow(page, "mfa_index")
    press(page, page.get_by_role("link", name="Remove the app"))
    press(page, button(page, "Deactivate"))

    expect_told(page, "Authenticator app deactivated.")


def test_operator_invites_a_person_by_a_one_time_link(office: Office) -> None:
    name = f"kim-{office.number}"
    operator = office.world.browser_of(OPERATOR)
    follow(operator, "auth_user_add")
    operator.get_by_label("Username").fill(name)
    operator.locator("input[name=usable_password][value=false]").check()
    save(operator)
    act(operator, "Make one-time link")
    link = urlsplit(operator.locator("#secret").input_value()).path
    page = office.world.browser_of(None)

    page.goto(link)
    expect(page.get_by_text(name)).to_be_visible()
    page.locator("#id_password1").fill("short")
    page.locator("#id_password2").fill("short")
    press(page, page.get_by_role("button", name="Set password"))
    expect(page.get_by_text("This password is too short")).to_be_visible()
    page.locator("#id_password1").fill(PASSWORD)
    page.locator("#id_password2").fill(PASSWORD + "!")
    press(page, page.get_by_role("button", name="Set password"))
    expect(page.get_by_text("match.")).to_be_visible()
    page.locator("#id_password1").fill(PASSWORD)
    page.locator("#id_password2").fill(PASSWORD)
    press(page, page.get_by_role("button", name="Set password"))
    expect(page.get_by_text("Your password is set. Sign in with it.")).to_be_visible()
    page.goto(link)
    expect(page.get_by_text("This link was used, replaced or is too old.")).to_be_visible()
    show_password(page, name)

    page.wait_for_url(INBOX)
    expect(page.get_by_text("belongs to no tenant")).to_be_visible()


def test_person_ends_the_session_of_another_browser(office: Office) -> None:
    person = make_person()
    here, elsewhere = office.world.browser_of(None), office.world.browser_of(None)
    for page in (elsewhere, here):
        show_password(page, person.username)
        page.wait_for_url(INBOX)

    follow(here, "usersessions_list")
    expect(here.get_by_role("main").locator("tbody tr")).to_have_count(2)
    press(here, button(here, "Sign Out Other Sessions"))
    expect_told(here, "Signed out of all other sessions.")
    follow(elsewhere, "mfa_index")

    expect(elsewhere.get_by_label("Password")).to_be_visible()
    follow(here, "usersessions_list")
    expect(here.get_by_role("main").locator("tbody tr")).to_have_count(1)


@pytest.mark.parametrize("role", [Role.OFFICER, Role.AUDITOR, Role.DEVELOPER])
def test_person_signs_in_and_out(office: Office, role: Role) -> None:
    page = office.world.signed_in(role)

    sign_out(page)
    follow(page, "agents_agent_changelist")

    expect(page.get_by_label("Username")).to_be_visible()
