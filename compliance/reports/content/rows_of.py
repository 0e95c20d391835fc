"""The rows that a report is about, as querysets: of its tenant, its agents and its period."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Agent, AgentStatus
from auditlog.models import AuditEntry
from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import AuditAction
from certificates.models import Certificate, CertificateStatus, EndedHold
from compliance.reports.content.facts import Frame
from events.models import BehaviorEvent
from events.querysets import BehaviorEventQuerySet

INTERVENTIONS = (
    AuditAction.AGENT_SUSPENDED,
    AuditAction.AGENT_REINSTATED,
    AuditAction.AGENT_RETIRED,
    AuditAction.CERTIFICATE_REVOKED,
    AuditAction.EVENT_REVIEWED,
)


def agents_of(frame: Frame) -> QuerySet[Agent]:
    """Return the agents registered before the end of the period and not retired before its start."""
    retired_before = Q(status=AgentStatus.RETIRED, status_changed_at__lt=frame.start)
    registered = Agent.objects.for_tenant(frame.tenant_id).filter(created_at__lt=frame.covered_until)
    found = registered.exclude(retired_before)
    return found if frame.agent_ids is None else found.filter(id__in=frame.agent_ids)


def certificates_of(frame: Frame) -> QuerySet[Certificate]:
    """Return the certificates in force at some time in the period."""
    found = Certificate.objects.for_tenant(frame.tenant_id).filter(
        Q(revoked_at=None) | Q(revoked_at__gte=frame.start),
        issued_at__lt=frame.covered_until,
        expires_at__gt=frame.start,
    )
    return found if frame.agent_ids is None else found.filter(agent_id__in=frame.agent_ids)


def in_force_at_end(frame: Frame, certificates: QuerySet[Certificate]) -> QuerySet[Certificate]:
    """Return those in force when the period ended; neither revoked nor on hold then."""
    end = frame.covered_until
    held = EndedHold.objects.filter(certificate=OuterRef("pk"), held_at__lt=end, ended_at__gte=end)
    standing = certificates.filter(Q(revoked_at=None) | Q(revoked_at__gte=end), expires_at__gte=end)
    return standing.exclude(Exists(held))


def revoked_in(frame: Frame, certificates: QuerySet[Certificate]) -> QuerySet[Certificate]:
    """Return those revoked or put on hold in the period, unless released since."""
    return certificates.filter(revoked_at__gte=frame.start, revoked_at__lt=frame.covered_until)


def certified_ids(frame: Frame) -> QuerySet[Any, Any]:
    """Return the ids of the agents with an active certificate when the report is generated."""
    standing = {"status": CertificateStatus.ACTIVE, "expires_at__gt": frame.generated_at}
    return Certificate.objects.for_tenant(frame.tenant_id).filter(**standing).values("agent_id")


def events_of(frame: Frame) -> BehaviorEventQuerySet:
    """Return the events received in the period; `occurred_at` is only the agent's claim."""
    events = BehaviorEvent.objects.for_tenant(frame.tenant_id)
    found = events.since(frame.start).received_before(frame.covered_until)
    return found if frame.agent_ids is None else found.filter(agent_id__in=frame.agent_ids)


def entries_of(frame: Frame) -> AuditEntryQuerySet:
    """Return the audit entries made in the period: of the agents, or of all and of the tenant's mode."""
    period = {"created_at__gte": frame.start, "created_at__lt": frame.covered_until}
    found = AuditEntry.objects.for_tenant(frame.tenant_id).filter(**period)
    if frame.agent_ids is None:
        return found
    ids = [str(agent_id) for agent_id in frame.agent_ids]
    of_all = Q(event_type=AuditAction.TENANT_ENFORCEMENT_CHANGED)
    return found.filter(Q(affected_id__in=ids) | Q(metadata__agent_id__in=ids) | of_all)


def interventions_in(entries: AuditEntryQuerySet) -> AuditEntryQuerySet:
    """Return the entries of acts of people at the console."""
    return entries.filter(event_type__in=INTERVENTIONS).by_people()
