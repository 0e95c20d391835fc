"""Requesting and generating reports, and a sweep for those left unfinished."""

import hashlib
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.errors import AgentNotFound
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.sealing import keys
from auditlog.sealing.tree import latest_checkpoint
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.json_values import Json
from compliance.core.tasks import enqueue, enqueue_on_commit
from compliance.reports import pdf
from compliance.reports.bundles import archive, manifest
from compliance.reports.bundles.lists import RowList, gather_lists
from compliance.reports.content import builder
from compliance.reports.content.evidence import gather
from compliance.reports.content.facts import Frame
from compliance.reports.errors import (
    PeriodNotOver,
    ReportFailed,
    ReportGenerating,
    ReportNotFailed,
    ReportUnsigned,
)
from compliance.reports.models import Report, ReportSchedule
from compliance.reports.vocabulary import ReportStatus, ReportType
from compliance.stores.sweeps import each

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
QUERY_TIMEOUT_SECONDS = 300
GENERATE = "compliance.reports.generate"
GENERATOR = Actor.system(GENERATE)


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

    `agent_ids` None: all agents of the tenant. Raises `PeriodNotOver`; `AgentNotFound` for a foreign agent.
    """
    if period_end > now:
        raise PeriodNotOver()
    ids = None if agent_ids is None else list(dict.fromkeys(agent_ids))
    with environments.atomic():
        if ids is not None and Agent.objects.for_tenant(tenant_id).filter(id__in=ids).count() != len(ids):
            raise AgentNotFound()
        report = Report.objects.create(
            tenant_id=tenant_id,
            type=type,
            period_start=period_start,
            period_end=period_end,
            agent_ids=ids,
            schedule=schedule,
            created_at=now,
        )
        _record(report, AuditAction.REPORT_REQUESTED, actor, now, f"Report requested: {report}")
        enqueue_on_commit(GENERATE, report_id=str(report.id))
    return report


def generate(*, report_id: Any, now: datetime) -> bool:
    """Generate a pending report from one snapshot of the database; return whether it did.

    Safe to run twice: the row is claimed first, and only the latest claim may store its result.
    """
    report = Report.objects.claim(report_id, now)
    if report is None:
        return False
    document, lists = _compose(report, now)
    files = _sign(document, lists, now)
    with environments.atomic():
        claimed = Report.objects.filter(status=ReportStatus.GENERATING, attempts=report.attempts)
        if not claimed.filter(id=report.id).update(status=ReportStatus.READY, completed_at=now, **files):
            return False
        description = f"Report generated: {report}"
        _record(report, AuditAction.REPORT_GENERATED, GENERATOR, now, description, **_digests(files))
    return True


def retry(*, report: Report, actor: Actor, now: datetime) -> None:
    """Have a failed report generated again. Raises: ReportNotFailed."""
    with environments.atomic():
        failed = Report.objects.filter(id=report.id, status=ReportStatus.FAILED)
        if not failed.update(status=ReportStatus.PENDING, attempts=0, started_at=None, completed_at=None):
            raise ReportNotFailed()
        _record(report, AuditAction.REPORT_REQUESTED, actor, now, f"Report requested again: {report}")
        enqueue_on_commit(GENERATE, report_id=str(report.id))


def sweep(*, now: datetime) -> int:
    """Enqueue reports whose task was lost, fail those out of attempts; return how many were enqueued."""
    due = Report.objects.claimable(now).order_by("created_at", "id")
    return each(due.values_list("id", "attempts"), lambda row: _pick_up(*row, now))


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


def _sign(document: Json, lists: list[RowList], now: datetime) -> dict[str, Any]:
    """Return the files of a report, signed with the newest key of the audit log."""
    signer = keys.bootstrap(actor=GENERATOR, now=now)
    public, digest, head = bytes(signer.public_key), builder.digest(document), latest_checkpoint()
    drawn = pdf.render(document, digest=digest, fingerprint=manifest.fingerprint(public))
    stated = manifest.compose(document, drawn, lists, checkpoint=head.note if head else None, key=public)
    return {
        "document": builder.canonical(document).decode(),
        "pdf": drawn,
        "digest": digest,
        "evidence": archive.pack_lists(lists),
        "manifest": stated.decode(),
        "signature": keys.sign_document(stated, key=signer),
        "signing_key": public,
    }


def _digests(files: dict[str, Any]) -> dict[str, str]:
    """Return what the audit log keeps of a report's files."""
    manifest_sha256 = hashlib.sha256(files["manifest"].encode()).hexdigest()
    return {"sha256": files["digest"], "manifest_sha256": manifest_sha256}


def _compose(report: Report, now: datetime) -> tuple[Json, list[RowList]]:
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
        return builder.build(ReportType(report.type), frame, gather(frame)), gather_lists(frame)


def _pick_up(report_id: UUID, attempts: int, now: datetime) -> bool:
    if attempts < MAX_ATTEMPTS:
        enqueue(GENERATE, report_id=str(report_id))
        return True
    _give_up(Report.objects.without_files().get(id=report_id), now)
    return False


def _give_up(report: Report, now: datetime) -> None:
    with environments.atomic():
        stuck = Report.objects.claimable(now).filter(id=report.id, attempts__gte=MAX_ATTEMPTS)
        if stuck.update(status=ReportStatus.FAILED, completed_at=now):
            log.error("report %s failed after %d attempts", report.id, report.attempts)
            _record(report, AuditAction.REPORT_FAILED, GENERATOR, now, f"Report failed: {report}")


def _record(
    report: Report, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> None:
    auditlog.record(
        tenant_id=report.tenant_id,
        action=action,
        affected_id=report.id,
        description=description,
        metadata={
            "type": report.type,
            "period_start": report.period_start.isoformat(),
            "period_end": report.period_end.isoformat(),
            "agent_ids": None if report.agent_ids is None else list(map(str, report.agent_ids)),
            **metadata,
        },
        actor=actor,
        now=now,
    )
