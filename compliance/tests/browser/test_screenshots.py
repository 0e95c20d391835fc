"""The pictures of the documents.

`SCREENSHOTS=docs/images ./test compliance/tests/browser/test_screenshots.py -m browser` makes them anew.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from compliance.tests.browser.axe import DESKTOP, PHONE, show
from compliance.tests.browser.world import World
from compliance.tests.url_table import routes

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed", "quiet")]

ROUTES = {route.name: route for route in routes()}
# The file, the page, and whether it is shown in dark, on a phone.
PICTURES = {"console": ("index", "light", DESKTOP), "agent-phone": ("agents_agent_change", "light", PHONE)}
SMALLEST = 10_000
"""Octets below which a picture shows an empty page."""


@pytest.mark.parametrize("name", PICTURES)
def test_picture(world: World, operators: Page, tmp_path: Path, name: str) -> None:
    route, theme, size = PICTURES[name]
    target = Path(os.environ.get("SCREENSHOTS", tmp_path)) / f"{name}.png"
    page = ROUTES[route].page

    operators.goto(ROUTES[route].url(world.row(page).pk if page else None))
    show(operators, theme)
    operators.set_viewport_size(size)
    operators.evaluate("() => document.fonts.ready.then(() => true)")
    operators.screenshot(path=target)

    assert target.stat().st_size > SMALLEST
