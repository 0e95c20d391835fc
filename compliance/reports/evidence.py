"""Gathers a report's facts from the rows of every room; counts are made by PostgreSQL, lists are bounded."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Trunc

from agents.models import Agent, AgentStatus
from auditlog import guards
from auditlog.models import AuditEntry
from auditlog.vocabulary import ActorType, AuditAction
from certificates.models import Certificate, CertificateStatus
from compliance.reports.facts import (
    AgentFact,
    CertificateFact,
    DelegationFacts,
    Facts,
    Frame,
    HighRiskFact,
    OversightFact,
    TrendPoint,
)
from compliance.reports.mica import MAX_VALIDITY
from events.models import ActionType, BehaviorEvent

LISTED = 200
LISTED_AGENTS = 1_000
REASONS = 3
DAYS_UP_TO, WEEKS_UP_TO = timedelta(days=62), timedelta(days=366)
INTERVENTIONS = (
    AuditAction.AGENT_SUSPENDED,
    AuditAction.AGENT_REINSTATED,
    AuditAction.AGENT_RETIRED,
    AuditAction.CERTIFICATE_REVOKED,
)
TRANSACTIONS = (ActionType.TRANSACTION_INITIATED, ActionType.TRANSACTION_ANOMALY)
_UNDECLARED_SCOPE = Q(metadata__permitted_actions__isnull=True) | Q(metadata__permitted_actions=None)


def gather(frame: Frame) -> Facts:
    """All facts of `frame`; call it inside one transaction, so that they belong together."""
    agents, certificates = _agents(frame), _certificates(frame)
    events, entries = _events(frame), _entries(frame)
    span = trend_span(frame.end - frame.start)
    return Facts(
        agents=tuple(_agent_facts(frame, agents, events)),
        agent_count=agents.count(),
        agents_without_model_or_version=agents.filter(_blank("model") | _blank("version")).count(),
        agents_without_scope=agents.filter(_UNDECLARED_SCOPE).count(),
        agents_without_limits=agents.filter(financial_scope__isnull=True).count(),
        uncertified_active_agents=_uncertified(frame, agents).count(),
        certificates=tuple(_certificate_facts(frame, certificates)),
        certificate_count=certificates.count(),
        revocation_count=_revoked(frame, certificates).count(),
        overlong_certificates=certificates.filter(expires_at__gt=F("issued_at") + MAX_VALIDITY).count(),
        high_risk=tuple(_high_risk_facts(events)),
        events_by_band=_counts(events, "risk_band"),
        events_by_action=_counts(events, "action_type"),
        unlinked_transactions=events.filter(
            action_type__in=TRANSACTIONS, chain_id=None, session_id=None
        ).count(),
        trend_span=span,
        trend=tuple(_trend(events, span)),
        oversight=tuple(_oversight_facts(entries)),
        audit_by_type=_counts(entries, "event_type"),
        human_interventions=entries.filter(event_type__in=INTERVENTIONS, actor_type=ActorType.USER).count(),
        delegations=_delegation_facts(entries),
        oldest_event_at=_oldest_event(frame),
        oldest_entry_at=_oldest_entry(frame),
        is_log_guarded=guards.are_in_force(),
    )


def trend_span(length: timedelta) -> str:
    """The step of a trend over a period: about 10 to 60 points for most."""
    if length <= DAYS_UP_TO:
        return "day"
    return "week" if length <= WEEKS_UP_TO else "month"


def _agents(frame: Frame) -> QuerySet[Agent]:
    found = Agent.objects.for_tenant(frame.tenant_id).filter(created_at__lt=frame.covered_until)
    return found if frame.agent_ids is None else found.filter(id__in=frame.agent_ids)


def _certificates(frame: Frame) -> QuerySet[Certificate]:
    """Those in force at some time in the period."""
    found = Certificate.objects.for_tenant(frame.tenant_id).filter(
        Q(revoked_at=None) | Q(revoked_at__gte=frame.start),
        issued_at__lt=frame.covered_until,
        expires_at__gt=frame.start,
    )
    return found if frame.agent_ids is None else found.filter(agent_id__in=frame.agent_ids)


def _events(frame: Frame) -> QuerySet[BehaviorEvent]:
    """Those received in the period; when they say they occurred is the agent's word."""
    events = BehaviorEvent.objects.for_tenant(frame.tenant_id)
    found = events.since(frame.start).received_before(frame.covered_until)
    return found if frame.agent_ids is None else found.filter(agent_id__in=frame.agent_ids)


def _entries(frame: Frame) -> QuerySet[AuditEntry]:
    found = AuditEntry.objects.for_tenant(frame.tenant_id).filter(
        created_at__gte=frame.start, created_at__lt=frame.covered_until
    )
    if frame.agent_ids is None:
        return found
    ids = [str(agent_id) for agent_id in frame.agent_ids]
    return found.filter(Q(affected_id__in=ids) | Q(metadata__agent_id__in=ids))


def _revoked(frame: Frame, certificates: QuerySet[Certificate]) -> QuerySet[Certificate]:
    return certificates.filter(revoked_at__gte=frame.start, revoked_at__lt=frame.covered_until)


def _uncertified(frame: Frame, agents: QuerySet[Agent]) -> QuerySet[Agent]:
    return agents.filter(status=AgentStatus.ACTIVE).exclude(id__in=_certified_ids(frame))


