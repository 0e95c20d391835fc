"""Events and reviews as the API shows them, and the schemas of reported events."""

from datetime import UTC
from typing import Any

from rest_framework import serializers

from compliance.api.rest.fields import RowSerializer, StrictCharField
from compliance.core.errors import ServiceError
from events.endpoints import SHOWN, shown
from events.ingest.event_input import MAX_BATCH
from events.ingest.storage import ScoredEvent
from events.models import ActionType, BehaviorEvent, EventReview, ReviewVerdict

_UUID = {"type": "string", "format": "uuid"}
RECORD_EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": (
        "Null counts as left out. Each name may also be sent in snake_case (`agent_id`), and `details` as "
        "`payload`; a field sent in two spellings must have the same value in both."
    ),
    "properties": {
        "agentId": _UUID,
        "actionType": {"type": "string", "enum": list(ActionType.values)},
        "details": {
            "type": "object",
            "additionalProperties": True,
            "nullable": True,
            "description": "At most 64 KiB as JSON.",
        },
        "occurredAt": {
            "type": "string",
            "format": "date-time",
            "nullable": True,
            "description": "When it happened; when received, if left out. From 2000 to 5 minutes ahead.",
        },
        "sessionId": {"type": "string", "maxLength": 255, "nullable": True},
        "chainId": {**_UUID, "nullable": True},
        "decisionId": {**_UUID, "nullable": True, "description": "The decision by which the agent acted."},
    },
    "required": ["agentId", "actionType"],
}
_EVENTS = {"type": "array", "items": RECORD_EVENT_SCHEMA, "minItems": 1, "maxItems": MAX_BATCH}
RECORD_BATCH_SCHEMA = {"type": "object", "properties": {"events": _EVENTS}, "required": ["events"]}

EXPLAINED = (
    *(*SHOWN, "session_id", "chain_id", "decision_id", "received_at", "reasons", "model_version", "review"),
)


def shown_explained(event: BehaviorEvent) -> dict[str, Any]:
    """Show an event as `ExplainedEventSerializer` describes it."""
    review = None if event.review is None else EventReviewSerializer(event.review).data
    return {name: getattr(event, name) for name in EXPLAINED} | {"review": review}


def shown_result(outcome: ScoredEvent | BehaviorEvent | ServiceError) -> dict[str, Any]:
    """Show the outcome of one event of a batch as `BatchResultSerializer` describes it."""
    if isinstance(outcome, ServiceError):
        return {"status": outcome.status, "error": outcome.message}
    return {"status": 201, "data": shown(outcome)}


class BehaviorEventSerializer(RowSerializer[Any]):
    """A BehaviorEvent of the interface specification."""

    agent_id = serializers.UUIDField()
    details = serializers.DictField()
    occurred_at = serializers.DateTimeField(default_timezone=UTC)

    class Meta:
        model = BehaviorEvent
        fields: tuple[str, ...] = SHOWN


class BatchResultSerializer(serializers.Serializer[Any]):
    """The answer that `POST /v1/events` would have given for one event of a batch."""

    status = serializers.IntegerField(help_text="201, or the status of the error")
    data = BehaviorEventSerializer(required=False)  # type: ignore[assignment]
    error = serializers.CharField(required=False)


class ScoreReasonSerializer(serializers.Serializer[Any]):
    """One contribution to a score; `weight` in log-odds, of a broken rule what lifts its action to 0.90."""

    name = serializers.CharField()
    observed = serializers.CharField(allow_blank=True)
    expected = serializers.CharField(allow_blank=True)
    weight = serializers.FloatField()


class ReviewSerializer(serializers.Serializer[Any]):
    """`POST /v1/events/{id}/review`."""

    verdict = serializers.ChoiceField(
        choices=ReviewVerdict.choices, help_text="confirmed: part of an attack; dismissed: ordinary after all"
    )
    note = StrictCharField(max_length=1000, required=False, allow_null=True)


class EventReviewSerializer(RowSerializer[Any]):
    """An officer's verdict on an event."""

    reviewed_by = serializers.CharField(
        source="actor_id", help_text="`api_key:<id>` or `person:<id>`; before 0.2 `console:<username>`"
    )
    reviewed_at = serializers.DateTimeField(default_timezone=UTC)
    marked = serializers.ListField(
        child=serializers.CharField(),
        help_text=(
            "Places where the attack went, as far as no other agent of the tenant knows them. Events that "
            "name one score higher, by half as much after 30 days, and are not high by that alone. "
            "Empty if all are common"
        ),
    )

    class Meta:
        model = EventReview
        fields = ["id", "event_id", "verdict", "note", "marked", "reviewed_by", "reviewed_at"]


class ExplainedEventSerializer(BehaviorEventSerializer):
    """An event with why it scored as it did, what decided first, and what an officer made of it."""

    reasons = ScoreReasonSerializer(many=True)
    review = EventReviewSerializer(allow_null=True, help_text="The verdict that counts; null before any")

    class Meta(BehaviorEventSerializer.Meta):
        fields = EXPLAINED
