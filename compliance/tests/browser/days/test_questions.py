"""An officer's questions of an agent: each is answered within two clicks of the search."""

from datetime import timedelta

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.tests.browser.axe import assert_usable_by_all
from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.days.test_inbox import CLICKS, COUNTING
from compliance.tests.browser.steps import follow, press
from delegation.reviews.tests.factories import use
from events.models import RiskDay
from events.tests.factories import make_high_event
from tenancy.models import Role

pytestmark = pytest.mark.browser


@pytest.fixture
def halted(office: Office) -> Agent:
    agent = make_certified_agent(
        office.tenant,
        name="payments-bot",
        metadata={"permitted_actions": ["send_email", "read_ledger", "pay_invoice", "delete_table"]},
        owner_name="Kim Berg",
        owner_email="kim@example.com",
    )
    for back, score in enumerate((0.1, 0.2, 0.1, 0.4, 0.1, 0.9, 0.3, 0.1), start=1):
        at = now() - timedelta(days=3 * back)
        sums = {"events": 1, "medium": 0, "high": int(score == 0.9), "score_sum": score, "max_score": score}
        RiskDay.objects.create(agent=agent, day=at.date(), peak_score=score, peak_at=at, **sums)
    for tool in ("pay_invoice", "send_email"):
        use(agent, tool)
    for _ in range(settings.HIGH_RISK_STRIKES):
        make_high_event(agent, details={"tool": "export_ledger"})
    return agent


def find(page: Page, name: str) -> None:
    """From the first page to an agent by the search, as a person does."""
    page.goto("/admin/live/")
    page.get_by_role("button", name="Find a name or ID").click()
    page.locator("#search-input-command").press_sequentially(name)
    press(page, page.locator("#command-results a", has_text=name).first)


ANSWERS = {
    "why was it stopped": ("by the rule: 3 strikes within 15 minutes", "Incident INC-"),
    "how risky was it this month": ("Risk of 30 days", "4 strikes", "1 stop"),
    "who answers for it": ("Kim Berg kim@example.com",),
    "what may it do that it never does": (
        "Permitted, not used",
        "read_ledger",
        "delete_table",
        "Permitted and used",
    ),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_question_is_answered_within_two_clicks(office: Office, halted: Agent, question: str) -> None:
    page = office.browser(Role.OFFICER)
    page.add_init_script(COUNTING)

    find(page, halted.name)

    summary = page.get_by_role("region", name="Summary")
    for answer in ANSWERS[question]:
        expect(summary).to_contain_text(answer)
        expect(summary.get_by_text(answer).filter(visible=True).first).to_be_visible()
    assert page.evaluate(CLICKS) <= 2


def test_page_of_a_stopped_agent_can_be_used_by_all(office: Office, halted: Agent) -> None:
    page = office.browser(Role.OFFICER)

    follow(page, "agents_agent_change", halted.pk)

    assert_usable_by_all(page)


def test_sections_open_by_keyboard(office: Office, halted: Agent) -> None:
    page = office.browser(Role.OFFICER)
    follow(page, "agents_agent_change", halted.pk)
    section = page.locator("fieldset.collapse", has_text="Identity")

    section.locator("summary").focus()
    page.keyboard.press("Enter")

    expect(section.get_by_text(halted.did)).to_be_visible()
