"""Freeze drafts of notifications, and export incidents."""

from datetime import datetime
from typing import Any
from uuid import UUID

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.incidents import services as incidents
from compliance.incidents.models import Incident, NotificationDraft
from compliance.incidents.vocabulary import NotificationTemplate
from compliance.reports.content import builder
from compliance.reports.notifications.drafting import compose
from compliance.reports.notifications.record import gather


def draft(
    *, tenant_id: UUID, incident_id: Any, template: NotificationTemplate, actor: Actor, now: datetime
) -> NotificationDraft:
    """Freeze the next version of a notification, as the record stands; raises `IncidentNotFound`.

    The record is read before the incident is locked: a revocation that joins it waits for that lock.
    """
    with environments.atomic():
        incidents_here = Incident.objects.for_tenant(tenant_id)
        record = gather(incidents_here.find(incident_id), now=now)
        incident = incidents_here.locked().find(incident_id)
        version = NotificationDraft.objects.of_incident(incident.id).next_version(template)
        document = compose(record, template, version=version)
        made = NotificationDraft.objects.create(
            incident=incident,
            template=template,
            version=version,
            document=builder.canonical(document).decode(),
            digest=builder.digest(document),
            actor_kind=actor.kind,
            actor_id=actor.id[:255],
            created_at=now,
        )
        data = {"template": template.value, "version": version, "sha256": made.digest}
        text = f"Drafted: {made}"
        incidents.note_drafted(incident=incident, text=text, data=data, actor=actor, now=now)
        auditlog.record(
            tenant_id=tenant_id,
            action=AuditAction.NOTIFICATION_DRAFTED,
            affected_id=incident.id,
            description=f"{text} of incident {incident.reference}",
            metadata={"draft_id": str(made.id), "reference": incident.reference, **data},
            actor=actor,
            now=now,
        )
    return made
