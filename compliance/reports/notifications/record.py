"""What the service has on record of an incident, gathered into plain values."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from django.conf import settings
from django.db.models import Max, Model, QuerySet

from agents.models import Agent
from auditlog.models import AuditEntry, TreeHead
from auditlog.vocabulary import AuditAction
from certificates.models import Certificate
from compliance.core import environments
from compliance.incidents.models import Incident, TimelineEntry, TouchedAgent
from compliance.incidents.vocabulary import IncidentState
from events.models import BehaviorEvent, EventReview

Found = TypeVar("Found", bound=Model)

MOST_EVENTS: Final = 200
MOST_CERTIFICATES: Final = 20
MOST_STEPS: Final = 100
MOST_ENTRIES: Final = 1_000
RECURRENCE: Final = timedelta(days=183)
"""Article 8(2) of Delegated Regulation (EU) 2024/1772 looks at six months."""
STEPS: Final = (
    *(AuditAction.AGENT_SUSPENDED, AuditAction.AGENT_REINSTATED, AuditAction.AGENT_RETIRED),
    *(AuditAction.CERTIFICATE_HELD, AuditAction.CERTIFICATE_RELEASED, AuditAction.CERTIFICATE_REVOKED),
    *(AuditAction.CERTIFICATE_ISSUED, AuditAction.CERTIFICATE_RENEWED),
    *(AuditAction.AGENT_ENFORCEMENT_CHANGED, AuditAction.AGENT_UPDATED),
)


@dataclass(frozen=True)
class IncidentStep:
    """Something done about an agent or a certificate of it."""

    at: datetime
    action: str
    description: str
    actor_kind: str
    actor_id: str


@dataclass(frozen=True)
class IncidentRecord:
    """An incident with its agents, certificates, high-risk events and steps.

    `agent` is the one that opened it, `others` are the rest. `events` are the high-risk ones from the window
    before the detection on, the oldest first, up to 200. `attachments` are also those of incidents that were
    merged into this one. `revoked_at`: when the last certificate that the incident touched was revoked.
    `earlier`: incidents of any of the agents in the six months before. `log_size`: the entries of the audit
    log when this was gathered. `truncated`: the names of the lists that leave rows out.
    """

    incident: Incident
    environment: str
    agent: Agent
    others: tuple[Agent, ...]
    certificates: tuple[Certificate, ...]
    events: tuple[BehaviorEvent, ...]
    verdicts: dict[str, int]
    steps: tuple[IncidentStep, ...]
    timeline: tuple[TimelineEntry, ...]
    attachments: tuple[dict[str, Any], ...]
    revoked_at: datetime | None
    earlier: tuple[Incident, ...]
    log_size: int
    gathered_at: datetime
    truncated: tuple[str, ...] = ()


def gather(incident: Incident, *, now: datetime) -> IncidentRecord:
    """Read everything that a draft or an export says of an incident."""
    agents = _agents(incident)
    ids = [agent.id for agent in agents]
    start, end = incident.detected_at - settings.HIGH_RISK_WINDOW, incident.closed_at or now
    truncated: list[str] = []
    timeline = first_of(
        TimelineEntry.objects.of_incident(incident.id), MOST_ENTRIES, name="timeline", truncated=truncated
    )
    attached = TimelineEntry.objects.of_incidents(Incident.objects.and_merged(incident.id)).attachments()
    attachments = first_of(attached, MOST_ENTRIES, name="attachments", truncated=truncated)
    certificates = first_of(
        Certificate.objects.filter(agent_id__in=ids).order_by("-issued_at", "-id"),
        MOST_CERTIFICATES,
        name="certificates",
        truncated=truncated,
    )
    events = first_of(_events(ids, start, end), MOST_EVENTS, name="events", truncated=truncated)
    since = _first_seen(incident, events)
    steps = first_of(
        _steps(incident, ids, certificates, since, end), MOST_STEPS, name="steps", truncated=truncated
    )
    return IncidentRecord(
        incident=incident,
        environment=environments.current().value,
        agent=agents[0],
        others=agents[1:],
        certificates=certificates,
        events=events,
        verdicts=_verdicts(events),
        steps=tuple(
            IncidentStep(row.created_at, row.event_type, row.description or "", row.actor_kind, row.actor_id)
            for row in steps
        ),
        timeline=timeline,
        attachments=tuple(entry.data or {} for entry in attachments),
        revoked_at=_revoked_at(incident),
        earlier=_earlier(incident, ids),
        log_size=_log_size(),
        gathered_at=now,
        truncated=tuple(truncated),
    )


def first_of(rows: QuerySet[Found], most: int, *, name: str, truncated: list[str]) -> tuple[Found, ...]:
    """Return the first rows; if there are more than `most`, add `name` to `truncated`."""
    found = tuple(rows[: most + 1])
    if len(found) > most:
        truncated.append(name)
    return found[:most]


def _agents(incident: Incident) -> tuple[Agent, ...]:
    """Return the agents of an incident, first the one that opened it."""
    ids = set(incident.agents.values_list("agent_id", flat=True)) | {incident.agent_id}
    found = Agent.objects.for_tenant(incident.tenant_id).with_mode().filter(id__in=ids).order_by("id")
    return tuple(sorted(found, key=lambda agent: agent.id != incident.agent_id))


def _events(ids: list[UUID], start: datetime, end: datetime) -> QuerySet[BehaviorEvent]:
    high = BehaviorEvent.objects.filter(agent_id__in=ids).high_risk().since(start)
    return high.filter(received_at__lte=end).order_by("id")


def _first_seen(incident: Incident, events: tuple[BehaviorEvent, ...]) -> datetime:
    """Return when the first of the events was received, or the detection: no step came before."""
    return min(incident.detected_at, *(event.received_at for event in events[:1]), incident.opened_at)


def _verdicts(events: tuple[BehaviorEvent, ...]) -> dict[str, int]:
    """Return how many of the events are confirmed and dismissed by the review that counts."""
    reviews = EventReview.objects.filter(event_id__in=[event.id for event in events]).order_by("number", "id")
    counts = Counter({row.event_id: row.verdict for row in reviews}.values())
    return {"confirmed": counts["confirmed"], "dismissed": counts["dismissed"]}


def _steps(
    incident: Incident, ids: list[UUID], certificates: tuple[Certificate, ...], start: datetime, end: datetime
) -> QuerySet[AuditEntry]:
    affected = [*map(str, ids), *(str(row.id) for row in certificates)]
    entries = AuditEntry.objects.for_tenant(incident.tenant_id).filter(
        affected_id__in=affected, event_type__in=STEPS, created_at__gte=start, created_at__lte=end
    )
    return entries.order_by("created_at", "id")


def _revoked_at(incident: Incident) -> datetime | None:
    touched = Certificate.objects.filter(
        id__in=list(incident.certificates.values_list("certificate_id", flat=True))
    )
    latest: datetime | None = touched.aggregate(latest=Max("revoked_at"))["latest"]
    return latest


def _earlier(incident: Incident, ids: list[UUID]) -> tuple[Incident, ...]:
    """Return the agents' incidents of the six months before this one, the oldest first.

    One that was merged is left out: the incident that goes on with it counts.
    """
    since = incident.detected_at - RECURRENCE
    touched = TouchedAgent.objects.filter(agent_id__in=ids).values("incident_id")
    found = Incident.objects.for_tenant(incident.tenant_id).filter(id__in=touched)
    before = found.filter(opened_at__lt=incident.opened_at, detected_at__gte=since)
    before = before.exclude(state=IncidentState.MERGED)
    return tuple(before.order_by("opened_at", "id")[:MOST_STEPS])


def _log_size() -> int:
    head = TreeHead.objects.first()
    return head.size if head else 0
