"""States of pages: refused forms, empty lists, errors, and what opens on a click; all usable by all."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from compliance.console.actions import ConfirmedAction
from compliance.tests.browser.axe import PHONE, assert_usable_by_all, show, violations
from compliance.tests.browser.steps import button, follow, press
from compliance.tests.browser.world import OPERATOR, World
from compliance.tests.owner import locked_table
from compliance.tests.url_table import PAGES, Route, routes
from tenancy.models import Role

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed", "quiet")]

ROUTES = {route.name: route for route in routes()}
REQUIRED = "This field is required"
# What each form says of nothing at all, where that is not of a required field.
SAID = {
    "tenancy_apikey_add": "Choose a preset or tick at least one scope",
    "reports_report_add": "Choose a period, or both days",
}
SEARCHED_LISTS = [
    *("agents_agent", "auditlog_auditentry", "certificates_certificate", "events_behaviorevent"),
    *("webhooks_delivery", "auth_user", "incidents_incident"),
]


def forms_that_require() -> Iterator[Route]:
    """The pages of adding, and of actions that cannot be done without a field."""
    for page, admin in PAGES.items():
        actions: tuple[ConfirmedAction, ...] = getattr(admin, "confirmed_actions", ())
        for action in actions:
            fields = action.form_class.base_fields.values()
            if any(field.required and field.initial is None for field in fields):
                yield ROUTES[f"{page}_{action.name}"]
        if f"{page}_add" in ROUTES and getattr(admin, "add_roles", True):
            yield ROUTES[f"{page}_add"]


FORMS = list(forms_that_require())


@pytest.mark.parametrize("route", FORMS, ids=[route.name for route in FORMS])
def test_refused_form_says_why(world: World, operators: Page, route: Route) -> None:
    operators.goto(route.url(world.row(route.page or "").pk if route.is_of_a_row else None))
    # Sent as by a browser that checks nothing itself, with every field emptied.
    operators.locator("#content form").last.evaluate(
        "form => { for (const one of form.elements)"
        " if (one.type !== 'hidden' && !one.name.startsWith('_')) one.value = '' }"
    )

    with operators.expect_navigation():
        operators.locator("#content form").last.evaluate("form => form.submit()")

    said = operators.get_by_role("main").get_by_text(SAID.get(route.name, REQUIRED))
    expect(said.first).to_be_visible()
    assert_usable_by_all(operators)


@pytest.mark.parametrize("page", SEARCHED_LISTS)
def test_list_without_rows(operators: Page, page: str) -> None:
    operators.goto(ROUTES[f"{page}_changelist"].url() + "?q=nothingsayssuchathing")

    expect(operators.get_by_role("main")).to_contain_text("Nothing matches")
    assert_usable_by_all(operators)


def test_inbox_without_events(operators: Page) -> None:
    operators.goto(ROUTES["index"].url() + "?q=nothingsayssuchathing")

    expect(operators.get_by_text("Nothing to review")).to_be_visible()
    assert_usable_by_all(operators)


def test_inbox_that_misses_a_reason(world: World) -> None:
    page = world.browser_of(Role.OFFICER)
    follow(page, "index")

    page.locator("summary", has_text="Stop the agent").click()
    press(page, button(page, "Suspend agent"))

    expect(page.get_by_role("alert")).to_contain_text("Say in the note why the agent is suspended")
    assert_usable_by_all(page)


def test_everything_that_unfolds(world: World, operators: Page) -> None:
    """The details of the inbox and of the charts, all open."""
    for name in ("index", "console_overview"):
        follow(operators, name)
        operators.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")

        assert_usable_by_all(operators)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["agents_agent", "auditlog_auditentry", "certificates_certificate"])
def test_open_filters(operators: Page, page: str, theme: str) -> None:
    follow(operators, f"{page}_changelist")
    show(operators, theme)

    operators.get_by_role("button", name="Filters", exact=True).click()

    expect(operators.locator("#changelist-filter")).to_be_visible()
    assert violations(operators) == []
    operators.set_viewport_size(PHONE)
    assert violations(operators) == []
    show(operators, "light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_user_menu(operators: Page, theme: str) -> None:
    follow(operators, "agents_agent_changelist")
    show(operators, theme)

    operators.locator("[aria-controls=console-user-menu]").click()

    expect(operators.get_by_role("button", name="Log out")).to_be_visible()
    assert violations(operators) == []
    show(operators, "light")


def test_wrong_password(world: World) -> None:
    page = world.browser_of(None)
    page.goto("/admin/live/login/")
    page.get_by_label("Username").fill("nobody at all")
    page.get_by_label("Password").fill("wrong")

    press(page, page.get_by_role("button", name="Log in"))

    expect(page.get_by_text("The username and/or password you specified are not correct.")).to_be_visible()
    assert_usable_by_all(page)


def test_documentation_of_the_api(world: World) -> None:
    page = world.browser_of(None)

    page.goto("/v1/docs")
    # One that has parameters, and one that is sent a body.
    for kind in ("get", "post"):
        operation = page.locator(f".opblock-{kind}").first
        operation.locator("button.opblock-summary-control").click()
        expect(operation.get_by_role("heading", name="Responses")).to_be_visible()

    assert_usable_by_all(page)


@pytest.mark.parametrize(
    ("who", "path", "status"),
    [
        (OPERATOR, "/admin/live/no/such/page/", 404),
        (OPERATOR, "/admin/live/login/sso/callback/", 404),
        (Role.AUDITOR, "/admin/live/system/", 403),
    ],
)
def test_error_page(world: World, who: str, path: str, status: int) -> None:
    page = world.browser_of(who)

    answer = page.goto(path)

    assert answer is not None
    assert (answer.status, answer.request.redirected_from) == (status, None)
    assert_usable_by_all(page)


def test_visitor_of_a_missing_page_is_asked_to_sign_in(world: World) -> None:
    page = world.browser_of(None)

    answer = page.goto("/admin/live/no/such/page/")

    assert answer is not None
    assert answer.status == 200
    expect(page).to_have_url(re.compile(r"/admin/live/login/\?next=/admin/live/no/such/page/$"))
    expect(page.get_by_label("Password")).to_be_visible()
    assert_usable_by_all(page)


def test_page_while_the_database_is_locked(world: World) -> None:
    page = world.browser_of(OPERATOR)

    with locked_table("agents_agent IN ACCESS EXCLUSIVE MODE"):
        answer = page.goto(ROUTES["agents_agent_changelist"].url())

    assert answer is not None
    assert answer.status == 409
    expect(page.get_by_role("heading", name="Busy for the moment")).to_be_visible()
    assert_usable_by_all(page)
    world.complaints[:] = [one for one in world.complaints if "status of 409" not in one]
