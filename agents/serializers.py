"""Read and show agents in the API."""

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import MAX_EMAIL_LENGTH, MOST_DAYS, Agent
from compliance.api.rest.fields import (
    ChangesSerializer,
    IdField,
    PositiveField,
    RowSerializer,
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
)
from compliance.core.json_values import MAX_OCTETS, octets_of
from tenancy.alarm_budgets import LEAST_BUDGET, MOST_BUDGET
from tenancy.models import Enforcement

MAX_PERMITTED_ACTIONS = 200
MAX_ACTION_LENGTH = 200
MAX_URL_LENGTH = 2_048
MAX_MODE_LENGTH = 127
MAX_MODES = 20
HTTPS_URL = RegexValidator(r"^https://[!-~]+\Z", "Must be an absolute https URL")
EMAIL_PATTERN = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*\Z"
"""What an HTML form takes as an e-mail address."""


def email_field() -> StrictCharField:
    known = RegexValidator(EMAIL_PATTERN, "Must be an e-mail address")
    return StrictCharField(max_length=MAX_EMAIL_LENGTH, validators=[known])


class OwnerSerializer(serializers.Serializer[Any]):
    """A person who answers for an agent."""

    name = StrictCharField(max_length=255)
    email = email_field()


class ReplaceOwnerSerializer(serializers.Serializer[Any]):
    """`POST /v1/owners/replace`; `from` is a word of Python, so the fields are given by name."""

    def get_fields(self) -> dict[str, Any]:
        return {"from": email_field(), "to": OwnerSerializer()}


class OwnersReplacedSerializer(serializers.Serializer[Any]):
    """How many agents have another owner or backup owner now."""

    agents = serializers.IntegerField()


class FinancialScopeSerializer(serializers.Serializer[Any]):
    """The trading limits of an agent; amounts in US dollars."""

    max_single_trade_usd = PositiveField()
    daily_limit_usd = PositiveField()
    permitted_instruments = serializers.ListField(child=StrictCharField(max_length=255), max_length=1000)
    permitted_venues = serializers.ListField(child=StrictCharField(max_length=255), max_length=1000)
    leverage_permitted = StrictBooleanField()
    max_leverage_ratio = PositiveField(required=False)


def _https_url(**options: Any) -> StrictCharField:
    return StrictCharField(max_length=MAX_URL_LENGTH, validators=[HTTPS_URL], **options)


def _modes() -> serializers.ListField:
    child = StrictCharField(max_length=MAX_MODE_LENGTH)
    return serializers.ListField(child=child, required=False, min_length=1, max_length=MAX_MODES)


class AgentCardSerializer(serializers.Serializer[Any]):
    """Fields a tenant may state for an agent's public A2A card."""

    url = _https_url(help_text="Where the agent answers A2A requests")
    protocol_binding = serializers.ChoiceField(
        choices=["JSONRPC", "HTTP+JSON", "GRPC"], required=False, help_text="JSONRPC when omitted"
    )
    streaming = StrictBooleanField(required=False)
    input_modes = _modes()
    output_modes = _modes()
    token_schemes = serializers.ListField(
        child=serializers.ChoiceField(choices=["bearer", "dpop"]),
        required=False,
        min_length=1,
        max_length=2,
        help_text="How the agent takes delegation tokens",
    )
    provider_url = _https_url(required=False, help_text="Names the tenant as provider, too")
    documentation_url = _https_url(required=False)


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
    """A JSON object of the tenant; `permitted_actions` gives the agent's scope."""


class InheritedFieldsSerializer(serializers.Serializer[Any]):
    """Fields that a blueprint states as an agent does; null: nothing is said of that."""

    model = StrictCharField(max_length=255, required=False, allow_null=True, allow_blank=True)
    version = StrictCharField(max_length=255, required=False, allow_null=True, allow_blank=True)
    owner = OwnerSerializer(
        required=False, allow_null=True, help_text="The person who answers for the agent and gets its mail."
    )
    backup_owner = OwnerSerializer(
        required=False, allow_null=True, help_text="The person who does so while the owner is away."
    )
    financial_scope = FinancialScopeSerializer(required=False, allow_null=True)
    alarm_budget = StrictFloatField(
        min_value=LEAST_BUDGET,
        max_value=MOST_BUDGET,
        required=False,
        allow_null=True,
        help_text="The share of an agent's ordinary events that may be medium or high. null: as its tenant.",
    )
    validity_days = StrictIntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        required=False,
        allow_null=True,
        help_text="The longest life of a certificate; the service's own limits count too.",
    )


