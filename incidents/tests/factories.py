"""Incidents for tests, named by state."""

from datetime import datetime
from typing import Any
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from incidents import services
from incidents.models import Incident
from incidents.vocabulary import IncidentCause, Occurrence, SeriousHarm
from tenancy.models import Tenant

ACTOR = Actor.system("tests")


def make_occurrence(**fields: Any) -> Occurrence:
    given = {
        "cause": IncidentCause.THRESHOLD,
        "agent_id": new_id(),
        "agent_name": "bot",
        "text": "3 high-risk events within 15 minutes",
        "detected_at": now(),
        "is_contained": True,
        **fields,
    }
    return Occurrence(**given)


def make_incident(tenant: Tenant, *, at: datetime | None = None, **fields: Any) -> Incident:
    """An incident of a new agent, or of `agent_id`, detected and opened at `at`."""
    moment = at or now()
    occurrence = make_occurrence(**{"detected_at": moment, **fields})
    with environments.atomic():
        made, _ = services.open_or_join(tenant_id=tenant.id, occurrence=occurrence, actor=ACTOR, now=moment)
    return made


def change(incident: Incident, *, at: datetime | None = None, **changes: Any) -> Incident:
    return services.update(
        tenant_id=incident.tenant_id,
        incident_id=UUID(str(incident.id)),
        changes=changes,
        actor=ACTOR,
        now=at or now(),
    )


def make_closed_incident(tenant: Tenant, **fields: Any) -> Incident:
    incident = make_incident(tenant, **fields)
    return change(incident, serious_harm=SeriousHarm.NOT_SERIOUS, dora_class="not_major", state="closed")
