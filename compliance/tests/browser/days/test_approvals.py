"""An officer decides on an agent's act: in three clicks, by two keys, and with one thumb on a phone."""

import pytest
from playwright.sync_api import Page, expect

from agents.models import Agent
from compliance.core.clock import now
from compliance.tests.browser.axe import PHONE
from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.days.test_inbox import CLICKS, COUNTING
from compliance.tests.browser.steps import button, expect_told, follow, press
from delegation.token_keys import keys
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import KEY, make_approval
from tenancy.models import Role

pytestmark = pytest.mark.browser
PAGE = "approvals_approval_changelist"


@pytest.fixture
def agent(office: Office) -> Agent:
    keys.bootstrap(actor=KEY, now=now())
    return office.agent("invoice-bot")


@pytest.fixture
def page(office: Office) -> Page:
    return office.browser(Role.OFFICER)


def status(approval: Approval) -> str:
    return Approval.objects.get(id=approval.id).status


def test_an_approval_takes_three_clicks_from_the_first_screen(page: Page, agent: Agent) -> None:
    approval = make_approval(agent)
    page.add_init_script(COUNTING)
    page.goto("/admin/live/")

    press(page, page.get_by_role("link", name="Approvals"))
    page.locator("summary", has_text="Approve").click()
    button(page, "Approve this act, once").click()
    expect_told(page, "Approved: invoice-bot: pay.")

    assert page.evaluate(CLICKS) == 3
    assert status(approval) == "approved"


def test_approving_takes_two_keys_and_denying_one(page: Page, agent: Agent) -> None:
    first, second, third = (make_approval(agent, details={"n": n}, ttl_seconds=60 + n) for n in range(3))
    follow(page, PAGE)

    page.keyboard.press("a")
    press(page, "Enter")
    expect_told(page, "Approved: invoice-bot: pay.")
    press(page, "j")
    press(page, "d")
    expect_told(page, "Denied: invoice-bot: pay.")

    assert [status(one) for one in (first, second, third)] == ["approved", "pending", "denied"]


def test_a_key_pressed_while_one_writes_decides_nothing(page: Page, agent: Agent) -> None:
    approval = make_approval(agent)
    follow(page, PAGE)

    page.get_by_label("Note").fill("")
    page.get_by_label("Note").press_sequentially("add")
    expect(button(page, "Approve this act, once")).to_be_hidden()

    assert status(approval) == "pending"


def test_on_a_phone_one_thumb_decides(page: Page, agent: Agent) -> None:
    approval = make_approval(agent, details={"lines": ["a long order"] * 60})
    page.set_viewport_size(PHONE)
    follow(page, PAGE)

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for control in (page.locator("summary", has_text="Approve"), button(page, "Approve this act, once")):
        # Without scrolling, in the lower half of the screen.
        box = control.bounding_box()
        assert box is not None
        assert PHONE["height"] / 2 <= box["y"] <= PHONE["height"] - box["height"]
        control.click()
    expect_told(page, "Approved: invoice-bot: pay.")

    assert status(approval) == "approved"
