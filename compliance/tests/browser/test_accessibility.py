"""Every page against WCAG 2.2 A and AA: in light, in dark, at 390 px; by keyboard alone."""

import pytest
from playwright.sync_api import Page, Response, expect

from compliance.core.environments import Environment
from compliance.tests.browser.axe import assert_usable_by_all
from compliance.tests.browser.reached import WAYS
from compliance.tests.browser.world import NONE, World
from compliance.tests.url_table import PAGES, Route, routes

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed", "quiet")]

ROUTES = routes()
NAMED = {route.name: route for route in ROUTES}
# Addresses without a page of their own: redirects, downloads, parts of pages, and those that take POST only.
PAGELESS = {
    *("link", "approval_link", "logout", "autocomplete", "jsi18n", "search"),
    *("sso_begin", "sso_invitation", "account_sso"),
    *("auditlog_auditentry_export", "auditlog_auditentry_proof", "auditlog_treehead_change"),
    *("account_set_password", "mfa_download_recovery_codes", "mfa_edit_webauthn", "mfa_remove_webauthn"),
    "mfa_reauthenticate_webauthn",
    *("incidents_incident_export", "incidents_incident_draft_pdf", "incidents_incident_draft_json"),
    *(f"reports_report_{part}" for part in ("progress", "pdf", "json", "zip")),
    "agents_agent_attestation",
}
# There is none without an identity provider: `test_single_sign_on.py` walks through it.
OF_A_PROVIDER = {"sso_callback"}
# Of rows that nobody adds or deletes these pages are refused.
REFUSED_ENDS = ("_add", "_delete")


def address_of(world: World, route: Route, environment: Environment = Environment.LIVE) -> str:
    """The address of the route's page, of the row that the world has for it."""
    assert route.page or not route.is_of_a_row, f"{route.name} belongs to no page of the admin"
    key = world.row(route.page, environment).pk if route.page and route.is_of_a_row else None
    return route.url(key, environment=environment)


def opened(page: Page, url: str) -> Response:
    answer = page.goto(url)
    assert answer is not None
    return answer


def walked() -> list[Route]:
    """The routes that must show a page; a new one that shows none needs a line in WAYS or in PAGELESS."""
    elsewhere = PAGELESS | OF_A_PROVIDER
    found = [route for route in ROUTES if route.name not in elsewhere and not route.name.endswith("_history")]
    assert len(found) > len(PAGES), "the pages of the admin have not been loaded"
    return found


@pytest.mark.parametrize("route", walked(), ids=[route.name for route in walked()])
def test_every_page_can_be_used_by_all(world: World, operators: Page, route: Route) -> None:
    if route.name in WAYS:
        page = WAYS[route.name](world)
    else:
        page, answer = operators, opened(operators, address_of(world, route))
        if answer.status == 403 and route.name.endswith(REFUSED_ENDS):
            expect(page.get_by_role("heading", name="Not yours to see")).to_be_visible()
            return
        assert (answer.status, answer.request.redirected_from) == (200, None), "no way to the page is known"

    assert_usable_by_all(page)


@pytest.mark.parametrize("name", sorted(PAGELESS - {"logout"}))
def test_addresses_without_a_page_show_none(world: World, operators: Page, name: str) -> None:
    answer = operators.request.get(address_of(world, NAMED[name]), max_redirects=0)

    assert answer.status in {200, 302, 403, 404, 405}
    assert answer.status != 200 or "<html" not in answer.text()


@pytest.mark.parametrize("name", ["index", "agents_agent_changelist", "incidents_incident_changelist"])
def test_pages_of_a_person_without_a_membership(world: World, name: str) -> None:
    visitor = world.browser_of(NONE)

    visitor.goto(NAMED[name].url())

    assert_usable_by_all(visitor)


@pytest.mark.parametrize("name", ["index", "agents_agent_changelist", "agents_agent_suspend"])
def test_sandbox_can_be_used_by_all(world: World, operators: Page, name: str) -> None:
    operators.goto(address_of(world, NAMED[name], Environment.TEST))

    expect(operators.get_by_text("Test environment:")).to_be_visible()
    assert_usable_by_all(operators)
