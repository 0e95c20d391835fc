"""Queries of reports, and the claim of a report by a worker."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import F, Q

from compliance.core.identifiers import parse_id
from compliance.reports.errors import ReportNotFound, ScheduleNotFound
from compliance.reports.vocabulary import ReportStatus

if TYPE_CHECKING:
    from compliance.reports.models import Report, ReportSchedule

LEASE = timedelta(minutes=30)
"""The time after which another worker may take a report over."""


class ReportScheduleQuerySet(models.QuerySet["ReportSchedule"]):
    """Schedules of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "ReportScheduleQuerySet":
        return self.filter(tenant_id=tenant_id)

    def find(self, schedule_id: Any) -> "ReportSchedule":
        """Return the schedule with a client's id. Raises `ScheduleNotFound`, also if it is no UUID."""
        schedule = self.filter(id=parse_id(str(schedule_id))).first()
        if schedule is None:
            raise ScheduleNotFound()
        return schedule

    def lasting(self) -> "ReportScheduleQuerySet":
        """Return the schedules that have not ended."""
        return self.filter(ended_at=None)


class ReportQuerySet(models.QuerySet["Report"]):
    """Reports of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "ReportQuerySet":
        return self.filter(tenant_id=tenant_id)

    def without_files(self, *wanted: str) -> "ReportQuerySet":
        """Leave the large columns in the database until they are asked for, but those `wanted`."""
        return self.defer(*(name for name in ("document", "pdf", "evidence") if name not in wanted))

    def claimable(self, now: datetime) -> "ReportQuerySet":
        """Return the reports that are pending, or whose worker exceeded the lease."""
        waiting = Q(status=ReportStatus.PENDING)
        abandoned = Q(status=ReportStatus.GENERATING, started_at__lt=now - LEASE)
        return self.filter(waiting | abandoned)

    def claim(self, report_id: Any, now: datetime) -> "Report | None":
        """Claim a report for this worker; return None if it is not claimable."""
        found = self.claimable(now).filter(id=report_id)
        taken = found.update(status=ReportStatus.GENERATING, started_at=now, attempts=F("attempts") + 1)
        return self.get(id=report_id) if taken else None

    def find(self, report_id: Any) -> "Report":
        """Return the report with a client's id. Raises `ReportNotFound`, also for an id that is no UUID."""
        parsed = report_id if isinstance(report_id, UUID) else parse_id(report_id)
        report = self.filter(id=parsed).first() if parsed else None
        if report is None:
            raise ReportNotFound()
        return report
