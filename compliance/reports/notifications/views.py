"""`GET /v1/incidents/{id}/export`."""

from typing import ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from auditlog.actors.requests import record_taken
from auditlog.vocabulary import Actor, AuditAction
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.responses import ok
from compliance.api.rest.schema import KEYED, enveloped, errors
from compliance.api.rest.views import ApiViewSet
from compliance.core.clock import now
from compliance.incidents.errors import IncidentNotFound
from compliance.incidents.models import Incident
from compliance.incidents.openapi import INCIDENT, TIMELINE
from compliance.incidents.views import INCIDENT_ID
from compliance.reports.notifications.export import FORMAT, export
from compliance.reports.notifications.serializers import IncidentExportSerializer

AGENT = {"id": INCIDENT["agent_id"], "name": "trade-bot", "status": "suspended"}
EXPORTED = OpenApiExample(
    "An incident without drafts",
    {
        "data": {
            "format": FORMAT,
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
    required_scopes: ClassVar = {"export": Scope.INCIDENTS_READ}

    @extend_schema(
        operation_id="exportIncident",
        summary="Export the whole record of an incident",
        description=(
            "With its agents, their certificates and high-risk events, the steps taken and the frozen drafts."
        ),
        parameters=[INCIDENT_ID],
        examples=[EXPORTED],
        responses={
            200: enveloped(IncidentExportSerializer),
            **errors(*KEYED, e404=IncidentNotFound.message),
        },
    )
    def export(self, request: ApiRequest, incident_id: str) -> Response:
        incident = Incident.objects.for_tenant(request.auth.tenant_id).find(incident_id)
        record_taken(
            actor=Actor.api_key(request.auth.id),
            action=AuditAction.INCIDENT_EXPORTED,
            tenant_id=incident.tenant_id,
            affected_id=incident.id,
            description=f"Incident {incident.reference} exported",
        )
        return ok(export(incident, now=now()))
