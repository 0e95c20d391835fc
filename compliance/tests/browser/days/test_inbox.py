"""The review inbox by mouse and by keyboard: the clicks to each decision, and all that it does in place."""

import re
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from agents.models import Agent, AgentStatus
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.steps import button, expect_told, press
from compliance.tests.browser.world import PASSWORD, show_password
from events.inbox.models import AgentQueue, InboxComment
from events.inbox.reviewing import review
from events.models import BehaviorEvent, EventReview, ReviewVerdict
from events.tests.factories import make_open_event
from tenancy.models import Role

pytestmark = pytest.mark.browser

# Counts what a person clicks on every page of the tab; what a key presses by a script is no click.
COUNTING = """addEventListener("click", event => {
    if (event.isTrusted && event.detail > 0) sessionStorage.clicks = 1 + Number(sessionStorage.clicks ?? 0);
}, true)"""
CLICKS = "() => Number(sessionStorage.clicks ?? 0)"


@pytest.fixture
def agent(office: Office) -> Agent:
    return office.agent("invoice-bot")


def wait_for_review(agent: Agent, count: int = 4) -> list[BehaviorEvent]:
    """Events that wait, the oldest first: the order in which the inbox shows them."""
    return [make_open_event(agent, minutes_ago=count - each, details={"run": each}) for each in range(count)]


def verdicts(event: BehaviorEvent) -> list[str]:
    return [review.verdict for review in EventReview.objects.of_event(event.id)]


def awaited_verdicts(event: BehaviorEvent) -> list[str]:
    """Return the verdicts once there is one; a page that is left does not wait for its last request."""
    until = time.monotonic() + 30
    while not verdicts(event) and time.monotonic() < until:
        time.sleep(0.1)
    return verdicts(event)


def expect_shown(page: Page, event: BehaviorEvent) -> None:
    expect(page.locator("#inbox-decide input[name=event]")).to_have_value(str(event.pk))


def test_first_decision_takes_at_most_two_clicks_and_each_next_one(office: Office, agent: Agent) -> None:
    first, second, third, fourth = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.add_init_script(COUNTING)
    page.goto("/admin/live/")

    expect_shown(page, first)
    button(page, "Dismiss d").click()
    clicks_to_the_first = page.evaluate(CLICKS)
    expect_shown(page, second)
    button(page, "Confirm as attack c").click()
    expect_shown(page, third)
    button(page, "Dismiss d").click()
    expect_shown(page, fourth)
    page.evaluate("document.querySelector('#inbox-held button:last-child').click()")
    expect_told(page, "ordinary to its agent from now on")

    assert 1 <= clicks_to_the_first <= 2
    assert page.evaluate(CLICKS) == clicks_to_the_first + 2
    assert [verdicts(event) for event in (first, second, third)] == [
        ["dismissed"],
        ["confirmed"],
        ["dismissed"],
    ]


def test_inbox_by_keyboard_alone(office: Office, agent: Agent) -> None:
    first, second, third, fourth = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.add_init_script(COUNTING)
    page.goto("/admin/live/")

    press(page, "j")
    expect_shown(page, second)
    press(page, "k")
    expect_shown(page, first)
    page.keyboard.press("?")
    expect(page.get_by_text("event before")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_text("event before")).to_be_hidden()
    page.keyboard.press("d")
    expect_shown(page, second)
    page.keyboard.press("c")
    expect_shown(page, third)
    page.keyboard.press("s")
    expect(page.get_by_label("Note")).to_be_focused()
    page.keyboard.type("jkcds? are letters here")
    expect(page.get_by_label("Note")).to_have_value("jkcds? are letters here")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Note")).not_to_be_focused()
    page.keyboard.press("s")
    expect(button(page, "Suspend agent")).to_be_focused()
    press(page, "Enter")
    expect_told(page, "is suspended. The event still waits for a verdict.")

    agent.refresh_from_db()
    assert page.evaluate(CLICKS) == 0
    assert agent.status == AgentStatus.SUSPENDED
    assert [verdicts(event) for event in (first, second, third, fourth)] == [
        ["dismissed"],
        ["confirmed"],
        [],
        [],
    ]


