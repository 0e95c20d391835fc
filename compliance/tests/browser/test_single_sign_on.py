"""A person signs in at a real provider in the browser, links an account before, and signs out of both."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.tests.browser.axe import assert_usable_by_all
from compliance.tests.browser.reached import ACTOR, make_person
from compliance.tests.browser.web_server import web_server
from compliance.tests.browser.world import PASSWORD, WAIT_MILLISECONDS
from compliance.tests.console import actor_id_of, make_staff
from people.doors import links
from people.models import ExternalIdentity
from people.sso.tests import toolkit
from people.sso.tests.providers import Toolkit, running_toolkit

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed")]

LABEL = "Example ID"


@pytest.fixture(scope="module")
def console(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a web server that trusts a provider, which sends people back to it."""
    folder = tmp_path_factory.mktemp("provider")
    with ExitStack() as stack, django_db_blocker.unblock():

        def trusting(address: str) -> dict[str, str]:
            provider: Toolkit = stack.enter_context(running_toolkit(folder, address))
            return {
                "BASE_URL": address,
                "OIDC_ISSUER": provider.issuer,
                "OIDC_CLIENT_ID": toolkit.CLIENT_ID,
                "OIDC_CLIENT_SECRET": toolkit.CLIENT_SECRET,
                "OIDC_LABEL": LABEL,
            }

        yield stack.enter_context(web_server(tmp_path_factory.mktemp("web"), trusting))


@pytest.fixture
def page(chromium: Browser, console: str) -> Iterator[Page]:
    context = chromium.new_context(base_url=console, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT_MILLISECONDS)
    yield page
    context.close()


def show_account(page: Page) -> None:
    """Give the provider's password."""
    page.get_by_label("Name").fill("kim")
    page.get_by_label("Secret").fill(toolkit.PASSWORD)
    page.get_by_role("button", name="Let me in").click()


def sign_out(page: Page) -> None:
    page.locator("[aria-controls=console-user-menu]").press("Enter")
    page.get_by_role("button", name="Log out").click()


def test_account_is_linked_signs_in_and_out(page: Page) -> None:
    user: User = make_staff("kim of the browser")
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    page.goto("/admin/live/")
    assert_usable_by_all(page)
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/live/")

    page.goto("/admin/live/account/")
    assert_usable_by_all(page)
    page.get_by_role("button", name="Link", exact=True).click()
    show_account(page)
    expect(page.get_by_role("main")).to_contain_text("account-of-kim")
    assert_usable_by_all(page)
    sign_out(page)
    expect(page.get_by_label("Username")).to_be_visible()

    page.goto("/admin/live/account/")
    page.get_by_role("button", name=LABEL).click()
    # The provider knows the browser still: signing out after a password ended the session here alone.
    expect(page.get_by_role("main")).to_contain_text("account-of-kim")
    sign_out(page)
    page.wait_for_url("**/admin/live/login/**")
    page.get_by_role("button", name=LABEL).click()
    expect(page.get_by_label("Secret")).to_be_visible()

    identity = ExternalIdentity.objects.get(person__user=user)
    actions = AuditEntry.objects.filter(actor_id=actor_id_of(user.username)).order_by("created_at", "id")
    assert identity.subject == "account-of-kim"
    assert list(actions.values_list("event_type", flat=True)) == [
        "person.signed_in",
        "person.sign_on_linked",
        "person.signed_out",
        "person.signed_in",
        "person.signed_out",
    ]


def test_answer_that_nobody_asked_for_is_refused_in_words(page: Page) -> None:
    answer = page.goto("/admin/live/login/sso/callback/?state=made-up&code=made-up")

    assert answer is not None
    assert answer.status == 403
    expect(page.get_by_text("This sign-in was not begun in this browser")).to_be_visible()
    assert_usable_by_all(page)


def test_invitation_offers_both_ways(page: Page) -> None:
    token, _ = links.make(user=make_person(), actor=ACTOR, now=now())

    page.goto(f"/admin/live/join/{token}/")

    expect(page.get_by_role("button", name="Set password")).to_be_visible()
    expect(page.get_by_role("button", name=f"Link {LABEL}")).to_be_visible()
    assert_usable_by_all(page)
