"""`/v1/blueprints`: create, read, list and change, and the renewals of their agents."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from agents.blueprints import serializers, services as blueprints
from agents.blueprints.inheritance import differing
from agents.blueprints.serializers import (
    BlueprintRenewalSerializer,
    BlueprintSerializer,
    ChangedBlueprintSerializer,
)
from agents.errors import AgentNotFound, BlueprintNotFound, RenewalNotFound
from agents.models import Blueprint, BlueprintRenewal
from auditlog.actors.requests import caller_of
from certificates.renewing import services
from compliance.api.gate import Scope, require_scope
from compliance.api.pagination import newest_first, ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, listing, operation, validated

NOT_FOUND = BlueprintNotFound.message
SCOPES = "`alarm_budget` takes the scope `agents:enforcement`, `ask_policy` the scope `gateway:write`."
EXAMPLE = OpenApiExample(
    "Trading agents",
    request_only=True,
    value={
        "name": "Trading agents",
        "model": "gpt-5",
        "version": "2.1.0",
        "model_hash": "sha256:9f86d081884c7d65",
        "permitted_actions": ["read_market_data", "place_order"],
        "owner": {"name": "Kim Berg", "email": "kim.berg@example.com"},
        "validity_days": 90,
    },
)


class BlueprintViewSet(ApiViewSet):
    """The tenant's blueprints."""

    schema_tag = "Blueprints"

    @operation(
        "createBlueprint",
        "Create a blueprint",
        Scope.AGENTS_WRITE,
        BlueprintSerializer,
        status=201,
        description=(
            "Agents registered with its id inherit what they do not state. They state the same model, a "
            f"subset of its actions and no wider limits. {SCOPES}"
        ),
        request=serializers.CreateBlueprintSerializer,
        examples=[EXAMPLE],
        repeats=True,
    )
    def create(self, request: ApiRequest) -> Response:
        fields = _stated(serializers.CreateBlueprintSerializer, request)
        return ok(
            BlueprintSerializer(blueprints.create(fields=fields, **caller_of(request))).data, status=201
        )

    @listing("listBlueprints", "List blueprints, newest first", Scope.AGENTS_READ, BlueprintSerializer)
    def list(self, request: ApiRequest) -> Response:
        own = Blueprint.objects.for_tenant(request.auth.tenant_id)
        return newest_first(own, request, BlueprintSerializer.all_of, field="created_at")

    @operation(
        "getBlueprint",
        "Fetch a blueprint",
        Scope.AGENTS_READ,
        ChangedBlueprintSerializer,
        e404=NOT_FOUND,
    )
    def retrieve(self, request: ApiRequest, blueprint_id: str) -> Response:
        return ok(_counted(Blueprint.objects.for_tenant(request.auth.tenant_id).find(blueprint_id)))

    @operation(
        "updateBlueprint",
        "Change a blueprint",
        Scope.AGENTS_WRITE,
        ChangedBlueprintSerializer,
        description=(
            "Its agents stay as they are: `differing` counts those that differ now, and `POST …/renew` "
            f"brings them up to date. `ask_policy` counts within a second. {SCOPES}"
        ),
        request=serializers.UpdateBlueprintSerializer,
        e404=NOT_FOUND,
    )
    def partial_update(self, request: ApiRequest, blueprint_id: str) -> Response:
        changes = _stated(serializers.UpdateBlueprintSerializer, request)
        changed = blueprints.update(blueprint_id=blueprint_id, changes=changes, **caller_of(request))
        return ok(_counted(changed))

    @operation(
        "renewBlueprintAgents",
        "Bring agents up to date with their blueprint",
        Scope.CERTIFICATES_ISSUE,
        BlueprintRenewalSerializer,
        status=202,
        description=(
            "What an agent inherits becomes the blueprint's; what it states itself is narrowed to it. Its "
            "certificate is renewed where it states what changed. "
            "Takes the scope `agents:write` too. The work goes on by itself, whatever dies meanwhile."
        ),
        request=serializers.RenewBlueprintSerializer,
        repeats=True,
        e404=f"{BlueprintNotFound.message}; {AgentNotFound.message}",
    )
    def renew(self, request: ApiRequest, blueprint_id: str) -> Response:
        require_scope(request.auth, Scope.AGENTS_WRITE)
        agent_ids = validated(serializers.RenewBlueprintSerializer, request).get("agent_ids")
        begun = services.begin(blueprint_id=blueprint_id, agent_ids=agent_ids, **caller_of(request))
        return ok(BlueprintRenewalSerializer(begun).data, status=202)

    @operation(
        "getBlueprintRenewal",
        "Fetch a renewal of a blueprint's agents",
        Scope.AGENTS_READ,
        BlueprintRenewalSerializer,
        e404=RenewalNotFound.message,
    )
    def renewal(self, request: ApiRequest, renewal_id: str) -> Response:
        found = BlueprintRenewal.objects.for_tenant(request.auth.tenant_id).find(renewal_id)
        return ok(BlueprintRenewalSerializer(found).data)


def _counted(blueprint: Blueprint) -> dict[str, Any]:
    return {**BlueprintSerializer(blueprint).data, "differing": differing(blueprint).count()}


def _stated(serializer: type[serializers.BlueprintFieldsSerializer], request: ApiRequest) -> dict[str, Any]:
    """Return the fields that a request states; some take a scope of their own."""
    fields: dict[str, Any] = validated(serializer, request)
    if "alarm_budget" in fields:
        require_scope(request.auth, Scope.AGENTS_ENFORCEMENT)
    if "ask_policy" in fields:
        require_scope(request.auth, Scope.GATEWAY_WRITE)
    return fields
