"""Freeze drafts of notifications, which fill the official forms of `forms.toml`, and export incidents."""

import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import rfc8785
from django.db.models import Max

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.json_values import Json
from incidents import services as incidents
from incidents.models import Incident
from incidents.serializers import TimelineEntrySerializer, shown_incident
from incidents.vocabulary import EntryKind
from reports.content import builder
from reports.content.facts import fields_of
from reports.models import NotificationDraft
from reports.notifications.record import IncidentRecord, first_of, gather
from reports.notifications.values import moment, values_of
from reports.vocabulary import NotificationTemplate

FORMAT: Final = "incident-notification/1"
EXPORT_FORMAT: Final = "incident/1"
MOST_DRAFTS: Final = 50
NOTICE: Final = (
    "A draft, filled from the record of the service. It was not sent to anybody. Check every value; fields "
    "marked 'to state' need what only people know. Compare the form with the Official Journal and with what "
    "the authority asks for before it is sent."
)
FORMS: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("forms.toml").read_text())
_STAGES: Final = {
    NotificationTemplate.DORA_INITIAL: 1,
    NotificationTemplate.DORA_INTERMEDIATE: 2,
    NotificationTemplate.DORA_FINAL: 3,
}
_AGENT: Final = ("id", "did", "name", "model", "version", "model_hash", "status", "reinstated_at")
_CERTIFICATE: Final = (
    *("id", "serial_number", "status", "issued_at", "expires_at"),
    *("revoked_at", "revocation_reason"),
)
_EVENT: Final = (
    *("id", "action_type", "risk_score", "risk_band"),
    *("occurred_at", "received_at", "session_id"),
)
_DRAFT: Final = ("id", "template", "version", "digest", "actor_kind", "actor_id", "created_at")


def sections_of(template: NotificationTemplate) -> list[Json]:
    """Return the sections of a form; each later report of DORA repeats and updates the earlier ones."""
    stage = _STAGES.get(template)
    found: list[Json] = FORMS["ai_act" if stage is None else "dora"]
    return [part for part in found if stage is None or part["stage"] <= stage]


def compose(record: IncidentRecord, template: NotificationTemplate, *, version: int) -> Json:
    """Return the document; the same record gives the same one."""
    values = values_of(record, template)
    sections: list[Json] = [
        {"title": part["title"], "fields": [_field(field, values) for field in part["fields"]]}
        for part in sections_of(template)
    ]
    fields = [field for section in sections for field in section["fields"]]
    from_record = [field for field in fields if field["from"] == "record"]
    return {
        "format": FORMAT,
        "template": template.value,
        "title": str(template.label),
        "form": FORMS["sources"]["dora" if template in _STAGES else "ai_act"],
        "notice": NOTICE,
        "version": version,
        "environment": record.environment,
        "incident_id": str(record.incident.id),
        "reference": record.incident.reference,
        "drafted_at": moment(record.gathered_at),
        "sections": sections,
        "filled": {
            "from_record": sum(field["value"] is not None for field in from_record),
            "record_fields": len(from_record),
            "to_state": sum(field["value"] is None for field in fields),
            "fields": len(fields),
        },
    }


def _field(field: Json, values: Mapping[str, str | None]) -> Json:
    value = None if field["from"] == "people" else values.get(field["key"])
    to_state = field.get("hint", "Not on record.") if value is None else None
    return {
        "key": field["key"],
        "label": field["label"],
        "from": field["from"],
        "value": value,
        "to_state": to_state,
    }


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
        drafts = NotificationDraft.objects.filter(incident=incident)
        latest = drafts.filter(template=template).aggregate(latest=Max("version"))["latest"]
        version = (latest or 0) + 1
        document = compose(record, template, version=version)
        made = NotificationDraft.objects.create(
            incident=incident,
            template=template,
            version=version,
            document=rfc8785.dumps(document).decode(),
            digest=builder.digest(document),
            actor_kind=actor.kind,
            actor_id=actor.id[:255],
            created_at=now,
        )
        data = {"template": template.value, "version": version, "sha256": made.digest}
        text = f"Drafted: {made}"
        incidents.enter(incident, EntryKind.DRAFTED, text, actor, now, data=data)
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


def export(incident: Incident, *, now: datetime) -> Json:
    """Return the incident with its timeline, agents, certificates, high-risk events, steps and drafts.

    `truncated` names the lists that leave rows out. Events come without details, which may hold anything.
    """
    record = gather(incident, now=now)
    truncated = list(record.truncated)
    newest = NotificationDraft.objects.filter(incident=incident).order_by("-created_at", "-id")
    drafts = first_of(newest, MOST_DRAFTS, name="drafts", truncated=truncated)
    agents = [fields_of(agent, *_AGENT) for agent in record.agents]
    return {
        "format": EXPORT_FORMAT,
        "exported_at": now,
        "environment": record.environment,
        "truncated": truncated,
        "incident": shown_incident(incident, now),
        "timeline": TimelineEntrySerializer(record.timeline, many=True).data,
        "attachments": record.attachments,
        "agent": agents[0],
        "agents": agents,
        "certificates": [fields_of(row, *_CERTIFICATE) for row in record.certificates],
        "events": [
            fields_of(event, *_EVENT) | {"reasons": [reason["name"] for reason in event.reasons]}
            for event in record.events
        ],
        "verdicts": record.verdicts,
        "steps": [
            {
                "at": step.created_at,
                "action": step.event_type,
                "description": step.description or "",
                "actor_kind": step.actor_kind,
                "actor_id": step.actor_id,
            }
            for step in record.steps
        ],
        "audit_log_size": record.log_size,
        "drafts": [fields_of(row, *_DRAFT) | {"document": row.content} for row in drafts],
    }
