"""An auditor's day: the audit log is searched, filtered, exported and verified; nothing is changed."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from auditlog.tests.factories import seal_and_sign
from certificates.models import Certificate
from compliance.core.clock import now
from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.steps import act, expect_told, follow, look_for, press
from reports import services as reports
from tenancy.models import Role

pytestmark = pytest.mark.browser

ROWS = "#result_list tbody tr"


def saved(page: Page, label: str, folder: Path) -> Path:
    with page.expect_download() as found:
        page.get_by_role("link", name=label, exact=True).first.click()
    target = folder / found.value.suggested_filename
    found.value.save_as(target)
    return target


def test_auditor_finds_an_entry_and_exports_the_log(office: Office, tmp_path: Path) -> None:
    certificate = Certificate.objects.get(agent=office.agent("invoice-bot"))
    officer = office.browser(Role.OFFICER)
    follow(officer, "certificates_certificate_change", certificate.pk)
    act(officer, "Revoke certificate", "superseded: quarterly renewal")
    seal_and_sign()
    page = office.browser(Role.AUDITOR)

    follow(page, "auditlog_auditentry_changelist")
    look_for(page, "quart renew")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(ROWS)).to_contain_text("certificate.revoked")
    follow(page, "auditlog_auditentry_changelist")
    page.get_by_role("button", name="Filters", exact=True).click()
    page.get_by_label("By person or actor ID").fill(office.people[Role.OFFICER].username)
    press(page, page.get_by_role("button", name="Apply"))
    expect(page.locator(ROWS).first).to_contain_text("certificate.revoked")
    for row in page.locator(ROWS).all():
        expect(row).to_contain_text(office.people[Role.OFFICER].username)
    lines = saved(page, "Export JSON Lines", tmp_path).read_text().splitlines()

    assert any("certificate.revoked" in line for line in lines)
    assert all(json.loads(line) for line in lines)
    assert office.entry("audit.exported").actor_id == office.actor_id(Role.AUDITOR)


def test_auditor_verifies_an_entry_and_takes_its_proof(office: Office, tmp_path: Path) -> None:
    office.agent("invoice-bot")
    seal_and_sign()
    page = office.browser(Role.AUDITOR)

    follow(page, "auditlog_auditentry_change", office.entry("certificate.issued").pk)
    proof = saved(page, "Proof", tmp_path)
    press(page, page.locator(".console-actions").get_by_role("link", name="Verify"))

    expect(page.get_by_text("No check failed").or_(page.get_by_text("Every check passed"))).to_be_visible()
    assert proof.read_text().startswith("c2sp.org/tlog-proof@v1")


def test_auditor_downloads_a_report_and_changes_nothing(office: Office, tmp_path: Path) -> None:
    rows = office.rows()
    report = rows["reports_report"]
    seal_and_sign()
    while reports.generate_next(now=now()):
        continue
    page = office.browser(Role.AUDITOR)

    follow(page, "reports_report_change", report.pk)
    found = json.loads(saved(page, "JSON", tmp_path).read_text())
    follow(page, "agents_agent_change", rows["agents_agent"].pk)

    assert found["report_id"] == str(report.pk)
    expect_told(page, rows["agents_agent"].name)
    expect(page.locator(".console-actions").get_by_role("link", name="Suspend")).to_have_count(0)
