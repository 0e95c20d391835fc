"""Schedules: a report of each month or quarter, requested once it is over.

A schedule holds the start of the period that it reports next, and moves it in the transaction that requests
the report: a run may be repeated, overlap another, or be lost.
"""

from datetime import datetime, timedelta
from uuid import UUID

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.reports import services
from compliance.reports.errors import ScheduleEnded
from compliance.reports.models import ReportSchedule
from compliance.reports.periods import following, start_of
from compliance.reports.vocabulary import Cadence
from compliance.stores.sweeps import each

SETTLING = timedelta(hours=1)
"""The time after a period's end at which its report is requested."""
MOST_AT_ONCE = 12
SCHEDULER = Actor.system("compliance.reports.run_schedules")


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
    ended = " ended" if action == AuditAction.REPORT_SCHEDULE_ENDED else ""
    auditlog.record(
        tenant_id=schedule.tenant_id,
        action=action,
        affected_id=schedule.id,
        description=f"Report schedule{ended}: {schedule}",
        metadata={
            "type": schedule.type,
            "cadence": schedule.cadence,
            "next_start": schedule.next_start.isoformat(),
        },
        actor=actor,
        now=now,
    )
