"""Reads of reports, and the claim of one to be generated."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import F, Q

from compliance.identifiers import parse_id
from compliance.reports.errors import ReportNotFound
from compliance.reports.vocabulary import ReportStatus

if TYPE_CHECKING:
    from compliance.reports.models import Report

LEASE = timedelta(minutes=30)
"""A worker that has not finished by then is taken for dead."""


class ReportQuerySet(models.QuerySet["Report"]):
    """Reports of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "ReportQuerySet":
        return self.filter(tenant_id=tenant_id)

    def of_type(self, kind: str | None) -> "ReportQuerySet":
        return self.filter(type=kind) if kind else self

    def with_status(self, status: str | None) -> "ReportQuerySet":
        return self.filter(status=status) if status else self

    def without_files(self) -> "ReportQuerySet":
        """For those who ask how a report stands, not what it says."""
        return self.defer("document", "pdf")

    def claimable(self, now: datetime) -> "ReportQuerySet":
        """Waiting, or given up by the worker that had it."""
        waiting = Q(status=ReportStatus.PENDING)
        abandoned = Q(status=ReportStatus.GENERATING, started_at__lt=now - LEASE)
        return self.filter(waiting | abandoned)

    def claim(self, report_id: Any, now: datetime) -> "Report | None":
        """Take a claimable report for this worker; None when there is nothing to take."""
        taken = (
            self.claimable(now)
            .filter(id=report_id)
            .update(status=ReportStatus.GENERATING, started_at=now, attempts=F("attempts") + 1)
        )
        return self.get(id=report_id) if taken else None

    def find(self, report_id: Any) -> "Report":
        """The report with the id that a client wrote; raises `ReportNotFound`, for nonsense too."""
        parsed = report_id if isinstance(report_id, UUID) else parse_id(report_id)
        report = self.filter(id=parsed).first() if parsed else None
        if report is None:
            raise ReportNotFound()
        return report
