"""Requesting and generating reports, and a sweep for those left unfinished."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import rfc8785
from django.conf import settings

from agents.errors import AgentNotFound
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.sealing import keys
from auditlog.sealing.tree import latest_checkpoint
from auditlog.submitting import gathering
from auditlog.vocabulary import Actor, AuditAction
from compliance.api.rate_limits import refusal
from compliance.core import environments
from compliance.core.json_values import Json
from compliance.core.tasks import enqueue, enqueue_on_commit
from compliance.stores import sql
from compliance.stores.sweeps import each
from reports.bundles import archive, manifest
from reports.bundles.lists import RowList, gather_lists
from reports.content import builder
from reports.content.evidence import gather
from reports.content.facts import Frame
from reports.errors import (
    PeriodNotOver,
    ReportFailed,
    ReportGenerating,
    ReportNotFailed,
    ReportUnsigned,
    TooManyReports,
)
from reports.models import Report, ReportSchedule
from reports.pdf.sections import render
from reports.querysets import MAX_ATTEMPTS
from reports.vocabulary import ReportStatus, ReportType
from tenancy.models import Tenant

log = logging.getLogger(__name__)

MOST_UNFINISHED: Final = 10
"""Reports that a tenant may have pending, those of its schedules apart."""
RETRY_SECONDS: Final = 10
MOST_FORGOTTEN: Final = 1_000
CLAIMING: Final = 0x7265706F  # "repo": the advisory lock under which the next report is claimed
QUERY_TIMEOUT_SECONDS = 300
GENERATE = "reports.generate"
GENERATOR = Actor.system(GENERATE)
FORGETTER = Actor.system("reports.forget")


def request_report(
    *,
    tenant_id: UUID,
    type: str,  # noqa: A002
    period_start: datetime,
    period_end: datetime,
    agent_ids: Sequence[UUID] | None = None,
    schedule: ReportSchedule | None = None,
    actor: Actor,
    now: datetime,
) -> Report:
    """Create a pending report over [period_start, period_end), which a task generates.

    `agent_ids` None: all agents of the tenant. An unfinished report of the same request is returned instead.
    Raises `PeriodNotOver`; `AgentNotFound` for a foreign agent; `TooManyReports`.
    """
    if period_end > now:
        raise PeriodNotOver()
    ids = None if agent_ids is None else list(dict.fromkeys(agent_ids))
    with environments.atomic():
        if ids is not None and Agent.objects.for_tenant(tenant_id).filter(id__in=ids).count() != len(ids):
            raise AgentNotFound()
        wanted = {"type": type, "period_start": period_start, "period_end": period_end, "agent_ids": ids}
        if schedule is None:
            Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
            unfinished = Report.objects.for_tenant(tenant_id).unfinished().filter(schedule=None)
            if (same := unfinished.filter(**wanted).without_files().first()) is not None:
                return same
            if unfinished.count() >= MOST_UNFINISHED:
                raise TooManyReports(headers=refusal(MOST_UNFINISHED, RETRY_SECONDS, now=now).headers())
        report = Report.objects.create(tenant_id=tenant_id, **wanted, schedule=schedule, created_at=now)
        _record(report, AuditAction.REPORT_REQUESTED, actor, now, f"Report requested: {report}")
        enqueue_on_commit(GENERATE)
    return report


def generate_next(*, now: datetime) -> bool:
    """Generate the report whose turn it is, and have the next one generated; return whether it did.

    Safe to run twice: the row is claimed first, and only the latest claim may store its result.
    """
    with environments.atomic():
        sql.query("SELECT pg_advisory_xact_lock(%s)", [CLAIMING])
        report = Report.objects.claim_next(now)
    if report is None:
        return False
    try:
        return _generate(report, now)
    except Exception:
        # The tenant's next report need not wait for the lease of this one.
        failed = Report.objects.filter(id=report.id, attempts=report.attempts, status=ReportStatus.GENERATING)
        failed.update(status=ReportStatus.PENDING)
        raise
    finally:
        _go_on(now)


def _generate(report: Report, now: datetime) -> bool:
    """Generate a claimed report from one snapshot of the database; return whether its claim still held."""
    frame = Frame(
        report_id=report.id,
        tenant_id=report.tenant_id,
        tenant_name=report.tenant.name,
        environment=environments.current().value,
        start=report.period_start,
        end=report.period_end,
        generated_at=now,
        agent_ids=None if report.agent_ids is None else tuple(report.agent_ids),
    )
    with environments.snapshot(timeout_seconds=QUERY_TIMEOUT_SECONDS):
        document = builder.build(ReportType(report.type), frame, gather(frame))
        lists = gather_lists(frame)
    files = sign(document, lists, now)
    with environments.atomic():
        claimed = Report.objects.filter(status=ReportStatus.GENERATING, attempts=report.attempts)
        if not claimed.filter(id=report.id).update(status=ReportStatus.READY, completed_at=now, **files):
            return False
        description = f"Report generated: {report}"
        digests = {
            "sha256": files["digest"],
            "manifest_sha256": hashlib.sha256(files["manifest"].encode()).hexdigest(),
        }
        _record(report, AuditAction.REPORT_GENERATED, GENERATOR, now, description, **digests)
    return True


def retry(*, report: Report, actor: Actor, now: datetime) -> None:
    """Have a failed report generated again. Raises: ReportNotFailed."""
    with environments.atomic():
        failed = Report.objects.filter(id=report.id, status=ReportStatus.FAILED)
        if not failed.update(status=ReportStatus.PENDING, attempts=0, started_at=None, completed_at=None):
            raise ReportNotFailed()
        _record(report, AuditAction.REPORT_REQUESTED, actor, now, f"Report requested again: {report}")
        enqueue_on_commit(GENERATE)


def sweep(*, now: datetime) -> bool:
    """Fail the reports out of attempts; have one generated if any waits, and return whether one does."""
    stuck = Report.objects.claimable(now).filter(attempts__gte=MAX_ATTEMPTS).without_files()
    each(stuck.order_by("created_at", "id"), lambda report: _give_up(report, now))
    return _go_on(now)


def forget(*, now: datetime) -> int:
    """Delete finished reports past their retention, some at a time; return how many."""
    old = Report.objects.filter(completed_at__lt=now - settings.REPORT_RETENTION).without_files()
    return each(old.order_by("completed_at", "id")[:MOST_FORGOTTEN], lambda report: _forget(report, now))


def _forget(report: Report, now: datetime) -> int:
    with environments.atomic():
        deleted = Report.objects.filter(id=report.id, completed_at=report.completed_at).delete()[0]
        if deleted:
            action, description = AuditAction.REPORT_DELETED, f"Report deleted after its retention: {report}"
            _record(report, action, FORGETTER, now, description, sha256=report.digest or None)
    return deleted


def _go_on(now: datetime) -> bool:
    """Have the next report generated, if there is one; return whether there is."""
    return Report.objects.startable(now).exists() and enqueue(GENERATE)


def finished(report: Report) -> Report:
    """Return `report` if it is ready or failed. Raises `ReportGenerating` (425) otherwise."""
    if report.status in (ReportStatus.PENDING, ReportStatus.GENERATING):
        raise ReportGenerating()
    return report


def signed(report: Report) -> Report:
    """Return `report` if it is ready and signed. Raises `ReportUnsigned` and the errors of `ready`."""
    if not ready(report).manifest:
        raise ReportUnsigned()
    return report


def ready(report: Report) -> Report:
    """Return `report` if it is ready. Raises `ReportGenerating` or `ReportFailed`."""
    if finished(report).status == ReportStatus.FAILED:
        raise ReportFailed()
    return report


def sign(
    document: Json, lists: list[RowList], now: datetime, *, draw: Callable[..., bytes] = render
) -> dict[str, Any]:
    """Return the files of a report, or of what `draw` draws, signed with the newest key of the audit log."""
    signer = keys.bootstrap(actor=GENERATOR, now=now)
    public, digest = bytes(signer.public_key), builder.digest(document)
    head = None if gathering.contradiction() else latest_checkpoint()  # none of a fork
    drawn = draw(document, digest=digest, fingerprint=manifest.fingerprint(public))
    stated = manifest.compose(document, drawn, lists, checkpoint=head.note if head else None, key=public)
    return {
        "document": rfc8785.dumps(document).decode(),
        "pdf": drawn,
        "digest": digest,
        "evidence": archive.pack({each.name: each.content for each in lists}),
        "manifest": stated.decode(),
        "signature": keys.sign_document(stated, key=signer),
        "signing_key": public,
    }


def _give_up(report: Report, now: datetime) -> int:
    with environments.atomic():
        stuck = Report.objects.claimable(now).filter(id=report.id, attempts__gte=MAX_ATTEMPTS)
        failed = stuck.update(status=ReportStatus.FAILED, completed_at=now)
        if failed:
            log.error("report %s failed after %d attempts", report.id, report.attempts)
            _record(report, AuditAction.REPORT_FAILED, GENERATOR, now, f"Report failed: {report}")
    return failed


def _record(
    report: Report, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> None:
    metadata = {
        "type": report.type,
        "period_start": report.period_start.isoformat(),
        "period_end": report.period_end.isoformat(),
        "agent_ids": None if report.agent_ids is None else list(map(str, report.agent_ids)),
        **metadata,
    }
    auditlog.record(
        of=report, action=action, description=description, metadata=metadata, actor=actor, now=now
    )
