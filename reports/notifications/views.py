"""`GET /v1/incidents/{id}/export`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.response import Response

from auditlog.actors.requests import record_taken
from auditlog.vocabulary import Actor, AuditAction
from compliance.api.gate import Scope
from compliance.api.pagination import ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, operation
from compliance.core.clock import now
from incidents.errors import IncidentNotFound
from incidents.models import Incident
from incidents.openapi import INCIDENT, TIMELINE
from incidents.serializers import AttachmentSerializer, IncidentSerializer, TimelineEntrySerializer
from reports.notifications.services import EXPORT_FORMAT, export
from reports.vocabulary import NotificationTemplate


class ExportedDraftSerializer(serializers.Serializer[Any]):
    """A frozen version of a notification."""

    id = serializers.UUIDField()
    template = serializers.ChoiceField(choices=NotificationTemplate.choices)
    version = serializers.IntegerField()
    digest = serializers.CharField(help_text="SHA-256 of `document` in canonical JSON (RFC 8785).")
    actor_kind = serializers.CharField()
    actor_id = serializers.CharField()
    created_at = serializers.DateTimeField()
    document = serializers.DictField(help_text="Each field with its value, or with what is to state.")


class IncidentExportSerializer(serializers.Serializer[Any]):
    """The whole record of an incident: up to 1,000 rows of the timeline, 200 events and 50 drafts."""

    format = serializers.CharField()
    exported_at = serializers.DateTimeField()
    environment = serializers.ChoiceField(choices=["live", "test"])
    truncated = serializers.ListField(
        child=serializers.CharField(), help_text="Names of the lists that leave rows out, by their limits."
    )
    incident = IncidentSerializer()
    timeline = TimelineEntrySerializer(many=True)
    attachments = AttachmentSerializer(many=True)
    agent = serializers.DictField(help_text="The first of `agents`.")
    agents = serializers.ListField(child=serializers.DictField(), help_text="All agents of the incident.")
    certificates = serializers.ListField(child=serializers.DictField())
    events = serializers.ListField(
        child=serializers.DictField(), help_text="The agents' high-risk events, without their details."
    )
    verdicts = serializers.DictField(child=serializers.IntegerField())
    steps = serializers.ListField(
        child=serializers.DictField(), help_text="What was done about the agents and their certificates."
    )
    audit_log_size = serializers.IntegerField(help_text="Sealed entries of the audit log.")
    drafts = ExportedDraftSerializer(many=True)


AGENT = {"id": INCIDENT["agent_id"], "name": "trade-bot", "status": "suspended"}
EXPORTED = OpenApiExample(
    "An incident without drafts",
    {
        "data": {
            "format": EXPORT_FORMAT,
            "exported_at": "2026-11-20T10:00:00Z",
            "environment": "live",
            "truncated": [],
            "incident": INCIDENT,
            "timeline": TIMELINE,
            "attachments": [],
            "agent": AGENT,
            "agents": [AGENT],
            "certificates": [],
            "events": [],
            "verdicts": {"confirmed": 0, "dismissed": 0},
            "steps": [],
            "audit_log_size": 4711,
            "drafts": [],
        }
    },
    response_only=True,
    status_codes=["200"],
)


class IncidentExportViewSet(ApiViewSet):
    """An incident with all that belongs to it."""

    schema_tag = "Incidents"

    @operation(
        "exportIncident",
        "Export the whole record of an incident",
        Scope.INCIDENTS_READ,
        IncidentExportSerializer,
        description=(
            "With its agents, their certificates and high-risk events, the steps taken and the frozen drafts."
        ),
        examples=[EXPORTED],
        e404=IncidentNotFound.message,
    )
    def export(self, request: ApiRequest, incident_id: str) -> Response:
        incident = Incident.objects.for_tenant(request.auth.tenant_id).find(incident_id)
        record_taken(
            actor=Actor.api_key(request.auth.id),
            action=AuditAction.INCIDENT_EXPORTED,
            of=incident,
            description=f"Incident {incident.reference} exported",
        )
        return ok(export(incident, now=now()))
