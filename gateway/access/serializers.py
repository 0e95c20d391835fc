"""The evaluations of the standard and approval policies, as the API describes, reads and shows them."""

from typing import Any

from rest_framework import serializers

from agents.models import MAX_ACTION_NAME
from agents.risk import BANDS
from compliance.api.rest.fields import RowSerializer
from delegation.jose.jws import MAX_LENGTH
from events.models import ActionType
from gateway.access.questions import MAX_NAME, MOST_EVALUATIONS, EvaluationsSemantic
from gateway.access.weighing import AccessOutcome
from gateway.models import AskPolicy

_BANDS = [(band, band) for band in BANDS]


_PROPERTIES: dict[str, Any] = {"type": "object", "additionalProperties": True, "nullable": True}
_CREDENTIAL: dict[str, Any] = {"type": "string", "maxLength": MAX_LENGTH, "nullable": True}


def _entity(*names: str, **told: str) -> dict[str, Any]:
    """The schema of an entity with these strings, all of them required."""
    longest = MAX_ACTION_NAME if "name" in names else MAX_NAME
    text = {"type": "string", "minLength": 1, "maxLength": longest}
    strings = {name: text | ({"description": told[name]} if name in told else {}) for name in names}
    return {"type": "object", "properties": {**strings, "properties": _PROPERTIES}, "required": list(names)}


_ENTITIES: dict[str, Any] = {
    "subject": _entity(
        *("type", "id"),
        type="`agent` or `certificate`; another is an unknown subject.",
        id="An agent's id or DID; a certificate's serial number.",
    ),
    "action": _entity("name", name="What the certificate's `permitted_actions` must have."),
    "resource": _entity("type", "id"),
}
_CONTEXT: dict[str, Any] = {
    "type": "object",
    "nullable": True,
    "properties": {
        "action_type": {
            "type": "string",
            "enum": ActionType.values,
            "nullable": True,
            "description": "Of the event that would follow; `api_call` unless given.",
        },
        "details": {**_PROPERTIES, "description": "Of the event that would follow."},
        "token": {**_CREDENTIAL, "description": "The delegation token that the act is under."},
        "approval": {**_CREDENTIAL, "description": "The receipt of an approval of this act."},
    },
}
EVALUATION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {**_ENTITIES, "context": _CONTEXT},
    "required": list(_ENTITIES),
}
_DEFAULTS: dict[str, Any] = {
    name: {"type": "object", "nullable": True, "properties": schema["properties"]}
    for name, schema in _ENTITIES.items()
}
EVALUATIONS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **_DEFAULTS,
        "context": _CONTEXT,
        "evaluations": {
            "type": "array",
            "items": {},
            "maxItems": MOST_EVALUATIONS,
            "nullable": True,
            "description": "Each as `/access/v1/evaluation` takes it; members outside are their defaults. "
            "Without any, the request is a single evaluation.",
        },
        "options": {
            "type": "object",
            "nullable": True,
            "properties": {
                "evaluations_semantic": {
                    "type": "string",
                    "enum": [one.value for one in EvaluationsSemantic],
                    "nullable": True,
                }
            },
        },
    },
    "anyOf": [{"required": ["evaluations"]}, {"required": list(_ENTITIES)}],
}


class AccessReasonSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    text = serializers.CharField()
    observed = serializers.CharField(required=False)
    expected = serializers.CharField(required=False)


class WaitingApprovalSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.CharField()
    expires_at = serializers.DateTimeField()


class EvaluationErrorSerializer(serializers.Serializer[Any]):
    status = serializers.IntegerField()
    message = serializers.CharField()


class DecisionContextSerializer(serializers.Serializer[Any]):
    outcome = serializers.ChoiceField([(one.value, one.value) for one in AccessOutcome], required=False)
    decision_id = serializers.UUIDField(required=False)
    reasons = AccessReasonSerializer(many=True, required=False)
    risk_score = serializers.FloatField(required=False, allow_null=True)
    risk_band = serializers.ChoiceField(_BANDS, required=False, allow_null=True)
    approval = WaitingApprovalSerializer(required=False, help_text="Of the outcome `ask`.")
    error = EvaluationErrorSerializer(
        required=False, help_text="Instead of all else, of a malformed evaluation."
    )


class AccessDecisionSerializer(serializers.Serializer[Any]):
    decision = serializers.BooleanField()
    context = DecisionContextSerializer()  # type: ignore[assignment]


class AccessDecisionsSerializer(serializers.Serializer[Any]):
    decision = serializers.BooleanField(required=False)
    context = DecisionContextSerializer(required=False)  # type: ignore[assignment]
    evaluations = AccessDecisionSerializer(many=True, required=False)


class AuthzenConfigurationSerializer(serializers.Serializer[Any]):
    policy_decision_point = serializers.CharField()
    access_evaluation_endpoint = serializers.CharField()
    access_evaluations_endpoint = serializers.CharField()


class AskPolicySerializer(RowSerializer[AskPolicy]):
    """When a person is asked before an agent acts."""

    applies_to = serializers.CharField(help_text="`tenant`, `agent:<id>` or `route:<id>`.")
    always_ask = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = AskPolicy
        fields = ["applies_to", "ask_from", "always_ask", "ttl_seconds", "created_at", "updated_at"]