class AgentProfileSerializer(InheritedFieldsSerializer):
    """Fields a tenant may set on an agent."""

    description = StrictCharField(max_length=10_000, required=False, allow_null=True, allow_blank=True)
    inbox_address = StrictCharField(max_length=320, required=False, allow_null=True, allow_blank=True)
    agent_card = AgentCardSerializer(
        required=False,
        allow_null=True,
        help_text="Publishes name, description and actions as an A2A card; null: no card.",
    )
    metadata = MetadataField(required=False, allow_null=True, help_text="At most 64 KiB as JSON.")
    enforcement = serializers.ChoiceField(
        choices=Enforcement.choices,
        required=False,
        allow_null=True,
        help_text="`observe`, only set in the console: the service does not stop the agent by itself. "
        "null: as its tenant.",
    )

    def validate_metadata(self, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        if octets_of(metadata) > MAX_OCTETS:
            raise serializers.ValidationError(f"Must take at most {MAX_OCTETS} octets as JSON.")
        actions = (metadata or {}).get("permitted_actions")
        is_list = isinstance(actions, list) and len(actions) <= MAX_PERMITTED_ACTIONS
        if actions is None or (
            is_list and all(isinstance(one, str) and 1 <= len(one) <= MAX_ACTION_LENGTH for one in actions)
        ):
            return metadata
        raise serializers.ValidationError(
            f"permitted_actions must be an array of at most {MAX_PERMITTED_ACTIONS} action strings "
            f"of 1 to {MAX_ACTION_LENGTH} characters"
        )


class RegisterAgentSerializer(AgentProfileSerializer):
    """`POST /v1/agents`."""

    name = StrictCharField(max_length=255)
    model_hash = StrictCharField(
        max_length=512, required=False, help_text="Required, unless the blueprint states it."
    )
    blueprint_id = IdField(
        required=False,
        help_text="What is null or not stated is the blueprint's; what is stated may not go beyond it.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.keys().isdisjoint(("model_hash", "blueprint_id")):
            raise serializers.ValidationError({"model_hash": ["This field is required."]})
        return attrs


class UpdateAgentSerializer(AgentProfileSerializer, ChangesSerializer):
    """`PATCH /v1/agents/{id}`: the fields to change."""

    name = StrictCharField(max_length=255, required=False)
    model_hash = StrictCharField(max_length=512, required=False)


class ReasonSerializer(serializers.Serializer[Any]):
    """The reason for changing an agent's status."""

    reason = StrictCharField(max_length=500)


class AgentSerializer(RowSerializer[Agent]):
    """An agent: its profile, who answers for it, its DID, status and risk."""

    tenant_id = serializers.UUIDField()
    owner = OwnerSerializer(allow_null=True)
    backup_owner = OwnerSerializer(allow_null=True)
    blueprint_id = serializers.UUIDField(allow_null=True)
    did = serializers.CharField(help_text="`did:<service>:<live|test>:<agent id>`")
    metadata = serializers.DictField(allow_null=True)
    financial_scope = FinancialScopeSerializer(allow_null=True)
    agent_card = AgentCardSerializer(allow_null=True)
    effective_enforcement = serializers.ChoiceField(
        choices=Enforcement.choices,
        help_text="The mode that counts: the agent's own, else its tenant's. Only `enforce` stops it.",
    )

    effective_alarm_budget = serializers.FloatField(
        help_text="The budget that counts: the agent's own, else its tenant's."
    )

    class Meta:
        model = Agent
        fields = [
            *("id", "tenant_id", "name", "description", "model", "model_hash", "version", "status"),
            *("owner", "backup_owner", "inbox_address", "metadata", "financial_scope", "agent_card"),
            *("enforcement", "effective_enforcement", "alarm_budget", "effective_alarm_budget"),
            *("blueprint_id", "validity_days", "did", "dormant_at", "created_at", "updated_at"),
        ]


class UpdatedAgentSerializer(AgentSerializer):
    """An agent after `PATCH`."""

    renewal_needed_for = serializers.ListField(
        child=serializers.ChoiceField(
            choices=["model", "model_hash", "name", "permitted_actions", "version"]
        ),
        help_text="The changed fields that the certificate states until it is renewed; none if pending.",
    )

    class Meta(AgentSerializer.Meta):
        fields = [*AgentSerializer.Meta.fields, "renewal_needed_for"]
