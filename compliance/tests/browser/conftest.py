"""A browser, a web server, and rows of every kind in both environments, for the tests marked `browser`."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.browser.web_server import web_server
from compliance.tests.browser.world import OPERATOR, WAIT_MILLISECONDS, World
from tenancy.tests.factories import make_tenant

# The first that exists is driven: CHROMIUM, then Debian's. No browser is downloaded.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium. Playwright's own event loop runs in this thread, where the ORM then works too."""
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.fail("no Chromium: apt-get install chromium, or name another in CHROMIUM", pytrace=False)
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    expect.set_options(timeout=WAIT_MILLISECONDS)
    # Chromium's sandbox does not work for root, as whom containers run; all pages are our own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def address(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a web server over the tests' databases."""
    with django_db_blocker.unblock(), web_server(tmp_path_factory.mktemp("web")) as found:
        yield found


@pytest.fixture(scope="session")
def world(address: str, chromium: Browser, django_db_blocker: Any) -> World:
    """Rows that stay: the tests add their own to them and do not change these."""
    with django_db_blocker.unblock(), environments.use(Environment.LIVE):
        return World.create(address, chromium, make_tenant("Nordlicht Handel"))


@pytest.fixture(scope="module")
def operators(world: World) -> Page:
    """An operator's browser."""
    return world.browser_of(OPERATOR)


@pytest.fixture
def quiet(world: World) -> Iterator[None]:
    """No page complains in the browser's console: no script fails, nothing breaks the security policy."""
    world.complaints.clear()
    opened_before = len(world.contexts)
    yield
    world.close_browsers(opened_before)
    assert world.complaints == []
