"""Agents in and out of the API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import Agent
from compliance.api.fields import PositiveField, StrictBooleanField, StrictCharField
from compliance.api.serializers import ChangesSerializer

MAX_PERMITTED_ACTIONS = 200
MAX_ACTION_LENGTH = 200


class FinancialScopeSerializer(serializers.Serializer[Any]):
    """The trading limits of an agent; amounts in US dollars."""

    max_single_trade_usd = PositiveField()
    daily_limit_usd = PositiveField()
    permitted_instruments = serializers.ListField(child=StrictCharField(max_length=255), max_length=1000)
    permitted_venues = serializers.ListField(child=StrictCharField(max_length=255), max_length=1000)
    leverage_permitted = StrictBooleanField()
    max_leverage_ratio = PositiveField(required=False)


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "permitted_actions": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_ACTION_LENGTH},
                "maxItems": MAX_PERMITTED_ACTIONS,
                "nullable": True,
            }
        },
        "additionalProperties": {},
    }
)
class MetadataField(serializers.DictField):
    """An object of the tenant's; `permitted_actions` gives the agent's scope."""


class AgentProfileSerializer(serializers.Serializer[Any]):
    """The fields of an agent that its tenant states."""

    model = StrictCharField(max_length=255, required=False, allow_null=True, allow_blank=True)
    version = StrictCharField(max_length=255, required=False, allow_null=True, allow_blank=True)
    description = StrictCharField(max_length=10_000, required=False, allow_null=True, allow_blank=True)
    inbox_address = StrictCharField(max_length=320, required=False, allow_null=True, allow_blank=True)
    financial_scope = FinancialScopeSerializer(required=False, allow_null=True)
    metadata = MetadataField(required=False, allow_null=True)

    def validate_metadata(self, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        if metadata is not None and metadata.get("permitted_actions") is not None:
            check_permitted_actions(metadata["permitted_actions"])
        return metadata


class RegisterAgentSerializer(AgentProfileSerializer):
    """`POST /v1/agents`."""

    name = StrictCharField(max_length=255)
    model_hash = StrictCharField(max_length=512)


class UpdateAgentSerializer(AgentProfileSerializer, ChangesSerializer):
    """`PATCH /v1/agents/{id}`: the fields to change."""

    name = StrictCharField(max_length=255, required=False)
    model_hash = StrictCharField(max_length=512, required=False)


class ReasonSerializer(serializers.Serializer[Any]):
    """Why a person changes an agent's state."""

    reason = StrictCharField(max_length=500)


class AgentSerializer(serializers.ModelSerializer[Agent]):
    """An Agent of the interface specification, with its DID, description and financial scope."""

    tenant_id = serializers.UUIDField()
    did = serializers.CharField(help_text="`did:<service>:<live|test>:<agent id>`")
    metadata = serializers.DictField(allow_null=True)
    financial_scope = FinancialScopeSerializer(allow_null=True)

    class Meta:
        model = Agent
        fields = [
            "id",
            "tenant_id",
            "name",
            "description",
            "model",
            "model_hash",
            "version",
            "status",
            "inbox_address",
            "metadata",
            "financial_scope",
            "did",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class UpdatedAgentSerializer(AgentSerializer):
    """An agent as `PATCH` left it."""

    renewal_needed_for = serializers.ListField(
        child=serializers.ChoiceField(
            choices=["model", "model_hash", "name", "permitted_actions", "version"]
        ),
        help_text=(
            "Fields changed by this request that the certificate states; they count with the next renewal. "
            "Empty for a pending agent, which is certified as it is."
        ),
    )

    class Meta(AgentSerializer.Meta):
        fields = [*AgentSerializer.Meta.fields, "renewal_needed_for"]
        read_only_fields = fields


def shown_agent(agent: Agent) -> dict[str, Any]:
    """An agent as `AgentSerializer` shows it, many times faster."""
    scope = agent.financial_scope
    return {
        "id": agent.id,
        "tenant_id": agent.tenant_id,
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "model_hash": agent.model_hash,
        "version": agent.version,
        "status": agent.status,
        "inbox_address": agent.inbox_address,
        "metadata": agent.metadata,
        "financial_scope": None if scope is None else FinancialScopeSerializer(scope).data,
        "did": agent.did,
        "created_at": agent.created_at,
        "updated_at": agent.updated_at,
    }


def check_permitted_actions(value: Any) -> None:
    """Raise unless `value` is a list of at most 200 action names of 1 to 200 characters."""
    is_list = isinstance(value, list) and len(value) <= MAX_PERMITTED_ACTIONS
    if not is_list or not all(
        isinstance(item, str) and 1 <= len(item) <= MAX_ACTION_LENGTH for item in value
    ):
        raise serializers.ValidationError(
            f"permitted_actions must be an array of at most {MAX_PERMITTED_ACTIONS} action strings "
            f"of 1 to {MAX_ACTION_LENGTH} characters"
        )
