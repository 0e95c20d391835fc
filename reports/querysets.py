"""Queries of reports, and the claim of a report by a worker."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import F, OuterRef, Q, Subquery

from compliance.stores.rows import TenantRows
from reports.errors import ReportNotFound, ScheduleNotFound
from reports.vocabulary import ReportStatus

if TYPE_CHECKING:
    from reports.models import Report, ReportSchedule

LEASE = timedelta(minutes=30)
"""The time after which a report is tried again that failed or whose worker is lost."""
MAX_ATTEMPTS = 5
AT_ONCE = 3
"""Reports generated at once in an environment, at most one of a tenant."""


class ReportScheduleQuerySet(TenantRows["ReportSchedule"]):
    """Schedules of the current environment."""

    missing = ScheduleNotFound

    def lasting(self) -> "ReportScheduleQuerySet":
        """Return the schedules that have not ended."""
        return self.filter(ended_at=None)


class ReportQuerySet(TenantRows["Report"]):
    """Reports of the current environment."""

    missing = ReportNotFound

    def without_files(self, *wanted: str) -> "ReportQuerySet":
        """Leave the large columns in the database until they are asked for, but those `wanted`."""
        return self.defer(*(name for name in ("document", "pdf", "evidence") if name not in wanted))

    def unfinished(self) -> "ReportQuerySet":
        return self.filter(status__in=[ReportStatus.PENDING, ReportStatus.GENERATING])

    def claimable(self, now: datetime) -> "ReportQuerySet":
        """Return the unfinished reports that nobody has begun, or whose lease has run out."""
        never_begun = Q(status=ReportStatus.PENDING, started_at=None)
        return self.unfinished().filter(never_begun | Q(started_at__lt=now - LEASE))

    def startable(self, now: datetime) -> "ReportQuerySet":
        """Return the claimable reports with attempts left."""
        return self.claimable(now).filter(attempts__lt=MAX_ATTEMPTS)

    def claim_next(self, now: datetime) -> "Report | None":
        """Claim a report of the tenant whose last one began longest ago; None if none may begin now."""
        at_work = self.filter(status=ReportStatus.GENERATING, started_at__gte=now - LEASE)
        tenants = list(at_work.values_list("tenant_id", flat=True))
        if len(tenants) >= AT_ONCE:
            return None
        begun = self.filter(tenant=OuterRef("tenant"), started_at__isnull=False)
        last = Subquery(begun.order_by("-started_at").values("started_at")[:1])
        turns = self.startable(now).exclude(tenant_id__in=tenants).annotate(turn=last)
        ordered = turns.order_by(F("turn").asc(nulls_first=True), "created_at", "id")
        report_id = ordered.values_list("id", flat=True).first()
        if report_id is None:
            return None
        found = self.claimable(now).filter(id=report_id)
        taken = found.update(status=ReportStatus.GENERATING, started_at=now, attempts=F("attempts") + 1)
        return self.get(id=report_id) if taken else None