def test_keys_can_be_turned_off(office: Office, agent: Agent) -> None:
    first, *_ = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.goto("/admin/live/")

    page.keyboard.press("?")
    page.get_by_role("button", name="Turn keys off").click()
    expect(page.get_by_role("button", name="Turn keys on")).to_be_visible()
    page.keyboard.press("d")
    button(page, "Dismiss d").click()
    button(page, "Send now").click()

    expect_told(page, "Dismissed")
    assert verdicts(first) == ["dismissed"]
    assert EventReview.objects.filter(agent=agent).count() == 1


def test_several_events_are_decided_at_once(office: Office, agent: Agent) -> None:
    events = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.goto("/admin/live/")

    press(page, button(page, "Dismiss ticked"))
    expect_told(page, "Tick the events first")
    for event in events[:2]:
        page.locator(f"input[name=ticked][value='{event.pk}']").check()
    page.get_by_label("Note").fill("the same nightly transfer")
    button(page, "Dismiss ticked").click()
    expect_told(page, "Dismiss ticked: 2 events of invoice-bot.")
    press(page, page.get_by_role("link", name="Tick all 2"))
    expect_told(page, "2 events dismissed.")
    button(page, "Confirm ticked").click()
    button(page, "Send now").click()
    expect_told(page, "2 events confirmed.")
    expect_told(page, "Nothing to review")

    assert [verdicts(event) for event in events] == [["dismissed"]] * 2 + [["confirmed"]] * 2


def test_officer_assigns_snoozes_and_comments_and_the_filters_stay(office: Office, agent: Agent) -> None:
    event, *_ = wait_for_review(agent)
    make_open_event(office.agent("other-bot"), 0.5, minutes_ago=60)
    page = office.browser(Role.OFFICER)
    page.goto("/admin/live/")

    press(page, page.get_by_role("link", name="High", exact=True))
    press(page, page.get_by_role("link", name="Nobody's"))
    expect_shown(page, event)
    page.get_by_label("Note").fill("asked the owner")
    page.get_by_label("Case number").fill("4711")
    press(page, button(page, "Comment"))
    expect_told(page, "Comment added.")
    expect(page.locator(".inbox-comments")).to_contain_text("case 4711")
    page.get_by_label("Snooze the agent").select_option("4")
    press(page, button(page, "Snooze"))
    expect_told(page, "or until the next high-risk event.")
    press(page, page.get_by_role("link", name="Snoozed"))
    page.get_by_label("Assign to").select_option(office.actor_id(Role.OFFICER))
    press(page, button(page, "Assign"))
    expect_told(page, "Assigned.")

    queue = AgentQueue.objects.get(agent=agent)
    assert queue.assignee == office.actor_id(Role.OFFICER)
    assert queue.snoozed_until is not None
    assert queue.snoozed_until > now() + timedelta(hours=3)
    assert InboxComment.objects.filter(agent=agent, case_number="4711", text="asked the owner").count() == 1
    expect(page).to_have_url(re.compile("band=high"))


@pytest.mark.parametrize("by_key", [True, False])
def test_verdict_is_undone_within_ten_seconds(office: Office, agent: Agent, by_key: bool) -> None:
    first, second, *_ = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.clock.install()
    page.goto("/admin/live/")
    page.get_by_label("Note").fill("looked harmless")

    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect_shown(page, second)
    said = page.locator("#inbox-held").get_by_role("status")
    expect(said).to_contain_text(re.compile("Dismiss: .*0.90.* by invoice-bot"))
    expect(said).to_contain_text("event's page can change it later")
    expect(page.locator("#inbox-event")).to_be_focused()
    expect(page.locator(f"input[value='{first.pk}']")).to_have_count(0)
    page.keyboard.press("u") if by_key else button(page, "Undo u").click()
    expect_shown(page, first)
    expect(page.get_by_label("Note")).to_have_value("looked harmless")
    expect(said).to_contain_text("Undone, nothing was recorded.")
    page.clock.fast_forward(11_000)
    page.reload()
    expect_shown(page, first)

    assert verdicts(first) == []


