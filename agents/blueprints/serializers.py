"""Read and show blueprints in the API."""

from typing import Any

from rest_framework import serializers

from agents.models import (
    DEFAULT_TTL,
    LONGEST_TTL,
    MAX_ACTION_NAME,
    MOST_ALWAYS,
    MOST_UNRENEWED,
    SHORTEST_TTL,
    AskFrom,
    Blueprint,
    BlueprintRenewal,
    RenewalOutcome,
)
from agents.serializers import (
    MAX_ACTION_LENGTH,
    MAX_PERMITTED_ACTIONS,
    FinancialScopeSerializer,
    InheritedFieldsSerializer,
    OwnerSerializer,
)
from compliance.api.rest.fields import (
    ChangesSerializer,
    ClosedSerializer,
    IdField,
    RowSerializer,
    StrictCharField,
    StrictIntegerField,
    TrueField,
)

MOST_IDS = 1_000


class PutAskPolicySerializer(ClosedSerializer):
    """`PUT /v1/approval-policies/{applies_to}`: the whole policy; a blueprint's is the same."""

    ask_from = serializers.ChoiceField(
        AskFrom.choices, help_text="The lowest band of an act's score from which a person is asked."
    )
    always_ask = serializers.ListField(
        child=StrictCharField(max_length=MAX_ACTION_NAME),
        max_length=MOST_ALWAYS,
        default=list,
        help_text="Names of actions for which a person is asked whatever their score.",
    )
    ttl_seconds = StrictIntegerField(
        min_value=SHORTEST_TTL,
        max_value=LONGEST_TTL,
        default=DEFAULT_TTL,
        help_text="How long an approval waits for its decision and its use.",
    )

    def validate_always_ask(self, names: list[str]) -> list[str]:
        return list(dict.fromkeys(names))


class BlueprintFieldsSerializer(InheritedFieldsSerializer, ClosedSerializer):
    """What a blueprint may state."""

    model_hash = StrictCharField(max_length=512, required=False, allow_null=True)
    permitted_actions = serializers.ListField(
        child=StrictCharField(max_length=MAX_ACTION_LENGTH),
        max_length=MAX_PERMITTED_ACTIONS,
        required=False,
        allow_null=True,
    )
    ask_policy = PutAskPolicySerializer(
        required=False, allow_null=True, help_text="Counts for agents without a policy of their own."
    )


class CreateBlueprintSerializer(BlueprintFieldsSerializer):
    """`POST /v1/blueprints`."""

    name = StrictCharField(max_length=255)


class UpdateBlueprintSerializer(BlueprintFieldsSerializer, ChangesSerializer):
    """`PATCH /v1/blueprints/{id}`: the fields to change."""

    name = StrictCharField(max_length=255, required=False)


class BlueprintSerializer(RowSerializer[Blueprint]):
    """A blueprint."""

    permitted_actions = serializers.ListField(child=serializers.CharField(), allow_null=True)
    financial_scope = FinancialScopeSerializer(allow_null=True)
    owner = OwnerSerializer(allow_null=True)
    backup_owner = OwnerSerializer(allow_null=True)
    ask_policy = PutAskPolicySerializer(allow_null=True)

    class Meta:
        model = Blueprint
        fields: tuple[str, ...] = (
            *("id", "name", "model", "version", "model_hash", "permitted_actions", "financial_scope"),
            *("owner", "backup_owner", "validity_days", "alarm_budget", "ask_policy"),
            *("created_at", "updated_at"),
        )


class ChangedBlueprintSerializer(BlueprintSerializer):
    """A blueprint, and how many of its agents differ from it."""

    differing = serializers.IntegerField(help_text="`GET /v1/agents?differs_from=…` has them.")

    class Meta(BlueprintSerializer.Meta):
        fields = (*BlueprintSerializer.Meta.fields, "differing")


class RenewBlueprintSerializer(ClosedSerializer):
    """`POST /v1/blueprints/{id}/renew`: exactly one member."""

    bounds = {"minProperties": 1, "maxProperties": 1, **ClosedSerializer.bounds}

    agent_ids = serializers.ListField(
        child=IdField(), min_length=1, max_length=MOST_IDS, required=False, help_text="404 if one is unknown."
    )
    all_differing = TrueField(required=False, help_text="Every agent that differs when it begins.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError("Must have exactly one of agent_ids, all_differing.")
        return attrs


def _count(outcome: str, text: str) -> serializers.IntegerField:
    return serializers.IntegerField(source=f"counts.{outcome}", help_text=text)


class UnrenewedAgentSerializer(serializers.Serializer[Any]):
    """An agent that was not brought up to date, or whose certificate was not renewed."""

    agent_id = serializers.UUIDField()
    outcome = serializers.ChoiceField([RenewalOutcome.SKIPPED.value, RenewalOutcome.FAILED.value])
    error = serializers.CharField()


class BlueprintRenewalSerializer(RowSerializer[BlueprintRenewal]):
    """A renewal, how far it is, and where it failed."""

    blueprint_id = serializers.UUIDField()
    matched = serializers.IntegerField(help_text="Agents when it began.")
    pending = _count("pending", "Agents that are still to come.")
    renewed = _count("renewed", "Up to date, with a new certificate.")
    updated = _count("updated", "Up to date; no certificate states what changed.")
    unchanged = _count("unchanged", "They did not differ.")
    skipped = _count("skipped", "Suspended or retired: they stay as they are.")
    failed = _count("failed", "Not updated, or not renewed: `unrenewed` says why.")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="null: it is under way.")
    unrenewed = UnrenewedAgentSerializer(
        many=True, help_text=f"Of skipped and failed ones, {MOST_UNRENEWED} at most."
    )

    class Meta:
        model = BlueprintRenewal
        fields = (
            *("id", "blueprint_id", "matched", *RenewalOutcome.values),
            *("started_at", "ended_at", "unrenewed"),
        )
