"""A developer's day: a webhook is added, tried, failing, sent again, and switched off."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from compliance.core.clock import now
from compliance.outbound.tests.receivers import answers, receiving
from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.steps import act, expect_told, follow, press, save
from tenancy.models import Role
from webhooks.models import Delivery, DeliveryStatus, Webhook
from webhooks.sending.attempts import send
from webhooks.tests.steps import claim, settle

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_HTTP = True
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = True


def deliver(webhook: Webhook) -> Delivery:
    """Do what the sender does until the webhook's newest delivery is over; other webhooks' wait."""
    delivery = Delivery.objects.filter(webhook=webhook).latest("created_at")
    while not delivery.is_finished:
        due = max(now(), delivery.next_attempt_at or now())
        for attempt in claim(due):
            if attempt.delivery_id == delivery.id:
                outcome = send(attempt)
                settle(attempt, outcome, due + outcome.duration)
        delivery.refresh_from_db()
    return delivery


def test_developer_adds_a_webhook_and_sends_a_failed_message_again(office: Office) -> None:
    page = office.browser(Role.DEVELOPER)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    most = Delivery._meta.get_field("max_attempts").default

    with receiving(answers(*[500] * most, 200)) as receiver:
        follow(page, "webhooks_webhook_add")
        page.get_by_label("URL").fill("ftp://example.org/nowhere")
        save(page)
        expect(page.get_by_text("Must be an absolute URL")).to_be_visible()
        page.get_by_label("URL").fill(receiver.url)
        page.get_by_label("agent.created").check()
        save(page)
        secret = page.locator("#secret").input_value()
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied.")).to_be_visible()
        assert page.evaluate("() => navigator.clipboard.readText()") == secret
        press(page, page.get_by_role("link", name="I have kept it"))
        assert secret not in page.content()

        webhook = Webhook.objects.get(tenant_id=office.tenant.pk)
        act(page, "Send test")
        expect_told(page, "A test message is on its way")
        assert deliver(webhook).status == DeliveryStatus.FAILED
        press(page, page.get_by_role("main").get_by_role("link", name="Deliveries"))
        press(page, page.locator("#result_list tbody th a").first)
        expect_told(page, "webhook.test")
        expect(page.get_by_text("500").first).to_be_visible()
        act(page, "Redeliver")
        expect_told(page, "The message is on its way again")
        assert deliver(webhook).status == DeliveryStatus.SUCCEEDED

        follow(page, "webhooks_webhook_changelist")
        expect_told(page, "50 % of 2")

    assert len({one.headers["webhook-id"] for one in receiver.received}) == 1
    assert office.entry("webhook.created").actor_id == office.actor_id(Role.DEVELOPER)


def test_developer_rotates_a_secret(office: Office) -> None:
    webhook = office.rows()["webhooks_webhook"]
    page = office.browser(Role.DEVELOPER)

    follow(page, "webhooks_webhook_change", webhook.pk)
    act(page, "Rotate secret", hours="2")

    expect(page.locator("#secret")).to_have_value(re.compile("^whsec_"))
    press(page, page.get_by_role("link", name="I have kept it"))
    expect(page.get_by_label("URL")).to_have_value(webhook.url)


def test_developer_switches_a_webhook_off_and_looks_at_the_sandbox(office: Office) -> None:
    webhook = office.rows()["webhooks_webhook"]
    page = office.browser(Role.DEVELOPER)

    follow(page, "webhooks_webhook_change", webhook.pk)
    act(page, "Switch off")
    expect_told(page, "The webhook is switched off.")
    page.get_by_role("navigation", name="Environment").get_by_role("link", name="test").click()

    page.wait_for_url("**/admin/test/**")
    webhook.refresh_from_db()
    assert not webhook.active
    expect(page.get_by_text("Test environment:")).to_be_visible()
    assert str(webhook.pk) not in page.content()