def test_verdict_is_sent_after_ten_seconds(office: Office, agent: Agent) -> None:
    first, second, *_ = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.clock.install()
    page.goto("/admin/live/")

    page.keyboard.press("c")
    expect_shown(page, second)
    assert verdicts(first) == []
    page.clock.fast_forward(11_000)
    expect_told(page, "Confirmed as an attack")

    expect(page.get_by_role("link", name="Change the verdict")).to_be_visible()
    expect(button(page, "Undo u")).to_be_hidden()
    assert verdicts(first) == ["confirmed"]


LEAVING: dict[str, Callable[[Page], object]] = {
    "address": lambda page: page.goto("/admin/live/agents/agent/"),
    "reload": lambda page: page.reload(),
    "closed": lambda page: page.close(),
    "next": lambda page: press(page, "j"),
    "comment": lambda page: press(page, button(page, "Comment")),
}


@pytest.mark.parametrize("way", LEAVING)
def test_leaving_the_page_sends_the_verdict(office: Office, agent: Agent, way: str) -> None:
    first, second, *_ = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.goto("/admin/live/")

    page.keyboard.press("d")
    expect_shown(page, second)
    LEAVING[way](page)

    assert awaited_verdicts(first) == ["dismissed"]


@pytest.mark.parametrize(
    ("reason", "comes_back"), [("colleague", False), ("unavailable", True), ("signed out", True)]
)
def test_refused_verdict_says_why(office: Office, agent: Agent, reason: str, comes_back: bool) -> None:
    first, second, *_ = wait_for_review(agent)
    page = office.browser(Role.OFFICER)
    page.goto("/admin/live/")

    page.keyboard.press("d")
    expect_shown(page, second)
    if reason == "colleague":
        review(
            tenant_id=agent.tenant_id,
            event_id=first.pk,
            verdict=ReviewVerdict.CONFIRMED,
            note=None,
            actor=Actor.system("colleague"),
            now=now(),
        )
    elif reason == "unavailable":
        page.context.set_offline(True)
    else:
        page.context.clear_cookies()
    button(page, "Send now").click()

    expect_told(page, "Not recorded: " + ("" if comes_back else "Somebody else reviewed this event"))
    expect(page.locator(f"input[name=ticked][value='{first.pk}']")).to_have_count(int(comes_back))
    expect_shown(page, second)
    office.world.complaints.clear()  # of the request that could not be sent
    assert verdicts(first) == ([] if comes_back else ["confirmed"])


def test_auditor_reads_the_inbox_and_decides_nothing(office: Office, agent: Agent) -> None:
    _, second, *_ = wait_for_review(agent)
    page = office.browser(Role.AUDITOR)
    page.goto("/admin/live/")

    expect(page.get_by_text("Officers decide; your role reads.")).to_be_visible()
    expect(page.locator("[data-key=d], [data-key=c], input[name=ticked]")).to_have_count(0)
    press(page, "j")

    expect(page.locator(".inbox-events .selected a")).to_have_attribute(
        "href", re.compile(f"event={second.pk}")
    )


def test_officer_begins_the_day_at_the_inbox(office: Office, agent: Agent) -> None:
    first, *_ = wait_for_review(agent)
    office.browser(Role.OFFICER)
    officer = office.people[Role.OFFICER]
    officer.set_password(PASSWORD)
    officer.save(update_fields=["password"])
    page = office.world.browser_of(None)
    page.add_init_script(COUNTING)

    show_password(page, officer.username)
    page.wait_for_url("**/admin/live/")
    expect_shown(page, first)
    button(page, "Dismiss d").click()
    expect_told(page, "Sent in ten seconds")
    page.reload()

    # One of the two is the button that signs in.
    assert page.evaluate(CLICKS) == 2
    assert awaited_verdicts(first) == ["dismissed"]
