"""`GET /v1/audit-log`."""

from typing import ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer

from auditlog.models import AuditEntry
from auditlog.vocabulary import ActorType
from compliance.api.pagination import keyset_page, read_choice, read_cursor, read_limit, read_text
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.responses import page
from compliance.api.rest.schema import BEFORE, EXACT_LIMIT, KEYED, errors, paged
from compliance.api.rest.views import ApiViewSet

EVENT_TYPE = OpenApiParameter(
    "event_type", {"type": "string", "maxLength": 255}, description="For example `delegation.issued`."
)
ACTOR_TYPE = OpenApiParameter("actor_type", OpenApiTypes.STR, enum=ActorType.values)


class AuditLogSerializer(ModelSerializer[AuditEntry]):
    """An AuditLog entry of the interface specification."""

    class Meta:
        model = AuditEntry
        fields = [
            *("id", "event_type", "actor_type", "actor_id"),
            *("description", "affected_id", "metadata", "created_at"),
        ]
        read_only_fields = fields


class AuditLogViewSet(ApiViewSet):
    """The tenant's audit log, newest first."""

    schema_tag = "Audit log"
    required_scopes: ClassVar = {"list": Scope.AUDIT_READ}

    @extend_schema(
        operation_id="listAuditLog",
        summary="Query the audit log",
        parameters=[EVENT_TYPE, ACTOR_TYPE, BEFORE, EXACT_LIMIT],
        responses={200: paged(AuditLogSerializer), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        params = request.query_params
        entries = (
            AuditEntry.objects.for_tenant(request.auth.tenant_id)
            .of_type(read_text(params, "event_type"))
            .by_actor_type(read_choice(params, "actor_type", ActorType.values))
        )
        cursor, limit = read_cursor(params), read_limit(params, cap=False)
        found = keyset_page(entries, cursor=cursor, limit=limit, field="created_at")
        return page(AuditLogSerializer(found.rows, many=True).data, next_cursor=found.next_cursor)
