"""Schedules: a report of each month or quarter, requested once it is over.

A schedule holds the start of the period that it reports next, and moves it in the transaction that requests
the report: a run may be repeated, overlap another, or be lost.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.stores.sweeps import each
from reports import services
from reports.errors import PeriodReported, ScheduleEnded, ScheduleExists
from reports.models import ReportSchedule
from reports.periods import following, start_of
from reports.vocabulary import Cadence

SETTLING = timedelta(hours=1)
"""The time after a period's end at which its report is requested."""
MOST_AT_ONCE = 12
SCHEDULER = Actor.system("reports.run_schedules")


def create_schedule(
    *,
    tenant_id: UUID,
    type: str,  # noqa: A002
    cadence: str,
    actor: Actor,
    now: datetime,
) -> ReportSchedule:
    """Return the tenant's lasting schedule; a new one reports the period that holds `now` first."""
    with environments.atomic():
        schedule, is_new = ReportSchedule.objects.get_or_create(
            tenant_id=tenant_id,
            type=type,
            cadence=cadence,
            ended_at=None,
            defaults={"next_start": start_of(Cadence(cadence), now), "created_at": now},
        )
        if is_new:
            _record(schedule, AuditAction.REPORT_SCHEDULED, actor, now)
    return schedule


def change_schedule(
    *, tenant_id: UUID, schedule_id: Any, cadence: str, actor: Actor, now: datetime
) -> ReportSchedule:
    """Let a schedule report in another cadence, from the period on that holds the start of its next one.

    Raises ScheduleNotFound, ScheduleEnded, ScheduleExists; PeriodReported if that period has a report.
    """
    with environments.atomic():
        found = ReportSchedule.objects.for_tenant(tenant_id)
        schedule = found.select_for_update(of=("self",)).find(schedule_id)
        if schedule.ended_at is not None:
            raise ScheduleEnded()
        if cadence == schedule.cadence:
            return schedule
        if found.lasting().filter(type=schedule.type, cadence=cadence).exists():
            raise ScheduleExists()
        start = start_of(Cadence(cadence), schedule.next_start)
        if schedule.reports.filter(period_start__gte=start).exists():
            raise PeriodReported()
        schedule.cadence, schedule.next_start = cadence, start
        try:
            with environments.atomic():
                schedule.save(update_fields=["cadence", "next_start"])
        except IntegrityError as error:  # made meanwhile
            raise ScheduleExists() from error
        _record(schedule, AuditAction.REPORT_SCHEDULE_CHANGED, actor, now)
    return schedule


def end_schedule(*, schedule: ReportSchedule, actor: Actor, now: datetime) -> None:
    """End a schedule; its reports stay. Raises: ScheduleEnded."""
    with environments.atomic():
        if not ReportSchedule.objects.lasting().filter(id=schedule.id).update(ended_at=now):
            raise ScheduleEnded()
        _record(schedule, AuditAction.REPORT_SCHEDULE_ENDED, actor, now)


def run_schedules(*, now: datetime) -> int:
    """Request the reports of all periods that are over; return how many. Safe to repeat.

    A schedule that fails is tried again by the next run; a period that has its report is passed over.
    """
    due = ReportSchedule.objects.lasting().filter(next_start__lt=now).order_by("next_start", "id")
    return each(due.values_list("id", flat=True), lambda schedule_id: _run(schedule_id, now))


def _run(schedule_id: UUID, now: datetime) -> int:
    """Request what one schedule is due, the oldest first; what is left over is for the next run."""
    made = 0
    for _ in range(MOST_AT_ONCE):
        with environments.atomic():
            schedule = ReportSchedule.objects.lasting().select_for_update().filter(id=schedule_id).first()
            if schedule is None:
                break
            start, end = schedule.next_start, following(Cadence(schedule.cadence), schedule.next_start)
            if end + SETTLING > now:
                break
            if not schedule.reports.filter(period_start=start).exists():
                services.request_report(
                    tenant_id=schedule.tenant_id,
                    type=schedule.type,
                    period_start=start,
                    period_end=end,
                    schedule=schedule,
                    actor=SCHEDULER,
                    now=now,
                )
                made += 1
            schedule.next_start = end
            schedule.save(update_fields=["next_start"])
    return made


def _record(schedule: ReportSchedule, action: AuditAction, actor: Actor, now: datetime) -> None:
    verb = {
        AuditAction.REPORT_SCHEDULE_ENDED: " ended",
        AuditAction.REPORT_SCHEDULE_CHANGED: " changed",
    }.get(action, "")
    description = f"Report schedule{verb}: {schedule}"
    metadata = {
        "type": schedule.type,
        "cadence": schedule.cadence,
        "next_start": schedule.next_start.isoformat(),
    }
    auditlog.record(
        of=schedule, action=action, description=description, metadata=metadata, actor=actor, now=now
    )
