"""Each role's day in the browser: what a person does there is what the database holds afterwards."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from auditlog.models import AuditEntry
from auditlog.tests.factories import seal_and_sign
from certificates.models import CertificateStatus
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.reports import services as reports
from compliance.reports.models import Report
from compliance.tenancy.models import ApiKey, Role
from compliance.tests.browser.world import NONE, OPERATOR, World
from compliance.tests.console import actor_id_of, populate
from compliance.tests.url_table import routes
from events.models import EventReview, ReviewVerdict

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("committed", "quiet")]

NUMBERS = count(1)
ROUTES = {route.name: route for route in routes()}


@pytest.fixture
def rows(world: World) -> dict[str, Any]:
    """Rows of this test's own."""
    return populate(world.tenant, Environment.LIVE, f"payments-{next(NUMBERS)}")


def follow(page: Page, name: str, key: object = None) -> None:
    page.goto(ROUTES[name].url(key))


def act(page: Page, label: str, reason: str = "") -> None:
    """Choose an action of the row's page, give the reason that it asks for, and confirm."""
    page.locator(".console-actions").get_by_role("link", name=label).click()
    if reason:
        page.get_by_role("main").get_by_role("textbox").first.fill(reason)
    page.get_by_role("main").get_by_role("button", name=label).click()


def entry_of(world: World, event_type: str) -> AuditEntry:
    found = AuditEntry.objects.for_tenant(world.tenant.id).of_type(event_type)
    return found.order_by("-created_at", "-id")[0]


def test_officer_reviews_an_event(world: World, rows: dict[str, Any]) -> None:
    event = rows["events_behaviorevent"]
    page = world.signed_in(Role.OFFICER)

    follow(page, "events_behaviorevent_change", event.pk)
    act(page, "Dismiss", "case 4711: a known test transfer")

    expect(page.get_by_role("main")).to_contain_text("4711")
    review = EventReview.objects.filter(event_id=event.id).latest("number")
    assert (review.verdict, review.note) == (ReviewVerdict.DISMISSED, "case 4711: a known test transfer")
    assert entry_of(world, "event.reviewed").actor_id == actor_id_of(Role.OFFICER)


def test_officer_revokes_a_certificate(world: World, rows: dict[str, Any]) -> None:
    certificate = rows["certificates_certificate"]
    page = world.signed_in(Role.OFFICER)

    follow(page, "certificates_certificate_change", certificate.pk)
    act(page, "Revoke certificate", "key compromise: laptop lost")

    certificate.refresh_from_db()
    entry = entry_of(world, "certificate.revoked")
    assert certificate.status == CertificateStatus.REVOKED
    assert (entry.actor_id, entry.affected_id) == (actor_id_of(Role.OFFICER), str(certificate.pk))


def test_auditor_downloads_a_report_and_verifies_an_entry(
    world: World, rows: dict[str, Any], tmp_path: Path
) -> None:
    report: Report = rows["reports_report"]
    reports.generate(report_id=report.id, now=now())
    seal_and_sign()
    page = world.signed_in(Role.AUDITOR)

    follow(page, "reports_report_change", report.pk)
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON").first.click()
    download.value.save_as(tmp_path / "report.json")
    follow(page, "auditlog_auditentry_verify", entry_of(world, "certificate.issued").pk)

    assert json.loads((tmp_path / "report.json").read_text())["report_id"] == str(report.pk)
    expect(page.get_by_text("No check failed").or_(page.get_by_text("Every check passed"))).to_be_visible()
    follow(page, "agents_agent_change", rows["agents_agent"].pk)
    expect(page.locator(".console-actions").get_by_role("link", name="Suspend")).to_have_count(0)


def test_operator_makes_a_key(world: World) -> None:
    page = world.signed_in(OPERATOR)

    follow(page, "tenancy_apikey_add")
    page.get_by_label("Tenant").select_option(str(world.tenant.pk))
    page.get_by_label("Name").fill("nightly import")
    for scope in page.locator("input[name=scopes]").all()[:1]:
        scope.check()
    page.get_by_role("button", name="Save", exact=True).click()

    secret = page.locator("#secret").input_value()
    key = ApiKey.objects.get(name="nightly import", tenant_id=world.tenant.pk)
    assert secret.startswith("service_live_")
    assert entry_of(world, "api_key.created").affected_id == str(key.pk)
    page.goto(page.url)
    assert secret not in page.content()


def test_developer_switches_a_webhook_off_and_looks_at_the_sandbox(
    world: World, rows: dict[str, Any]
) -> None:
    webhook = rows["webhooks_webhook"]
    page = world.signed_in(Role.DEVELOPER)

    follow(page, "webhooks_webhook_change", webhook.pk)
    act(page, "Switch off")
    webhook.refresh_from_db()
    page.get_by_role("navigation", name="Environment").get_by_role("link", name="test").click()

    page.wait_for_url("**/admin/test/**")
    assert not webhook.active
    expect(page.get_by_text("Test environment:")).to_be_visible()
    assert str(webhook.pk) not in page.content()


def test_a_person_without_a_membership_sees_no_row(world: World, rows: dict[str, Any]) -> None:
    page = world.signed_in(NONE)

    expect(page.get_by_text("belongs to no tenant")).to_be_visible()
    follow(page, "agents_agent_change", rows["agents_agent"].pk)

    assert "payments" not in page.content()


def test_person_signs_out(world: World) -> None:
    page = world.signed_in(Role.AUDITOR)

    page.locator("[aria-controls=console-user-menu]").click()
    page.get_by_role("button", name="Log out").click()
    follow(page, "agents_agent_changelist")

    expect(page.get_by_label("Username")).to_be_visible()
