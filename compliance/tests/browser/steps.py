"""What people do on many pages of the console, each waiting until the page has followed."""

from typing import Any

from playwright.sync_api import Locator, Page, expect

from compliance.tests.url_table import routes

ROUTES = {route.name: route for route in routes()}
UNDER_WAY = "__under_way"


def follow(page: Page, name: str, key: object = None) -> None:
    """Open the page of that route, of a row if `key` is given."""
    page.goto(ROUTES[name].url(key))


def press(page: Page, control: Locator | str) -> None:
    """Click the control, or press the key, and wait until the page that follows has been loaded."""
    # The address may stay the same, so that the document itself is marked.
    page.evaluate(f"() => {{ window.{UNDER_WAY} = true }}")
    if isinstance(control, str):
        page.keyboard.press(control)
    else:
        control.click()
    page.wait_for_function(f"() => !window.{UNDER_WAY} && document.readyState === 'complete'")


def button(page: Page, label: str) -> Locator:
    """The button of the page's content with exactly this label."""
    return page.get_by_role("main").get_by_role("button", name=label, exact=True)


def save(page: Page) -> None:
    """Send the form of a row, whose buttons stand below the content."""
    press(page, page.locator("button[name=_save]"))


def act(page: Page, label: str, reason: str = "", **fields: Any) -> None:
    """Choose an action of the row's page, fill in what it asks for, and confirm.

    `reason` goes into the first field, `fields` into those of these names.
    """
    press(page, page.locator(".console-actions").get_by_role("link", name=label))
    if reason:
        page.get_by_role("main").get_by_role("textbox").first.fill(reason)
    for name, value in fields.items():
        field = page.locator(f"main [name={name}]")
        (field.select_option if field.evaluate("one => one.tagName") == "SELECT" else field.fill)(value)
    press(page, button(page, label))


def look_for(page: Page, words: str) -> None:
    """Search the list for these words."""
    page.locator("#searchbar").fill(words)
    press(page, "Enter")


def expect_told(page: Page, text: str) -> None:
    """Wait until the content of the page says so."""
    expect(page.get_by_role("main")).to_contain_text(text)
