"""`GET /v1/audit-log`."""

from typing import ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from auditlog.models import AuditEntry
from auditlog.serializers import AuditLogSerializer
from auditlog.vocabulary import ActorType
from compliance.api.pagination import keyset_page, read_choice, read_cursor, read_limit, read_text
from compliance.api.permissions import Scope
from compliance.api.requests import ApiRequest
from compliance.api.responses import page
from compliance.api.schema import BEFORE, EXACT_LIMIT, KEYED, errors, paged
from compliance.api.views import ApiViewSet


class AuditLogViewSet(ApiViewSet):
    """The tenant's audit log, newest first."""

    schema_tag = "Audit log"
    required_scopes: ClassVar = {"list": Scope.AUDIT_READ}

    @extend_schema(
        operation_id="listAuditLog",
        summary="Query the audit log",
        parameters=[
            OpenApiParameter(
                "event_type",
                {"type": "string", "maxLength": 255},
                description="For example `delegation.issued`.",
            ),
            OpenApiParameter("actor_type", OpenApiTypes.STR, enum=ActorType.values),
            BEFORE,
            EXACT_LIMIT,
        ],
        responses={200: paged(AuditLogSerializer), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        params = request.query_params
        entries = (
            AuditEntry.objects.for_tenant(request.auth.tenant_id)
            .of_type(read_text(params, "event_type"))
            .by_actor_type(read_choice(params, "actor_type", ActorType.values))
        )
        found = keyset_page(
            entries, cursor=read_cursor(params), limit=read_limit(params, cap=False), field="created_at"
        )
        return page(AuditLogSerializer(found.rows, many=True).data, next_cursor=found.next_cursor)
