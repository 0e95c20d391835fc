"""`GET /v1/audit-log` and its export."""

from typing import Any, ClassVar

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.response import Response

from auditlog.exporting.export import open_export
from auditlog.exporting.feed import feed_page
from auditlog.exporting.formats import FORMATS
from auditlog.filters import ACTION, EntryFilters
from auditlog.models import AuditEntry
from auditlog.proving.proofs import export_file
from auditlog.vocabulary import ActorKind, ActorType
from compliance.api import pagination
from compliance.api.gate import Scope
from compliance.api.rest.fields import RowSerializer
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import BEFORE, EXACT_LIMIT, MOMENT, ORDER, paged
from compliance.api.rest.views import ApiViewSet, operation
from compliance.core.clock import now

_TEXT: dict[str, Any] = {"type": "string", "maxLength": 255}
FILTERS = [
    OpenApiParameter("event_type", _TEXT, description="For example `delegation.issued`."),
    OpenApiParameter(
        "action", {"type": "string", "pattern": ACTION, "maxLength": 64},
        description="The beginning of event types: `agent.` gives all about agents.",
    ),
    OpenApiParameter("actor_type", OpenApiTypes.STR, enum=ActorType.values),
    OpenApiParameter(
        "actor_kind", OpenApiTypes.STR, enum=ActorKind.values, description="Tells people from API keys."
    ),
    OpenApiParameter("actor_id", _TEXT, description="For example `person:<uuid>` or `api_key:<uuid>`."),
    OpenApiParameter("affected_id", _TEXT),
    OpenApiParameter(
        "after", MOMENT, description="Entries later than this ISO 8601 date-time; a cursor with `order=asc`."
    ),
]  # fmt: skip


class AuditLogSerializer(RowSerializer[AuditEntry]):
    """An AuditLog entry of the interface specification."""

    class Meta:
        model = AuditEntry
        fields = [
            *("id", "event_type", "actor_type", "actor_kind", "actor_id"),
            *("description", "affected_id", "metadata", "created_at"),
        ]
        extra_kwargs: ClassVar = {
            "actor_id": {
                "help_text": (
                    "`person:<uuid>` (before 0.2 `console:<username>`), `api_key:<uuid>`, an agent's id, or "
                    "the part of the service. The id of a person is never changed or reused."
                )
            }
        }


class AuditLogViewSet(ApiViewSet):
    """The tenant's audit log, newest first, or in the order in which it was sealed."""

    schema_tag = "Audit log"

    @operation(
        "listAuditLog",
        "Query the audit log",
        Scope.AUDIT_READ,
        paged(AuditLogSerializer, always_tells=False),
        parameters=[*FILTERS, BEFORE, ORDER, EXACT_LIMIT],
    )
    def list(self, request: ApiRequest) -> Response:
        params, tenant_id = request.query_params, request.auth.tenant_id
        filters, limit = EntryFilters.read(params), pagination.read_limit(params, cap=False)
        if pagination.is_oldest_first(params):
            feed = feed_page(
                tenant_id=tenant_id, filters=filters, after=pagination.read_position(params), limit=limit
            )
            return pagination.feed_response(feed, AuditLogSerializer(feed.rows, many=True).data, "created_at")
        entries = filters.applied(AuditEntry.objects.for_tenant(tenant_id))
        found = pagination.keyset_page(entries, cursor=filters.before, limit=limit, field="created_at")
        return pagination.page(AuditLogSerializer(found.rows, many=True).data, next_cursor=found.next_cursor)

    @operation(
        "exportAuditLog",
        "Export the audit log with proofs",
        Scope.AUDIT_READ,
        {
            (200, "application/jsonl"): OpenApiResponse(OpenApiTypes.BINARY, "The export"),
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.BINARY, "The export"),
            (200, "application/x-ndjson"): OpenApiResponse(OpenApiTypes.BINARY, "The export"),
        },
        description=(
            "The sealed entries in the order of the tree, each with what opens its leaf and its inclusion "
            "proof under the checkpoint of the header; docs/audit-log.md. Entries not sealed yet are left "
            "out. A download without its last line, the footer, was interrupted. `ocsf` holds events of OCSF "
            "1.8.0 alone, without header, proofs and footer."
        ),
        parameters=[
            OpenApiParameter("format", OpenApiTypes.STR, enum=[*FORMATS], description="`jsonl` by default."),
            *FILTERS,
            OpenApiParameter(
                "before", BEFORE.type, description="Entries earlier than this ISO 8601 date-time."
            ),
        ],
        e404="The audit log has no checkpoint yet",
    )
    def export(self, request: ApiRequest) -> StreamingHttpResponse:
        name = pagination.read_choice(request.query_params, "format", [*FORMATS]) or "jsonl"
        filters = EntryFilters.read(request.query_params)
        export = open_export(tenant_id=request.auth.tenant_id, filters=filters, form=FORMATS[name], now=now())
        return export_file(export, name)
