"""The record of an incident, each list up to a limit, as one JSON document."""

from datetime import datetime
from typing import Any, Final

from agents.models import Agent
from compliance.incidents.models import Incident, NotificationDraft
from compliance.incidents.serializers import TimelineEntrySerializer, shown_incident
from compliance.reports.notifications.record import first_of, gather
from events.models import BehaviorEvent

FORMAT: Final = "incident/1"
MOST_DRAFTS: Final = 50


def export(incident: Incident, *, now: datetime) -> dict[str, Any]:
    """Return the incident with its timeline, agents, certificates, high-risk events, steps and drafts.

    `truncated` names the lists that leave rows out.
    """
    record = gather(incident, now=now)
    truncated = list(record.truncated)
    newest = NotificationDraft.objects.of_incident(incident.id).order_by("-created_at", "-id")
    drafts = first_of(newest, MOST_DRAFTS, name="drafts", truncated=truncated)
    return {
        "format": FORMAT,
        "exported_at": now,
        "environment": record.environment,
        "truncated": truncated,
        "incident": shown_incident(incident, now),
        "timeline": TimelineEntrySerializer(record.timeline, many=True).data,
        "attachments": record.attachments,
        "agent": _agent(record.agent),
        "agents": [_agent(agent) for agent in (record.agent, *record.others)],
        "certificates": [_certificate(row) for row in record.certificates],
        "events": [_event(event) for event in record.events],
        "verdicts": record.verdicts,
        "steps": [vars(step) for step in record.steps],
        "audit_log_size": record.log_size,
        "drafts": [_draft(row) for row in drafts],
    }


def _agent(agent: Agent) -> dict[str, Any]:
    names = ("id", "did", "name", "model", "version", "model_hash", "status", "reinstated_at")
    return {name: getattr(agent, name) for name in names}


def _certificate(certificate: Any) -> dict[str, Any]:
    names = ("id", "serial_number", "status", "issued_at", "expires_at", "revoked_at", "revocation_reason")
    return {name: getattr(certificate, name) for name in names}


def _event(event: BehaviorEvent) -> dict[str, Any]:
    """Return an event without its details, which may hold anything."""
    names = ("id", "action_type", "risk_score", "risk_band", "occurred_at", "received_at", "session_id")
    reasons = [reason["name"] for reason in event.reasons]
    return {**{name: getattr(event, name) for name in names}, "reasons": reasons}


def _draft(draft: NotificationDraft) -> dict[str, Any]:
    names = ("id", "template", "version", "digest", "actor_kind", "actor_id", "created_at")
    return {**{name: getattr(draft, name) for name in names}, "document": draft.content}
