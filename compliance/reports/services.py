"""Asking for a report, generating it, and picking up those that nobody finished."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.errors import AgentNotFound
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance import environments
from compliance.reports import builder, pdf
from compliance.reports.errors import ReportFailed, ReportGenerating
from compliance.reports.evidence import gather
from compliance.reports.facts import Frame
from compliance.reports.models import Report
from compliance.reports.vocabulary import ReportStatus, ReportType
from compliance.tasks import enqueue, enqueue_on_commit

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
QUERY_TIMEOUT_SECONDS = 300
GENERATE = "compliance.reports.generate"
GENERATOR = Actor.system(GENERATE)


@dataclass(frozen=True)
class ReportRequest:
    """What is asked for: a type, the period [start, end), and some agents or all (None)."""

    type: ReportType
    period_start: datetime
    period_end: datetime
    agent_ids: Sequence[UUID] | None = None


def request_report(*, tenant_id: UUID, wanted: ReportRequest, actor: Actor, now: datetime) -> Report:
    """A pending report, audited, that a task will generate; `AgentNotFound` for an agent that isn't the
    tenant's.
    """
    with environments.atomic():
        _check_agents(tenant_id, wanted.agent_ids)
        report = Report.objects.create(
            tenant_id=tenant_id,
            type=wanted.type,
            period_start=wanted.period_start,
            period_end=wanted.period_end,
            agent_ids=None if wanted.agent_ids is None else list(wanted.agent_ids),
            created_at=now,
        )
        _record(report, AuditAction.REPORT_REQUESTED, actor, now, f"Report requested: {report}")
        enqueue_on_commit(GENERATE, report_id=str(report.id))
    return report


def generate(*, report_id: Any, now: datetime) -> bool:
    """Generate a report that waits, in one snapshot of the database; False when there was nothing to do.

    Safe to run twice: the row is claimed first, and only the claim that is still good may write the result.
    """
    report = Report.objects.claim(report_id, now)
    if report is None:
        return False
    document = _compose(report, now)
    digest = builder.digest(document)
    drawn = pdf.render(document, digest=digest)
    with environments.atomic():
        is_mine = Report.objects.filter(
            id=report.id, status=ReportStatus.GENERATING, attempts=report.attempts
        )
        if not is_mine.update(
            status=ReportStatus.READY,
            document=builder.canonical(document).decode(),
            pdf=drawn,
            digest=digest,
            completed_at=now,
        ):
            return False
        description = f"Report generated: {report}"
        _record(report, AuditAction.REPORT_GENERATED, GENERATOR, now, description, sha256=digest)
    return True


def sweep(*, now: datetime) -> int:
    """Ring again for reports whose message or worker was lost, and give up those that keep failing; how many
    were rung for.
    """
    due = list(Report.objects.claimable(now).order_by("created_at", "id"))
    for report in due:
        if report.attempts >= MAX_ATTEMPTS:
            _give_up(report, now)
        else:
            enqueue(GENERATE, report_id=str(report.id))
    return sum(report.attempts < MAX_ATTEMPTS for report in due)


def finished(report: Report) -> Report:
    """`report`, ready or failed; raises `ReportGenerating` (425) until then."""
    if report.status in (ReportStatus.PENDING, ReportStatus.GENERATING):
        raise ReportGenerating()
    return report


def ready(report: Report) -> Report:
    """`report` with its document; raises `ReportGenerating`, or `ReportFailed`."""
    if finished(report).status == ReportStatus.FAILED:
        raise ReportFailed()
    return report


def _compose(report: Report, now: datetime) -> builder.Json:
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
        return builder.build(ReportType(report.type), frame, gather(frame))


def _give_up(report: Report, now: datetime) -> None:
    with environments.atomic():
        stuck = Report.objects.claimable(now).filter(id=report.id, attempts__gte=MAX_ATTEMPTS)
        if stuck.update(status=ReportStatus.FAILED, completed_at=now):
            log.error("report %s failed after %d attempts", report.id, report.attempts)
            _record(report, AuditAction.REPORT_FAILED, GENERATOR, now, f"Report failed: {report}")


def _check_agents(tenant_id: UUID, agent_ids: Sequence[UUID] | None) -> None:
    if agent_ids is None:
        return
    known = Agent.objects.for_tenant(tenant_id).filter(id__in=agent_ids).count()
    if known != len(set(agent_ids)):
        raise AgentNotFound()


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
            "agent_ids": None
            if report.agent_ids is None
            else [str(agent_id) for agent_id in report.agent_ids],
            **metadata,
        },
        actor=actor,
        now=now,
    )
