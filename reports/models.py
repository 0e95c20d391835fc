"""Requested reports, their schedules, and drafts of notifications."""

import json
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from auditlog.vocabulary import ActorKind
from compliance.core.identifiers import new_id
from compliance.stores.rows import AppendOnlyRow
from incidents.models import Incident
from reports.periods import in_words
from reports.querysets import ReportQuerySet, ReportScheduleQuerySet
from reports.vocabulary import Cadence, NotificationTemplate, ReportStatus, ReportType
from tenancy.models import Tenant


def content_of(row: Any) -> dict[str, Any]:
    """Return the document of a report that is ready, or of a draft."""
    found: dict[str, Any] = json.loads(row.document)
    return found


class ReportSchedule(models.Model):
    """A report of each month or quarter, over all agents of a tenant; `next_start` begins the next one."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="report_schedules")
    type = models.CharField(max_length=16, choices=ReportType.choices)
    cadence = models.CharField(max_length=16, choices=Cadence.choices)
    next_start = models.DateTimeField()
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = ReportScheduleQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(type__in=ReportType.values), name="reports_scheduled_type_known"
            ),
            models.CheckConstraint(condition=Q(cadence__in=Cadence.values), name="reports_cadence_known"),
            models.UniqueConstraint(
                fields=["tenant", "type", "cadence"],
                condition=Q(ended_at=None),
                name="reports_one_lasting_schedule",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_type_display()}, {self.get_cadence_display().lower()}"


class Report(models.Model):
    """A report over [period_start, period_end). `agent_ids` None: all agents of the tenant.

    `document` is canonical JSON (RFC 8785), `digest` its SHA-256 in hex. The worker renders `pdf`: a large
    one takes seconds. `evidence` is a ZIP of the lists of rows; `manifest` states the digests of all,
    `signature` is Ed25519 by the key whose public half is `signing_key`. A report may
    have none of these four, and then no manifest.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="reports")
    type = models.CharField(max_length=16, choices=ReportType.choices)
    status = models.CharField(max_length=16, choices=ReportStatus.choices, default=ReportStatus.PENDING)
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    agent_ids = ArrayField(models.UUIDField(), null=True)
    document = models.TextField(blank=True)
    pdf = models.BinaryField(default=b"")
    digest = models.CharField(max_length=64, blank=True)
    evidence = models.BinaryField(default=b"", db_default=b"")
    manifest = models.TextField(blank=True, default="", db_default="")
    signature = models.BinaryField(default=b"", db_default=b"")
    signing_key = models.BinaryField(default=b"", db_default=b"")
    schedule = models.ForeignKey(ReportSchedule, null=True, on_delete=models.PROTECT, related_name="reports")
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)

    objects = ReportQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="reports_tenant_time"),
            models.Index(fields=["tenant", "-started_at"], name="reports_tenant_turn"),
            models.Index(
                fields=["created_at"],
                condition=Q(status__in=["pending", "generating"]),
                name="reports_unfinished",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "period_start"], name="reports_one_of_a_period"),
            models.CheckConstraint(condition=Q(type__in=ReportType.values), name="reports_type_known"),
            models.CheckConstraint(condition=Q(status__in=ReportStatus.values), name="reports_status_known"),
            models.CheckConstraint(
                condition=Q(period_end__gt=F("period_start")), name="reports_period_has_length"
            ),
            models.CheckConstraint(
                condition=(Q(status="ready") & ~Q(document="") & ~Q(digest="") & ~Q(pdf=b""))
                | (~Q(status="ready") & Q(document="", digest="", pdf=b"")),
                name="reports_document_when_ready",
            ),
            models.CheckConstraint(
                condition=Q(manifest="", signature=b"", signing_key=b"")
                | Q(status="ready") & ~Q(manifest="") & ~Q(signature=b"") & ~Q(signing_key=b""),
                name="reports_manifest_is_signed",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["ready", "failed"], completed_at__isnull=False)
                | Q(status__in=["pending", "generating"], completed_at=None),
                name="reports_completed_when_over",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_type_display()} {in_words(self.period_start, self.period_end)}"

    content = property(content_of)


class NotificationDraft(AppendOnlyRow):
    """A frozen version of a notification: canonical JSON (RFC 8785) and its SHA-256 in hex."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="drafts")
    template = models.CharField(max_length=24, choices=NotificationTemplate.choices)
    version = models.PositiveIntegerField()
    document = models.TextField()
    digest = models.CharField(max_length=64)
    actor_kind = models.CharField(max_length=16, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=255)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "incidents_notificationdraft"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["incident", "template", "version"], name="incidents_draft_numbered_once"
            ),
            models.CheckConstraint(
                condition=Q(template__in=NotificationTemplate.values), name="incidents_draft_template_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_template_display()}, version {self.version}"

    content = property(content_of)
