"""The rows that a report is about, as querysets: of its tenant, its agents and its period."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Agent, AgentStatus
from agents.querysets import AgentQuerySet
from auditlog.models import AuditEntry
from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import ActorKind, AuditAction
from certificates.models import Certificate, CertificateStatus, EndedHold
from certificates.querysets import HOLD
from events.models import BehaviorEvent
from events.querysets import BehaviorEventQuerySet
from incidents.models import Incident, TouchedAgent
from incidents.querysets import IncidentQuerySet
from reports.content.facts import Frame

INTERVENTIONS = (
    AuditAction.AGENT_SUSPENDED,
    AuditAction.AGENT_REINSTATED,
    AuditAction.AGENT_RETIRED,
    AuditAction.CERTIFICATE_REVOKED,
    AuditAction.EVENT_REVIEWED,
)


def agents_of(frame: Frame) -> AgentQuerySet:
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
    own = EndedHold.objects.filter(certificate=OuterRef("pk"))
    always_held = own.filter(held_at__lte=frame.start, ended_at__gte=frame.covered_until)
    found = found.exclude(Exists(always_held))
    return found if frame.agent_ids is None else found.filter(agent_id__in=frame.agent_ids)


def in_force_at_end(frame: Frame, certificates: QuerySet[Certificate]) -> QuerySet[Certificate]:
    """Return those in force when the period ended; neither revoked nor on hold then."""
    end = frame.covered_until
    standing = certificates.filter(Q(revoked_at=None) | Q(revoked_at__gte=end), expires_at__gte=end)
    return standing.exclude(Exists(_held_at(end)))


def on_hold_at_end(frame: Frame, certificates: QuerySet[Certificate]) -> QuerySet[Certificate]:
    """Return those on hold when the period ended, which could still be released."""
    end = frame.covered_until
    is_held = Q(revocation_code=HOLD, revoked_at__lt=end) | Exists(_held_at(end))
    return certificates.filter(is_held, expires_at__gte=end)


def revoked_at_end(frame: Frame, certificates: QuerySet[Certificate]) -> QuerySet[Certificate]:
    """Return those revoked for good when the period ended; the date of a revocation is that of its hold."""
    end = frame.covered_until
    return (
        certificates.filter(revoked_at__lt=end).exclude(revocation_code=HOLD).exclude(Exists(_held_at(end)))
    )


def _held_at(moment: datetime) -> QuerySet[EndedHold]:
    """Return the hold, now ended, in which the certificate of the query around was at a moment."""
    return EndedHold.objects.filter(certificate=OuterRef("pk"), held_at__lt=moment, ended_at__gte=moment)


def incidents_of(frame: Frame) -> IncidentQuerySet:
    """Return the incidents opened in the period: those that touch the agents, or all."""
    period = {"opened_at__gte": frame.start, "opened_at__lt": frame.covered_until}
    found = Incident.objects.for_tenant(frame.tenant_id).filter(**period)
    touching = TouchedAgent.objects.filter(incident=OuterRef("pk"), agent_id__in=frame.agent_ids or ())
    return found if frame.agent_ids is None else found.filter(Exists(touching))


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
    return entries.filter(event_type__in=INTERVENTIONS, actor_kind=ActorKind.PERSON)
