"""Schedules: a report of each period that is over, once, whatever runs are repeated, overlap or are lost."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import IntegrityError
from django.db.models import F

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from reports import services
from reports.errors import ReportNotFailed
from reports.models import Report, ReportSchedule
from reports.periods import PRESETS, following, start_of
from reports.querysets import MAX_ATTEMPTS
from reports.scheduling import SETTLING, create_schedule, run_schedules
from reports.vocabulary import Cadence, ReportStatus
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

ACTOR = Actor.system("tests")
MARCH, APRIL, MAY = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 4, 5))


def make_schedule(
    tenant: Tenant, *, at: datetime = MARCH, cadence: Cadence = Cadence.MONTH
) -> ReportSchedule:
    return create_schedule(tenant_id=tenant.id, type="mica", cadence=cadence, actor=ACTOR, now=at)


def periods() -> list[tuple[datetime, datetime]]:
    return list(Report.objects.order_by("period_start").values_list("period_start", "period_end"))


def test_month_is_reported_an_hour_after_its_end(tenant: Tenant) -> None:
    schedule = make_schedule(tenant, at=MARCH + timedelta(days=11))

    assert run_schedules(now=APRIL) == 0
    assert run_schedules(now=APRIL + SETTLING) == 1

    assert periods() == [(MARCH, APRIL)]
    assert Report.objects.get().schedule == schedule


def test_run_may_be_repeated(tenant: Tenant) -> None:
    make_schedule(tenant)

    assert [run_schedules(now=APRIL + timedelta(days=3)) for _ in range(3)] == [1, 0, 0]


def test_lost_runs_are_caught_up(tenant: Tenant) -> None:
    make_schedule(tenant)

    assert run_schedules(now=MAY + timedelta(days=3)) == 2

    assert periods() == [(MARCH, APRIL), (APRIL, MAY)]


def test_database_holds_one_report_of_a_period(tenant: Tenant) -> None:
    schedule = make_schedule(tenant)
    run_schedules(now=APRIL + SETTLING)

    with pytest.raises(IntegrityError), environments.atomic():
        Report.objects.create(
            tenant=tenant,
            type="mica",
            period_start=MARCH,
            period_end=APRIL,
            schedule=schedule,
            created_at=APRIL,
        )


def test_period_that_has_its_report_is_passed_over(tenant: Tenant) -> None:
    schedule = make_schedule(tenant)
    run_schedules(now=APRIL + SETTLING)
    ReportSchedule.objects.filter(id=schedule.id).update(next_start=MARCH)

    assert run_schedules(now=MAY + SETTLING) == 1
    assert periods() == [(MARCH, APRIL), (APRIL, MAY)]


def test_schedule_that_fails_holds_up_no_other(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = make_schedule(tenant), make_schedule(make_tenant("Rival"))
    # Before the year 1, which no date of Python's is.
    ReportSchedule.objects.filter(id=broken.id).update(next_start=F("next_start") - timedelta(days=800_000))

    made = run_schedules(now=APRIL + SETTLING)

    assert (made, Report.objects.get().schedule) == (1, sound)
    assert f"row {broken.id} of a sweep failed" in caplog.text
    ReportSchedule.objects.filter(id=broken.id).update(next_start=MARCH)
    assert run_schedules(now=APRIL + SETTLING) == 1


def test_quarter_is_reported(tenant: Tenant) -> None:
    make_schedule(tenant, cadence=Cadence.QUARTER)

    run_schedules(now=APRIL + SETTLING)

    assert periods() == [(datetime(2026, 1, 1, tzinfo=UTC), APRIL)]


def test_failed_report_is_generated_again(tenant: Tenant) -> None:
    report = services.request_report(
        tenant_id=tenant.id, type="mica", period_start=MARCH, period_end=APRIL, actor=ACTOR, now=MAY
    )
    with pytest.raises(ReportNotFailed):
        services.retry(report=report, actor=ACTOR, now=MAY)
    Report.objects.update(status=ReportStatus.FAILED, attempts=MAX_ATTEMPTS, completed_at=MAY)

    services.retry(report=report, actor=ACTOR, now=MAY)

    assert services.generate_next(now=now())
    report.refresh_from_db()
    assert (report.status, report.attempts) == (ReportStatus.READY, 1)


@pytest.mark.parametrize(
    ("cadence", "moment", "start", "after"),
    [
        (Cadence.MONTH, "2026-12-31T23:59:59", "2026-12-01", "2027-01-01"),
        (Cadence.MONTH, "2028-02-29T12:00:00", "2028-02-01", "2028-03-01"),
        (Cadence.QUARTER, "2026-12-31T00:00:00", "2026-10-01", "2027-01-01"),
        (Cadence.QUARTER, "2026-02-28T00:00:00", "2026-01-01", "2026-04-01"),
    ],
)
def test_periods_follow_the_calendar(cadence: Cadence, moment: str, start: str, after: str) -> None:
    found = start_of(cadence, datetime.fromisoformat(moment).replace(tzinfo=UTC))

    assert (f"{found:%Y-%m-%d}", f"{following(cadence, found):%Y-%m-%d}") == (start, after)


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("month", "2025-12-01", "2025-12-31"),
        ("quarter", "2025-10-01", "2025-12-31"),
        ("year", "2025-01-01", "2025-12-31"),
        ("30", "2025-12-17", "2026-01-15"),
    ],
)
def test_presets_end_before_today_or_with_it(name: str, first: str, last: str) -> None:
    assert tuple(map(str, PRESETS[name][1](date(2026, 1, 15)))) == (first, last)
