"""`/v1/incidents`: list, show and change incidents."""

from typing import ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok, read_choice, read_id
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import BEFORE, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.rest.views import ApiViewSet, validated
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

INCIDENT_ID = OpenApiParameter("incident_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)


class IncidentViewSet(ApiViewSet):
    """The tenant's incidents, which the service opens itself."""

    schema_tag = "Incidents"
    required_scopes: ClassVar = {
        "list": Scope.INCIDENTS_READ,
        "retrieve": Scope.INCIDENTS_READ,
        "partial_update": Scope.INCIDENTS_WRITE,
    }

    @extend_schema(
        operation_id="listIncidents",
        summary="List incidents, newest first",
        parameters=[
            OpenApiParameter("agent_id", OpenApiTypes.UUID),
            OpenApiParameter("state", OpenApiTypes.STR, enum=IncidentState.values),
            OpenApiParameter("severity", OpenApiTypes.STR, enum=IncidentSeverity.values),
            BEFORE,
            LIMIT,
        ],
        examples=[LISTED],
        responses={200: paged(IncidentSerializer, tells_next=True), **errors(*KEYED)},
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

    @extend_schema(
        operation_id="getIncident",
        summary="Fetch an incident",
        parameters=[INCIDENT_ID],
        examples=[SHOWN],
        responses={
            200: enveloped(IncidentDetailSerializer),
            **errors(*KEYED, e404=IncidentNotFound.message),
        },
    )
    def retrieve(self, request: ApiRequest, incident_id: str) -> Response:
        incident = Incident.objects.for_tenant(request.auth.tenant_id).find(incident_id)
        return ok(shown_detail(incident, now()))

    @extend_schema(
        operation_id="updateIncident",
        summary="State what is known of an incident",
        description=(
            "The clocks are computed anew from what is stated. Each change, note and attachment is in the "
            "timeline and in the audit log. An incident closes once no clock is open; a closed one takes "
            "notes and attachments only. With `merged_into` it ends as a part of another, which goes on with "
            "its agents and its clocks."
        ),
        parameters=[INCIDENT_ID],
        request=UpdateIncidentSerializer,
        examples=[CLASSIFIED, SENT, MERGED],
        responses={
            200: enveloped(IncidentDetailSerializer),
            **errors(*KEYED, e404=IncidentNotFound.message, e422=DutiesOpen.message),
        },
    )
    def partial_update(self, request: ApiRequest, incident_id: str) -> Response:
        asked, given = caller_of(request), validated(UpdateIncidentSerializer, request)
        change = merging.merge if "into" in given else services.update
        return ok(shown_detail(change(incident_id=incident_id, **given, **asked), asked["now"]))
