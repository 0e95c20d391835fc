"""What a keyboard reaches, and what a phone shows without scrolling."""

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from compliance.tests.browser.axe import DESKTOP, PHONE, WIDER, violations
from compliance.tests.browser.world import OPERATOR, World
from compliance.tests.url_table import routes

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed", "quiet")]

# Rows on which something can be decided.
DECIDED = ("agents_agent", "certificates_certificate", "events_behaviorevent")
ROUTES = {route.name: route for route in routes()}
MOST_TABS = 60


@pytest.fixture
def operators(world: World) -> Page:
    return world.browser_of(OPERATOR)


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the control has the focus."""
    for _ in range(MOST_TABS):
        before = page.evaluate_handle("() => document.activeElement")
        page.keyboard.press("Tab")
        page.wait_for_function("before => document.activeElement !== before", arg=before)
        if wanted.evaluate("control => control === document.activeElement"):
            return
    pytest.fail(f"Tab does not reach {wanted}")


def test_skip_link_leads_past_the_navigation(operators: Page) -> None:
    operators.goto(ROUTES["agents_agent_changelist"].url())

    operators.keyboard.press("Tab")
    expect(operators.get_by_role("link", name="Skip to the content")).to_be_focused()
    operators.keyboard.press("Enter")

    expect(operators.get_by_role("main")).to_be_focused()


def test_filters_are_opened_and_closed_by_keys(operators: Page) -> None:
    operators.goto(ROUTES["agents_agent_changelist"].url())
    opener = operators.get_by_role("button", name="Filters", exact=True)
    panel = operators.locator("#changelist-filter")

    tab_to(operators, opener)
    operators.keyboard.press("Enter")

    expect(panel).to_be_visible()
    expect(panel.locator(":focus")).to_have_count(1)
    assert violations(operators) == []
    operators.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_user_menu_is_opened_by_keys(operators: Page) -> None:
    operators.goto(ROUTES["agents_agent_changelist"].url())
    opener = operators.locator("[aria-controls=console-user-menu]")

    opener.press("Enter")

    expect(opener).to_have_attribute("aria-expanded", "true")
    expect(operators.get_by_role("button", name="Log out")).to_be_visible()
    assert violations(operators) == []
    operators.get_by_role("button", name="Dark").press("Enter")
    expect(operators.locator("html")).to_have_class("dark")
    operators.get_by_role("button", name="Light").press("Enter")


def test_navigation_is_hidden_by_keys(operators: Page) -> None:
    operators.goto(ROUTES["index"].url())
    switch = operators.get_by_role("button", name="Show or hide the navigation")

    switch.press("Enter")
    expect(operators.get_by_role("navigation", name="Pages", exact=True)).to_be_hidden()
    switch.press("Enter")

    expect(operators.get_by_role("navigation", name="Pages", exact=True)).to_be_visible()


def test_navigation_opens_on_a_phone(operators: Page) -> None:
    operators.set_viewport_size(PHONE)
    operators.goto(ROUTES["agents_agent_changelist"].url())

    operators.get_by_role("button", name="Show the navigation").press("Enter")

    expect(operators.get_by_role("navigation", name="Pages", exact=True)).to_be_visible()
    expect(
        operators.locator("#nav-sidebar").get_by_role("link", name="Agents", exact=True)
    ).to_have_attribute("aria-current", "page")
    assert violations(operators) == []
    operators.keyboard.press("Escape")
    expect(operators.get_by_role("navigation", name="Pages", exact=True)).to_be_hidden()


@pytest.mark.parametrize("page", DECIDED)
def test_decisions_are_in_sight_on_a_phone(operators: Page, world: World, page: str) -> None:
    operators.set_viewport_size(PHONE)
    operators.goto(ROUTES[f"{page}_change"].url(world.row(page).pk))

    decisions = operators.locator(".console-actions a").all()

    assert decisions
    for decision in decisions:
        expect(decision).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_tables_of_an_incident_are_in_sight(operators: Page, world: World, screen: ViewportSize) -> None:
    operators.set_viewport_size(screen)
    operators.goto(ROUTES["incidents_incident_change"].url(world.row("incidents_incident").pk))

    for head in ("Due", "Why", "Description"):
        column = operators.get_by_role("columnheader", name=head, exact=True)
        column.scroll_into_view_if_needed()
        expect(column).to_be_visible()
    assert operators.evaluate(WIDER) == []
