"""The record of an incident, gathered into plain values."""

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
from events.models import BehaviorEvent, EventReview
from incidents.models import Incident, TimelineEntry, TouchedAgent
from incidents.vocabulary import IncidentState

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
class IncidentRecord:
    """An incident with its agents, certificates, high-risk events and steps.

    `agents`: first the one that opened it. `events` are the high-risk ones from the window before the
    detection on, the oldest first, up to 200. `steps`: what was done about the agents and their certificates.
    `attachments` are also those of incidents that were merged into this one. `revoked_at`: when the last
    certificate that the incident touched was revoked. `earlier`: incidents of any of the agents in the six
    months before. `log_size`: the entries of the audit log when this was gathered. `truncated`: the names of
    the lists that leave rows out.
    """

    incident: Incident
    environment: str
    agents: tuple[Agent, ...]
    certificates: tuple[Certificate, ...]
    events: tuple[BehaviorEvent, ...]
    verdicts: dict[str, int]
    steps: tuple[AuditEntry, ...]
    timeline: tuple[TimelineEntry, ...]
    attachments: tuple[dict[str, Any], ...]
    revoked_at: datetime | None
    earlier: tuple[Incident, ...]
    log_size: int
    gathered_at: datetime
    truncated: tuple[str, ...] = ()

    @property
    def agent(self) -> Agent:
        return self.agents[0]

    @property
    def has_several(self) -> bool:
        return len(self.agents) > 1


def gather(incident: Incident, *, now: datetime) -> IncidentRecord:
    """Read everything that a draft or an export says of an incident."""
    ids = set(incident.agents.values_list("agent_id", flat=True)) | {incident.agent_id}
    agents = Agent.objects.for_tenant(incident.tenant_id).with_tenant().filter(id__in=ids).order_by("id")
    start, end = incident.detected_at - settings.HIGH_RISK_WINDOW, incident.closed_at or now
    truncated: list[str] = []
    attached = TimelineEntry.objects.of_incidents(Incident.objects.and_merged(incident.id)).attachments()
    issued = Certificate.objects.filter(agent_id__in=ids).order_by("-issued_at", "-id")
    high_risk = BehaviorEvent.objects.filter(agent_id__in=ids).high_risk().since(start)
    certificates = first_of(issued, MOST_CERTIFICATES, name="certificates", truncated=truncated)
    events = first_of(
        high_risk.filter(received_at__lte=end).order_by("id"),
        MOST_EVENTS,
        name="events",
        truncated=truncated,
    )
    # No step came before the first of the events was received, or the detection.
    since = min(incident.detected_at, *(event.received_at for event in events[:1]), incident.opened_at)
    done = AuditEntry.objects.for_tenant(incident.tenant_id).filter(
        affected_id__in=[*map(str, ids), *(str(row.id) for row in certificates)],
        event_type__in=STEPS,
        created_at__gte=since,
        created_at__lte=end,
    )
    timeline = TimelineEntry.objects.of_incidents([incident.id])
    attachments = first_of(attached, MOST_ENTRIES, name="attachments", truncated=truncated)
    touched = incident.certificates.values_list("certificate_id", flat=True)
    head = TreeHead.objects.first()
    return IncidentRecord(
        incident=incident,
        environment=environments.current().value,
        agents=tuple(sorted(agents, key=lambda agent: agent.id != incident.agent_id)),
        certificates=certificates,
        events=events,
        verdicts=_verdicts(events),
        steps=first_of(done.order_by("created_at", "id"), MOST_STEPS, name="steps", truncated=truncated),
        timeline=first_of(timeline, MOST_ENTRIES, name="timeline", truncated=truncated),
        attachments=tuple(entry.data or {} for entry in attachments),
        revoked_at=Certificate.objects.filter(id__in=list(touched)).aggregate(latest=Max("revoked_at"))[
            "latest"
        ],
        earlier=_earlier(incident, ids),
        log_size=head.size if head else 0,
        gathered_at=now,
        truncated=tuple(truncated),
    )


def first_of(rows: QuerySet[Found], most: int, *, name: str, truncated: list[str]) -> tuple[Found, ...]:
    """Return the first rows; if there are more than `most`, add `name` to `truncated`."""
    found = tuple(rows[: most + 1])
    if len(found) > most:
        truncated.append(name)
    return found[:most]


def _verdicts(events: tuple[BehaviorEvent, ...]) -> dict[str, int]:
    """Return how many of the events are confirmed and dismissed by the review that counts."""
    reviews = EventReview.objects.filter(event_id__in=[event.id for event in events]).order_by("number", "id")
    counts = Counter({row.event_id: row.verdict for row in reviews}.values())
    return {"confirmed": counts["confirmed"], "dismissed": counts["dismissed"]}


def _earlier(incident: Incident, ids: set[UUID]) -> tuple[Incident, ...]:
    """Return the agents' incidents of the six months before this one, the oldest first.

    One that was merged is left out: the incident that goes on with it counts.
    """
    touched = TouchedAgent.objects.filter(agent_id__in=ids).values("incident_id")
    found = Incident.objects.for_tenant(incident.tenant_id).filter(
        id__in=touched, opened_at__lt=incident.opened_at, detected_at__gte=incident.detected_at - RECURRENCE
    )
    return tuple(found.exclude(state=IncidentState.MERGED).order_by("opened_at", "id")[:MOST_STEPS])
