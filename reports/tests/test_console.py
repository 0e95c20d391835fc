"""Reports in the console: asked for by officers, downloaded by members, unknown to others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse

from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from compliance.tests.console import actor_id_of, console_of, join, make_member
from reports import services
from reports.bundles.archive import unpack
from reports.models import Report, ReportSchedule
from reports.periods import in_words, start_of
from reports.vocabulary import Cadence, ReportType
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_key, make_tenant

FORM = {"type": "eu_ai_act", "first_day": "2026-10-01", "last_day": "2026-10-31"}


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def make_ready_report(tenant: Tenant) -> Report:
    report = services.request_report(
        tenant_id=tenant.id,
        type=ReportType.MICA,
        period_start=now() - timedelta(days=7),
        period_end=now(),
        actor=Actor.system("tests"),
        now=now(),
    )
    services.generate_next(now=now())
    report.refresh_from_db()
    return report


def ask(user: Any, **fields: Any) -> Any:
    return console_of(user).post(reverse("admin:reports_report_add"), {**FORM, **fields})


def test_officer_asks_for_a_report_of_whole_days(acme: Tenant) -> None:
    ask(make_member(acme, Role.OFFICER), tenant=acme.id)

    report = Report.objects.get(tenant=acme)
    (entry,) = AuditEntry.objects.for_tenant(acme.id).of_type("report.requested")
    assert (f"{report.period_start:%m-%d}", f"{report.period_end:%m-%d}") == ("10-01", "11-01")
    assert entry.actor_id == actor_id_of("officer")


def test_officer_asks_for_a_preset_period(acme: Tenant) -> None:
    answer = ask(make_member(acme, Role.OFFICER), tenant=acme.id, period="month", first_day="", last_day="")

    report = Report.objects.get(tenant=acme)
    assert answer.url == reverse("admin:reports_report_change", args=[report.pk])
    assert (report.period_start, report.period_end) == (
        start_of(Cadence.MONTH, start_of(Cadence.MONTH, now()) - timedelta(days=1)),
        start_of(Cadence.MONTH, now()),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"first_day": "", "last_day": ""},
        {"period": "century"},
        {"last_day": "2026-09-30"},
        {"first_day": "2001-01-01"},
        {"first_day": "2096-01-01", "last_day": "2096-01-02"},
        {"last_day": f"{now() + timedelta(days=1):%Y-%m-%d}"},
    ],
)
def test_a_senseless_period_is_refused(acme: Tenant, fields: dict[str, str]) -> None:
    answer = ask(make_member(acme, Role.OFFICER), tenant=acme.id, **fields)

    assert answer.status_code == 200
    assert not Report.objects.exists()


@pytest.mark.parametrize(
    ("form", "days"),
    [({"first_day": "", "last_day": "", "period": "30"}, 29), ({}, 0), ({}, 6)],
)
def test_console_and_api_report_today_and_name_the_last_day_alike(
    acme: Tenant, form: dict[str, Any], days: int
) -> None:
    before = now()
    first, today = (f"{moment:%Y-%m-%d}" for moment in (before - timedelta(days=days), before))
    client = console_of(make_member(acme, Role.OFFICER))
    body = {"type": "eu_ai_act", "period_start": first, "period_end": today}

    page = client.post(
        reverse("admin:reports_report_add"),
        {"type": "eu_ai_act", "tenant": acme.id, "first_day": first, "last_day": today, **form},
        follow=True,
    ).content.decode()
    answer = ApiClient(make_key(acme)).post("/v1/reports", body)

    assert answer.status_code == 202
    asked = list(Report.objects.filter(tenant=acme))
    assert len({report.period_start for report in asked}) == 1
    assert all(before <= report.period_end <= now() for report in asked)
    assert f"EU AI Act {first} to {today}" in page
    assert "The report was requested." in page


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2026-10-01", "2026-11-01", "2026-10-01 to 2026-10-31"),
        ("2026-10-01", "2026-10-02", "2026-10-01 to 2026-10-01"),
        ("2026-10-01", "2026-10-02T09:30", "2026-10-01 to 2026-10-02 09:30"),
        ("2026-10-01T08:00", "2026-10-02T00:00", "2026-10-01 08:00 to 2026-10-01"),
        ("2026-10-01T00:00+02:00", "2026-10-02T00:00+02:00", "2026-09-30 22:00 to 2026-10-01 22:00"),
    ],
)
def test_period_is_named_by_the_last_day_that_it_includes(start: str, end: str, words: str) -> None:
    moments = (datetime.fromisoformat(text) for text in (start, end))

    assert in_words(*(each if each.tzinfo else each.replace(tzinfo=UTC) for each in moments)) == words


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.DEVELOPER])
def test_auditors_and_developers_ask_for_none(acme: Tenant, role: Role) -> None:
    assert ask(make_member(acme, role), tenant=acme.id).status_code == 403


def test_officers_ask_for_tenants_of_theirs_only(acme: Tenant) -> None:
    rival, audited = make_tenant("Rival"), make_tenant("Audited")
    user = make_member(acme, Role.OFFICER)
    join(user, audited, Role.AUDITOR)

    answers = [ask(user, tenant=tenant.id) for tenant in (rival, audited)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert not Report.objects.exists()
    assert "Rival" not in answers[0].content.decode()


def test_a_ready_report_is_shown_and_downloaded(acme: Tenant) -> None:
    report = make_ready_report(acme)
    client = console_of(make_member(acme, Role.AUDITOR))

    page = client.get(reverse("admin:reports_report_change", args=[report.pk])).content.decode()
    files = {
        kind: client.get(reverse(f"admin:reports_report_{kind}", args=[report.pk]))
        for kind in ("pdf", "json", "zip")
    }

    assert report.digest in page
    assert files["pdf"].content.startswith(b"%PDF")
    assert files["json"].content.decode() == report.document
    assert files["pdf"].content == bytes(report.pdf)
    assert unpack(files["zip"].content)["manifest.json"].decode() == report.manifest
    assert "attachment" in files["json"].headers["Content-Disposition"]


def test_page_of_an_unfinished_report_follows_its_progress(acme: Tenant) -> None:
    ask(make_member(acme, Role.OFFICER), tenant=acme.id)
    report, client = Report.objects.get(tenant=acme), console_of(make_member(acme, Role.AUDITOR, "reader"))
    progress = reverse("admin:reports_report_progress", args=[report.pk])

    page = client.get(reverse("admin:reports_report_change", args=[report.pk])).content.decode()
    before = client.get(progress).json()
    Report.objects.claim_next(now())
    during = client.get(progress).json()
    Report.objects.update(status="pending", started_at=None)
    services.generate_next(now=now())
    after = client.get(progress).json()

    assert progress in page
    assert "console/report-progress.js" in page
    assert [each["is_over"] for each in (before, during, after)] == [False, False, True]
    assert "attempt 1 of 5" in during["state"]
    assert reverse("admin:reports_report_zip", args=[report.pk]) in after["downloads"]


def test_officer_has_a_failed_report_generated_again(acme: Tenant) -> None:
    report, officer = make_ready_report(acme), make_member(acme, Role.OFFICER)
    emptied = {"document": "", "pdf": b"", "digest": "", "manifest": "", "signature": b"", "signing_key": b""}
    Report.objects.update(status="failed", **emptied)
    url = reverse("admin:reports_report_retry", args=[report.pk])

    assert console_of(make_member(acme, Role.AUDITOR, "reader")).post(url).status_code == 403
    console_of(officer).post(url)

    report.refresh_from_db()
    assert (report.status, report.attempts) == ("pending", 0)


def test_officer_schedules_reports_and_ends_the_schedule(acme: Tenant) -> None:
    client = console_of(make_member(acme, Role.OFFICER))
    form = {"tenant": acme.id, "type": "mica", "cadence": "quarter"}

    client.post(reverse("admin:reports_reportschedule_add"), form)
    again = client.post(reverse("admin:reports_reportschedule_add"), form)
    (schedule,) = ReportSchedule.objects.all()
    client.post(reverse("admin:reports_reportschedule_end", args=[schedule.pk]))

    assert "This report is scheduled already." in again.content.decode()
    schedule.refresh_from_db()
    assert schedule.ended_at is not None
    types = AuditEntry.objects.for_tenant(acme.id).about(schedule.pk).values_list("event_type", flat=True)
    assert list(types) == ["report.schedule_ended", "report.scheduled"]


def test_auditors_schedule_nothing(acme: Tenant) -> None:
    client = console_of(make_member(acme, Role.AUDITOR))

    assert client.get(reverse("admin:reports_reportschedule_add")).status_code == 403
