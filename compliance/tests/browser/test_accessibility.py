"""Every page against WCAG 2.2 A and AA: in light, in dark, at 390 px; by keyboard alone."""

import pytest
from playwright.sync_api import Page, expect

from compliance.core.environments import Environment
from compliance.tests.browser.axe import assert_usable_by_all
from compliance.tests.browser.world import NONE, OPERATOR, World
from compliance.tests.url_table import Route, routes

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed", "quiet")]

ROUTES = routes()
NAMED = {route.name: route for route in ROUTES}
ADDING = [route for route in ROUTES if route.name.endswith("_add")]


@pytest.fixture(scope="module")
def operators(world: World) -> Page:
    return world.browser_of(OPERATOR)


def shows_a_page(page: Page, url: str) -> bool:
    """Whether the address answers with a page of its own: not a redirect, a download or an error."""
    answer = page.request.get(url, max_redirects=0)
    assert answer.status < 500, url
    return answer.status == 200 and "<html" in answer.text()


def address_of(world: World, route: Route, environment: Environment = Environment.LIVE) -> str:
    page = route.page or "agents_agent"
    key = world.row(page, environment).pk if route.is_of_a_row else None
    return route.url(key, environment=environment)


@pytest.mark.parametrize("route", ROUTES, ids=[route.name for route in ROUTES])
def test_every_page_can_be_used_by_all(world: World, operators: Page, route: Route) -> None:
    url = address_of(world, route)
    if not shows_a_page(operators, url):
        return

    operators.goto(url)

    assert_usable_by_all(operators)


@pytest.mark.parametrize("route", ADDING, ids=[route.name for route in ADDING])
def test_forms_that_were_refused_can_be_used_by_all(world: World, operators: Page, route: Route) -> None:
    if not shows_a_page(operators, route.url()):
        return
    operators.goto(route.url())

    with operators.expect_navigation():
        operators.locator("#content form").first.evaluate("form => form.submit()")

    assert_usable_by_all(operators)


@pytest.mark.parametrize("path", ["/v1/docs", "/admin/live/login/", "/admin/live/no/such/page/"])
def test_pages_for_everyone_can_be_used_by_all(world: World, path: str) -> None:
    visitor = world.browser_of(None)

    visitor.goto(path)
    visitor.wait_for_load_state("networkidle")

    assert_usable_by_all(visitor)


@pytest.mark.parametrize("name", ["index", "agents_agent_changelist"])
def test_pages_of_a_person_without_a_membership(world: World, name: str) -> None:
    visitor = world.browser_of(NONE)

    visitor.goto(NAMED[name].url())

    assert_usable_by_all(visitor)


@pytest.mark.parametrize("name", ["index", "agents_agent_changelist", "agents_agent_suspend"])
def test_sandbox_can_be_used_by_all(world: World, operators: Page, name: str) -> None:
    operators.goto(address_of(world, NAMED[name], Environment.TEST))

    expect(operators.get_by_text("Test environment:")).to_be_visible()
    assert_usable_by_all(operators)