def _certified_ids(frame: Frame) -> QuerySet[Any, Any]:
    standing = Certificate.objects.for_tenant(frame.tenant_id).filter(
        status=CertificateStatus.ACTIVE, expires_at__gt=frame.generated_at
    )
    return standing.values("agent_id")


def _agent_facts(
    frame: Frame, agents: QuerySet[Agent], events: QuerySet[BehaviorEvent]
) -> Iterable[AgentFact]:
    listed = list(agents.order_by("-risk_score", "id")[:LISTED_AGENTS])
    certified = {row["agent_id"] for row in _certified_ids(frame)}
    bands: dict[Any, dict[str, int]] = defaultdict(dict)
    latest: dict[Any, datetime] = {}
    rows = events.filter(agent__in=listed).order_by().values("agent_id", "risk_band")
    for row in rows.annotate(number=Count("id"), last=Max("received_at")):
        bands[row["agent_id"]][row["risk_band"]] = row["number"]
        latest[row["agent_id"]] = max(row["last"], latest.get(row["agent_id"], row["last"]))
    for agent in listed:
        actions = agent.permitted_actions
        yield AgentFact(
            id=agent.id,
            name=agent.name,
            model=agent.model,
            version=agent.version,
            model_hash=agent.model_hash,
            status=agent.status,
            registered_at=agent.created_at,
            permitted_actions=None if actions is None else tuple(actions),
            has_financial_limits=bool(agent.financial_scope),
            risk_score=agent.risk_score,
            is_certified=agent.id in certified,
            events=bands.get(agent.id, {}),
            last_event_at=latest.get(agent.id),
        )


def _certificate_facts(frame: Frame, certificates: QuerySet[Certificate]) -> Iterable[CertificateFact]:
    """The newest certificates, the revoked ones with how long the revocation took."""
    shortly_before = BehaviorEvent.objects.high_risk().filter(
        agent_id=OuterRef("agent_id"),
        received_at__lte=OuterRef("revoked_at"),
        received_at__gte=OuterRef("revoked_at") - settings.HIGH_RISK_WINDOW,
    )
    last_high = Subquery(shortly_before.order_by("-received_at").values("received_at")[:1])
    for row in certificates.annotate(last_high=last_high).order_by("-issued_at", "-id")[:LISTED]:
        is_timed = row.revoked_at is not None and row.last_high is not None
        yield CertificateFact(
            serial_number=row.serial_number,
            agent_id=row.agent_id,
            status=row.status_at(frame.generated_at),
            issued_at=row.issued_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            reason=row.revocation_reason,
            delay=row.revoked_at - row.last_high if is_timed else None,
        )


def _high_risk_facts(events: QuerySet[BehaviorEvent]) -> Iterable[HighRiskFact]:
    for event in events.filter(risk_band="high").order_by("-received_at", "-id")[:LISTED]:
        yield HighRiskFact(
            id=event.id,
            agent_id=event.agent_id,
            action_type=event.action_type,
            risk_score=event.risk_score,
            occurred_at=event.occurred_at,
            received_at=event.received_at,
            reasons=tuple(str(reason.get("name", "")) for reason in event.reasons[:REASONS]),
        )


def _oversight_facts(entries: QuerySet[AuditEntry]) -> Iterable[OversightFact]:
    for entry in entries.filter(event_type__in=INTERVENTIONS).order_by("-created_at", "-id")[:LISTED]:
        yield OversightFact(
            at=entry.created_at,
            what=entry.event_type,
            actor_type=entry.actor_type,
            actor_id=entry.actor_id,
            subject=entry.affected_id or "",
            description=entry.description or "",
        )


def _delegation_facts(entries: QuerySet[AuditEntry]) -> DelegationFacts:
    issued = entries.filter(event_type=AuditAction.DELEGATION_ISSUED)
    return DelegationFacts(
        total=issued.count(),
        rooted_in_a_human=issued.filter(metadata__chain__0__type="human").count(),
        checked_against_a_scope=issued.filter(metadata__scope_checked=True).count(),
    )


def _trend(events: QuerySet[BehaviorEvent], span: str) -> Iterable[TrendPoint]:
    bands: dict[datetime, dict[str, int]] = defaultdict(dict)
    rows = events.annotate(at=Trunc("received_at", span)).order_by("at").values("at", "risk_band")
    for row in rows.annotate(number=Count("id")):
        bands[row["at"]][row["risk_band"]] = row["number"]
    return (TrendPoint(at, counts) for at, counts in sorted(bands.items()))


def _counts(rows: QuerySet[Any], field: str) -> dict[str, int]:
    """How many rows have each value of `field`."""
    found = rows.order_by().values(field).annotate(number=Count("id"))
    return {row[field]: row["number"] for row in found}


def _blank(field: str) -> Q:
    return Q(**{field: None}) | Q(**{field: ""})


def _oldest_event(frame: Frame) -> datetime | None:
    """When the oldest event by its own word was received: an index gives it, whatever the table's size."""
    oldest = BehaviorEvent.objects.for_tenant(frame.tenant_id).order_by("occurred_at", "id").first()
    return oldest.received_at if oldest else None


def _oldest_entry(frame: Frame) -> datetime | None:
    oldest = AuditEntry.objects.for_tenant(frame.tenant_id).order_by("created_at", "id").first()
    return oldest.created_at if oldest else None
