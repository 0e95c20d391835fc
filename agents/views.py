"""`/v1/agents`: register, read, list, edit."""

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from agents import serializers, services
from agents.errors import ObserveNotByKey
from agents.models import Agent, AgentStatus
from agents.serializers import AgentSerializer, shown_agent
from agents.services import AgentRegistration
from auditlog.vocabulary import Actor
from compliance.api.gate import Scope, require_scope
from compliance.api.idempotency import idempotent
from compliance.api.pagination import keyset_page, ok, page, read_choice, read_cursor, read_limit
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import BEFORE, IDEMPOTENCY_KEY, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.rest.views import ApiViewSet, validated
from compliance.core.clock import now
from tenancy.models import Enforcement

AGENT_ID = OpenApiParameter("agent_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)

REGISTRATION_EXAMPLE = OpenApiExample(
    "A trading agent",
    request_only=True,
    value={
        "name": "trade-bot",
        "model": "gpt-5",
        "version": "2.1.0",
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
    required_scopes: ClassVar = {
        "create": Scope.AGENTS_WRITE,
        "list": Scope.AGENTS_READ,
        "retrieve": Scope.AGENTS_READ,
        "partial_update": Scope.AGENTS_WRITE,
    }

    @extend_schema(
        operation_id="registerAgent",
        summary="Register an agent",
        request=serializers.RegisterAgentSerializer,
        parameters=[IDEMPOTENCY_KEY],
        examples=[REGISTRATION_EXAMPLE],
        responses={201: enveloped(AgentSerializer), **errors(*KEYED, 409)},
    )
    @idempotent
    def create(self, request: ApiRequest) -> Response:
        registration = AgentRegistration(**_stated(serializers.RegisterAgentSerializer, request))
        agent = services.register(registration=registration, **_caller(request))
        return ok(shown_agent(agent), status=201)

    @extend_schema(
        operation_id="listAgents",
        summary="List agents, newest first",
        parameters=[OpenApiParameter("status", OpenApiTypes.STR, enum=AgentStatus.values), BEFORE, LIMIT],
        responses={200: paged(AgentSerializer, tells_next=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        params = request.query_params
        status = read_choice(params, "status", AgentStatus.values)
        agents = Agent.objects.for_tenant(request.auth.tenant_id).with_status(status).with_mode()
        cursor, limit = read_cursor(params), read_limit(params)
        found = keyset_page(agents, cursor=cursor, limit=limit, field="created_at", heavy="metadata")
        rows = [shown_agent(row) for row in found.rows]
        return page(rows, next_cursor=found.next_cursor, has_next_page=found.has_next)

    @extend_schema(
        operation_id="getAgent",
        summary="Fetch an agent",
        parameters=[AGENT_ID],
        responses={200: enveloped(AgentSerializer), **errors(*KEYED, e404="Agent not found")},
    )
    def retrieve(self, request: ApiRequest, agent_id: str) -> Response:
        return ok(shown_agent(Agent.objects.for_tenant(request.auth.tenant_id).with_mode().find(agent_id)))

    @extend_schema(
        operation_id="updateAgent",
        summary="Edit an agent's profile",
        description=(
            "Issued certificates stay as signed: `renewal_needed_for` names the changed fields that take "
            "effect with the next renewal (`POST /v1/agents/{id}/renew`). `enforcement` and `alarm_budget` "
            "count from the next event on, and their change is audited with what stood before; they take the "
            "scope `agents:enforcement`, and no key sets `observe`."
        ),
        parameters=[AGENT_ID],
        request=serializers.UpdateAgentSerializer,
        responses={
            200: enveloped(serializers.UpdatedAgentSerializer),
            **errors(*KEYED, e404="Agent not found", e422="Agent is retired"),
        },
    )
    def partial_update(self, request: ApiRequest, agent_id: str) -> Response:
        changes = _stated(serializers.UpdateAgentSerializer, request)
        agent, needed = services.update(agent_id=agent_id, changes=changes, **_caller(request))
        return ok({**shown_agent(agent), "renewal_needed_for": needed})


def _stated(serializer: type[serializers.AgentProfileSerializer], request: ApiRequest) -> dict[str, Any]:
    """Return the fields of the request's body; to name the mode or budget takes a scope of its own.

    Raises: ObserveNotByKey.
    """
    fields = validated(serializer, request)
    if not fields.keys().isdisjoint(("enforcement", "alarm_budget")):
        require_scope(request.auth, Scope.AGENTS_ENFORCEMENT)
    if fields.get("enforcement") == Enforcement.OBSERVE:
        raise ObserveNotByKey()
    return fields


def _caller(request: ApiRequest) -> dict[str, Any]:
    """Return the arguments that every service takes."""
    return {"tenant_id": request.auth.tenant_id, "actor": Actor.api_key(request.auth.id), "now": now()}
