"""`/v1/agents`: register, read, list, edit."""

import re
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.response import Response

from agents import serializers, services
from agents.blueprints.inheritance import differing
from agents.errors import BlueprintNotFound, ObserveNotByKey
from agents.models import Agent, AgentStatus, Blueprint
from agents.serializers import EMAIL_PATTERN, AgentSerializer
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope, require_scope
from compliance.api.pagination import newest_first, ok, read_choice, read_flag, read_id, read_text
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.errors import Invalid
from tenancy.models import Enforcement

FILTERS = [
    OpenApiParameter("status", OpenApiTypes.STR, enum=AgentStatus.values),
    OpenApiParameter("dormant", OpenApiTypes.BOOL, description="Active without an event for too long"),
    OpenApiParameter("blueprint_id", OpenApiTypes.UUID),
    OpenApiParameter("differs_from", OpenApiTypes.UUID, description="Their blueprint"),
    OpenApiParameter("model_hash", {"type": "string", "maxLength": 512}),
    OpenApiParameter("q", {"type": "string", "maxLength": 255}, description="Part of the name or id"),
    OpenApiParameter(
        "owner",
        {"type": "string", "pattern": EMAIL_PATTERN.replace(r"\Z", "$")},
        description="The owner's e-mail address, in any case",
    ),
    OpenApiParameter("orphaned", OpenApiTypes.BOOL, description="Without an owner, and not retired"),
]

REGISTRATION_EXAMPLE = OpenApiExample(
    "A trading agent",
    request_only=True,
    value={
        "name": "trade-bot",
        "model": "gpt-5",
        "version": "2.1.0",
        "owner": {"name": "Kim Berg", "email": "kim.berg@example.com"},
        "model_hash": "sha256:9f86d081884c7d65",
        "metadata": {"permitted_actions": ["read_market_data", "place_order"]},
        "financial_scope": {
            "max_single_trade_usd": 10000,
            "daily_limit_usd": 50000,
            "permitted_instruments": ["BTC-USD"],
            "permitted_venues": ["kraken"],
            "leverage_permitted": False,
        },
    },
)


class AgentViewSet(ApiViewSet):
    """The tenant's agents."""

    schema_tag = "Agents"

    @operation(
        "registerAgent",
        "Register an agent",
        Scope.AGENTS_WRITE,
        AgentSerializer,
        status=201,
        request=serializers.RegisterAgentSerializer,
        examples=[REGISTRATION_EXAMPLE],
        repeats=True,
        e404=BlueprintNotFound.message,
        e422="The agent would go beyond its blueprint",
    )
    def create(self, request: ApiRequest) -> Response:
        fields = _stated(serializers.RegisterAgentSerializer, request)
        agent = services.register(fields=fields, **caller_of(request))
        return ok(AgentSerializer(agent).data, status=201)

    @listing(
        "listAgents",
        "List agents, newest first",
        Scope.AGENTS_READ,
        AgentSerializer,
        parameters=FILTERS,
        e404=BlueprintNotFound.message,
    )
    def list(self, request: ApiRequest) -> Response:
        params, agents = request.query_params, Agent.objects.for_tenant(request.auth.tenant_id)
        email = params.get("owner")
        if email is not None and not re.fullmatch(EMAIL_PATTERN, email):
            raise Invalid("owner must be an e-mail address")
        if (blueprint_id := read_id(params, "differs_from")) is not None:
            agents = differing(Blueprint.objects.for_tenant(request.auth.tenant_id).find(blueprint_id))
        agents = (
            agents.where(
                blueprint_id=read_id(params, "blueprint_id"),
                status=read_choice(params, "status", AgentStatus.values),
                owner_email__iexact=email,
                model_hash=read_text(params, "model_hash", max_length=512),
            )
            .orphaned(read_flag(params, "orphaned"))
            .dormant(read_flag(params, "dormant"))
            .matching(read_text(params, "q"))
            .with_tenant()
        )
        return newest_first(agents, request, AgentSerializer.all_of, field="created_at", heavy="metadata")

    @operation("getAgent", "Fetch an agent", Scope.AGENTS_READ, AgentSerializer, e404="Agent not found")
    def retrieve(self, request: ApiRequest, agent_id: str) -> Response:
        agent = Agent.objects.for_tenant(request.auth.tenant_id).with_tenant().find(agent_id)
        return ok(AgentSerializer(agent).data)

    @operation(
        "updateAgent",
        "Edit an agent's profile",
        Scope.AGENTS_WRITE,
        serializers.UpdatedAgentSerializer,
        description=(
            "Issued certificates stay as signed: `renewal_needed_for` names the changed fields that take "
            "effect with the next renewal (`POST /v1/agents/{id}/renew`). `enforcement` and `alarm_budget` "
            "count from the next event on, and their change is audited with what stood before; they take the "
            "scope `agents:enforcement`, and no key sets `observe`."
        ),
        request=serializers.UpdateAgentSerializer,
        e404="Agent not found",
        e422="Retired, or beyond its blueprint",
    )
    def partial_update(self, request: ApiRequest, agent_id: str) -> Response:
        changes = _stated(serializers.UpdateAgentSerializer, request)
        agent, needed = services.update(agent_id=agent_id, changes=changes, **caller_of(request))
        return ok({**AgentSerializer(agent).data, "renewal_needed_for": needed})


def _stated(serializer: type[serializers.AgentProfileSerializer], request: ApiRequest) -> dict[str, Any]:
    """Return the fields of the request's body; to name the mode or budget takes a scope of its own.

    Raises: ObserveNotByKey.
    """
    fields: dict[str, Any] = validated(serializer, request)
    if not fields.keys().isdisjoint(("enforcement", "alarm_budget")):
        require_scope(request.auth, Scope.AGENTS_ENFORCEMENT)
    if fields.get("enforcement") == Enforcement.OBSERVE:
        raise ObserveNotByKey()
    return fields
