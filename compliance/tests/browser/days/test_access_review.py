"""An officer's review of access by keyboard: a key or two decide on an agent, and the next one follows."""

import pytest
from playwright.sync_api import Page, expect

from certificates.tests.factories import stock_pool
from compliance.core.clock import now
from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.steps import button, expect_told, follow, press
from delegation.reviews.models import AccessReview, AccessReviewItem
from delegation.reviews.tests.factories import make_scoped_agent, open_review
from delegation.token_keys import keys
from gateway.approvals.tests.factories import KEY
from tenancy.models import Role

pytestmark = pytest.mark.browser
AGENTS = "reviews_accessreview_agents"


@pytest.fixture
def page(office: Office) -> Page:
    keys.bootstrap(actor=KEY, now=now())
    return office.browser(Role.OFFICER)


def test_a_review_is_done_by_keys(page: Page, office: Office) -> None:
    for name in ("keeper", "reducer", "passed-by", "stopped", "leaver"):
        make_scoped_agent(office.tenant, name=name)
    review = open_review(office.tenant)
    # For the reduced agent's renewal, before the pool's rows that stand for pages and are no keys.
    stock_pool()
    follow(page, AGENTS, review.id)

    press(page, "e")
    expect_told(page, "Keep: 1 decided.")
    press(page, "r")
    expect_told(page, "Reduce: 1 decided.")
    press(page, "j")
    page.keyboard.press("s")
    press(page, "Enter")
    expect_told(page, "Suspend: 1 decided.")
    page.keyboard.press("s")
    page.keyboard.press("Tab")
    press(page, "Enter")
    expect_told(page, "Retire: 1 decided.")
    expect(page.get_by_role("status").filter(has_text="to decide")).to_contain_text("1 of 5")
    press(page, page.get_by_role("link", name="Tick all on this page"))
    press(page, button(page, "Keep ticked"))
    expect(page.get_by_text("All are decided")).to_be_visible()

    items = AccessReviewItem.objects.filter(review=review).order_by("id")
    made = list(items.values_list("decision", flat=True))
    assert made == ["keep", "reduce", "keep", "suspend", "retire"]
    assert AccessReview.objects.get(id=review.id).state == "done"
