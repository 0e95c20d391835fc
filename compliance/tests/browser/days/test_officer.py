"""An officer's day: a review, a revocation, the incident that it opens, and a report."""

import hashlib
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect
from pypdf import PdfReader

from auditlog.tests.factories import seal_and_sign
from certificates.models import Certificate, CertificateStatus
from compliance.core.clock import now
from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.steps import act, button, expect_told, follow, look_for, press, save
from events.models import EventReview, ReviewVerdict
from incidents.models import Incident
from incidents.vocabulary import IncidentState
from reports import services as reports
from reports.models import Report
from tenancy.models import Role

pytestmark = pytest.mark.browser


def download(page: Page, label: str, folder: Path) -> Path:
    """Press the first link of this label, and return the file that it leads to."""
    with page.expect_download() as found:
        page.get_by_role("main").get_by_role("link", name=label, exact=True).first.click()
    target = folder / found.value.suggested_filename
    found.value.save_as(target)
    return target


def test_officer_reviews_an_event(office: Office) -> None:
    event = office.rows()["events_behaviorevent"]
    page = office.browser(Role.OFFICER)

    follow(page, "events_behaviorevent_change", event.pk)
    act(page, "Dismiss", "case 4711: a known test transfer")

    expect_told(page, "4711")
    review = EventReview.objects.filter(event_id=event.id).latest("number")
    assert (review.verdict, review.note) == (ReviewVerdict.DISMISSED, "case 4711: a known test transfer")
    assert office.entry("event.reviewed").actor_id == office.actor_id(Role.OFFICER)


def test_officer_revokes_a_certificate_and_works_on_the_incident(office: Office, tmp_path: Path) -> None:
    certificate = Certificate.objects.get(agent=office.agent("invoice-bot"))
    page = office.browser(Role.OFFICER)

    follow(page, "certificates_certificate_changelist")
    look_for(page, certificate.serial_number)
    press(page, page.get_by_role("main").get_by_role("link", name=certificate.serial_number[:8]).first)
    act(page, "Revoke certificate", "key compromise: laptop lost")
    expect_told(page, "revoked")
    certificate.refresh_from_db()
    entry = office.entry("certificate.revoked")
    assert certificate.status == CertificateStatus.REVOKED
    assert (entry.actor_id, entry.affected_id) == (office.actor_id(Role.OFFICER), str(certificate.pk))

    incident = Incident.objects.get(tenant_id=office.tenant.pk)
    follow(page, "incidents_incident_changelist")
    press(page, page.get_by_role("main").get_by_role("link", name=incident.reference).first)
    expect(page.locator("[data-due]").first).to_contain_text("left")
    act(page, "Assess", severity="high", owner="Olga Offiz")
    expect_told(page, "Olga Offiz")
    act(page, "Add note", "the laptop was reported lost at noon")
    expect_told(page, "the laptop was reported lost at noon")

    evidence = tmp_path / "evidence.txt"
    evidence.write_text("what the laptop said")
    press(page, page.locator(".console-actions").get_by_role("link", name="Attach by digest"))
    page.get_by_label("Choose the file").set_input_files(evidence)
    digest = hashlib.sha256(evidence.read_bytes()).hexdigest()
    expect(page.get_by_label("SHA-256")).to_have_value(digest)
    press(page, button(page, "Attach by digest"))
    expect_told(page, digest)

    act(page, "Draft notification")
    expect_told(page, "fields filled from the record")
    draft = json.loads(download(page, "JSON", tmp_path).read_text())
    pdf = PdfReader(download(page, "PDF", tmp_path))
    assert draft
    assert len(pdf.pages) > 0

    act(page, "Report sent", report="ai_act.report")
    expect_told(page, ": sent.")
    act(page, "Close incident")
    expect_told(page, "clock")
    follow(page, "incidents_incident_change", incident.pk)
    act(page, "Assess", dora_class="not_major")
    act(page, "Close incident")
    expect_told(page, "is closed")
    incident.refresh_from_db()
    assert (incident.state, incident.owner) == (IncidentState.CLOSED, "Olga Offiz")


def test_officer_asks_for_a_report_and_waits_for_it(office: Office, tmp_path: Path) -> None:
    office.agent("invoice-bot")
    page = office.browser(Role.OFFICER)

    follow(page, "reports_report_add")
    page.locator("main [name=tenant]").select_option(str(office.tenant.pk))
    page.locator("main [name=type]").select_option("mica")
    page.locator("main [name=period]").select_option(index=1)
    save(page)
    expect_told(page, "The report was requested.")
    page.evaluate("() => { window.neverReloaded = true }")
    seal_and_sign()
    report = Report.objects.get(tenant_id=office.tenant.pk)
    while reports.generate_next(now=now()):
        continue

    expect(page.get_by_role("link", name="Signed bundle")).to_be_visible()
    assert page.evaluate("() => window.neverReloaded")
    found = json.loads(download(page, "JSON", tmp_path).read_text())
    pdf = PdfReader(download(page, "PDF", tmp_path))
    bundle = download(page, "Signed bundle", tmp_path)
    assert found["report_id"] == str(report.pk)
    assert len(pdf.pages) > 0
    call_command("report_verify", str(bundle))
    assert office.entry("report.downloaded").actor_id == office.actor_id(Role.OFFICER)


def test_officer_schedules_a_report_and_ends_the_schedule(office: Office) -> None:
    page = office.browser(Role.OFFICER)

    follow(page, "reports_reportschedule_add")
    page.locator("main [name=tenant]").select_option(str(office.tenant.pk))
    page.locator("main [name=type]").select_option("mica")
    page.locator("main [name=cadence]").select_option("month")
    save(page)
    follow(page, "reports_reportschedule_changelist")
    press(page, page.get_by_role("main").get_by_role("link", name="MiCA").first)
    act(page, "End the schedule")

    expect_told(page, "The schedule has ended; its reports stay.")
