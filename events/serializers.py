"""Events and signatures in and out of the API; both documented spellings end here."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from rest_framework import serializers

from compliance.api.fields import StrictCharField
from compliance.identifiers import parse_id
from events.errors import InvalidActionType, SpellingsDisagree
from events.models import ActionType, BehaviorEvent

SPELLINGS = {
    "agentId": "agent_id",
    "actionType": "action_type",
    "chainId": "chain_id",
    "sessionId": "session_id",
    "occurredAt": "occurred_at",
    "payload": "details",
}
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
MOST_AHEAD = timedelta(minutes=5)


def one_spelling(data: dict[str, Any]) -> dict[str, Any]:
    """The body with snake_case names; null counts as left out; raises `SpellingsDisagree`."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        canonical = SPELLINGS.get(name, name)
        if value is None:
            continue
        if canonical in found and found[canonical] != value:
            raise SpellingsDisagree(f"{canonical} is given in two spellings with different values")
        found[canonical] = value
    return found


class CanonicalUUIDField(serializers.UUIDField):
    """A UUID as the specification writes it: a string of 36 characters."""

    def to_internal_value(self, data: Any) -> UUID:
        found = parse_id(data)
        if found is None:
            self.fail("invalid", value=data)
        return found


class ActionTypeField(serializers.Field[str, Any, str, Any]):
    """One of the ten action types; anything else is the specification's own message."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in ActionType.values:
            raise InvalidActionType()
        return data

    def to_representation(self, value: str) -> str:
        return value


class RecordEventSerializer(serializers.Serializer[Any]):
    """`POST /v1/events`. Wants `now` in its context."""

    agent_id = CanonicalUUIDField()
    action_type = ActionTypeField()
    details = serializers.DictField(default=dict)
    occurred_at = serializers.DateTimeField(default_timezone=UTC, required=False)
    session_id = StrictCharField(max_length=255, allow_blank=True, required=False)
    chain_id = CanonicalUUIDField(required=False)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().to_internal_value(one_spelling(data))
        return found

    def validate_occurred_at(self, occurred_at: datetime) -> datetime:
        if not EARLIEST <= occurred_at <= self.context["now"] + MOST_AHEAD:
            raise serializers.ValidationError("Must be after 1999 and at most 5 minutes ahead.")
        return occurred_at


_UUID = {"type": "string", "format": "uuid"}
_FIELDS: dict[str, dict[str, Any]] = {
    "agent_id": _UUID,
    "action_type": {"type": "string", "enum": list(ActionType.values)},
    "details": {"type": "object", "additionalProperties": True, "nullable": True},
    "occurred_at": {
        "type": "string",
        "format": "date-time",
        "nullable": True,
        "description": "When it happened; when received, if left out. From 2000 to 5 minutes ahead.",
    },
    "session_id": {"type": "string", "maxLength": 255, "nullable": True},
    "chain_id": {**_UUID, "nullable": True},
}

RECORD_EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Either spelling of a field; both only with the same value.",
    "properties": {**_FIELDS, **{old: _FIELDS[new] for old, new in SPELLINGS.items()}},
    "allOf": [
        {"anyOf": [{"required": ["agentId"]}, {"required": ["agent_id"]}]},
        {"anyOf": [{"required": ["actionType"]}, {"required": ["action_type"]}]},
    ],
}


class BehaviorEventSerializer(serializers.ModelSerializer[BehaviorEvent]):
    """A BehaviorEvent of the interface specification."""

    agent_id = serializers.UUIDField()
    details = serializers.DictField()
    occurred_at = serializers.DateTimeField(default_timezone=UTC)

    class Meta:
        model = BehaviorEvent
        fields = ["id", "agent_id", "action_type", "risk_score", "risk_band", "occurred_at", "details"]
        read_only_fields = fields


class ScoreReasonSerializer(serializers.Serializer[Any]):
    """One contribution to a score; `weight` in log-odds."""

    name = serializers.CharField()
    observed = serializers.CharField(allow_blank=True)
    expected = serializers.CharField(allow_blank=True)
    weight = serializers.FloatField()


class ExplainedEventSerializer(BehaviorEventSerializer):
    """An event with why it scored as it did: the strongest reasons first."""

    reasons = ScoreReasonSerializer(many=True)

    class Meta(BehaviorEventSerializer.Meta):
        fields = [
            *BehaviorEventSerializer.Meta.fields,
            "session_id",
            "chain_id",
            "received_at",
            "reasons",
            "model_version",
        ]
        read_only_fields = fields


class SignSerializer(serializers.Serializer[Any]):
    """`POST /v1/agents/{id}/sign`: any JSON value but null."""

    payload = serializers.JSONField()


class SignatureSerializer(serializers.Serializer[Any]):
    """A signature over the payload's canonical JSON (RFC 8785)."""

    agent_id = serializers.UUIDField()
    signature = serializers.CharField(help_text="base64")
    algorithm = serializers.CharField()
    certificate_serial = serializers.CharField()
    payload_hash = serializers.CharField(help_text="`sha256:` and the hex digest of the canonical JSON")
    signed_at = serializers.DateTimeField()
    event_id = serializers.UUIDField(source="event.id", help_text="The message_signed event")
