"""`/v1/incidents`: list, show and change incidents."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok, read_choice, read_id
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.clock import now
from incidents import merging, services
from incidents.errors import DutiesOpen, IncidentNotFound
from incidents.models import Incident
from incidents.openapi import CLASSIFIED, LISTED, MERGED, SENT, SHOWN
from incidents.serializers import (
    IncidentDetailSerializer,
    IncidentSerializer,
    UpdateIncidentSerializer,
    shown_detail,
    shown_incident,
)
from incidents.vocabulary import IncidentSeverity, IncidentState


class IncidentViewSet(ApiViewSet):
    """The tenant's incidents, which the service opens itself."""

    schema_tag = "Incidents"

    @listing(
        "listIncidents",
        "List incidents, newest first",
        Scope.INCIDENTS_READ,
        IncidentSerializer,
        parameters=[
            OpenApiParameter("agent_id", OpenApiTypes.UUID),
            OpenApiParameter("state", OpenApiTypes.STR, enum=IncidentState.values),
            OpenApiParameter("severity", OpenApiTypes.STR, enum=IncidentSeverity.values),
        ],
        examples=[LISTED],
    )
    def list(self, request: ApiRequest) -> Response:
        params, moment = request.query_params, now()
        incidents = Incident.objects.for_tenant(request.auth.tenant_id).where(
            agents__agent_id=read_id(params, "agent_id"),
            state=read_choice(params, "state", IncidentState.values),
            severity=read_choice(params, "severity", IncidentSeverity.values),
        )
        return newest_first(
            incidents.prefetch_related("agents"),
            request,
            lambda rows: [shown_incident(row, moment) for row in rows],
            field="opened_at",
        )

    @operation(
        "getIncident",
        "Fetch an incident",
        Scope.INCIDENTS_READ,
        IncidentDetailSerializer,
        examples=[SHOWN],
        e404=IncidentNotFound.message,
    )
    def retrieve(self, request: ApiRequest, incident_id: str) -> Response:
        incident = Incident.objects.for_tenant(request.auth.tenant_id).find(incident_id)
        return ok(shown_detail(incident, now()))

    @operation(
        "updateIncident",
        "State what is known of an incident",
        Scope.INCIDENTS_WRITE,
        IncidentDetailSerializer,
        description=(
            "The clocks are computed anew from what is stated. Each change, note and attachment is in the "
            "timeline and in the audit log. An incident closes once no clock is open; a closed one takes "
            "notes and attachments only. With `merged_into` it ends as a part of another, which goes on with "
            "its agents and its clocks."
        ),
        request=UpdateIncidentSerializer,
        examples=[CLASSIFIED, SENT, MERGED],
        e404=IncidentNotFound.message,
        e422=DutiesOpen.message,
    )
    def partial_update(self, request: ApiRequest, incident_id: str) -> Response:
        asked, given = caller_of(request), validated(UpdateIncidentSerializer, request)
        change = merging.merge if "into" in given else services.update
        return ok(shown_detail(change(incident_id=incident_id, **given, **asked), asked["now"]))
